//! `docs/benchmarks.md`.

use crate::bound;
use crate::limits_page;
use crate::plan::{EXPIRIES, FAILOVERS, QUEUES, REBALANCES, ROWS, Row, bare_name};
use crate::results::Results;
use crate::servers::Kind;
use crate::table::{edges, figure, line, spread, table};
use crate::verdict;

const INTRODUCTION: &str = "# Benchmarks

lockkeeper beside Apache Curator 5.4 (Debian's) and kazoo 2.11: the same loads, in turns on the same
servers, each run in a process of its own. `benches/compare` writes this page;
[benches/README.md](../benches/README.md) describes the loads and how to repeat them. **Do not compare
figures of different machines, days or runs.**

![Operations per second as multiples of Curator's](benchmarks.svg)
";

const READING: &str = "## How to read this page

A figure is the median of all rounds, with the least and the greatest value in brackets. A ratio is taken
within each round, between runs that directly followed each other, and the table has the median of these
ratios: other work on the machine affects both runs alike.

*Bound* is the limit that the bare writes set, measured in the same rounds: the client crate alone, creating
and deleting nodes with as many tasks and sessions. If the successor is of another session, the bound also
includes that it learns of its grant only when the delete before it is committed.

*CPU* is the processor time of the client process, the Java compiler and the garbage collector included.
*Many* with `s=8` is a `ConnectionPool` of 8 sessions, which has one for each path; the other libraries have
no pool, and distribute 8 clients among their threads. *Node kept* is a mutex with `with_handoff()`, beside a
Curator that sends requests to the servers each time.

On the *network*, a relay delays every byte by 2 ms each way: a request takes four milliseconds and what the
server needs, as between machines of one region. There the requests in a row decide, and not the microseconds
of a client.

If the load average is above the number of cores, other programs used the machine as well. Then ratios are
more reliable than rates, and requests and processor time more reliable than times, and a share of the bound
may exceed 100 %.
";

/// The gain of each part of the protocol: measured once, by a run without that part.
const EARNED: &str = include_str!("earned.md");

/// The whole page.
pub(crate) fn write(results: &Results, machine: &str) -> String {
    let mut page = format!("{INTRODUCTION}\nMachine: {machine}.\n\n{READING}");
    for kind in Kind::ALL.into_iter().filter(|kind| results.has(*kind)) {
        section(&mut page, results, kind);
    }
    limits(&mut page, results);
    aims(&mut page, results);
    page.push_str(EARNED);
    troubles(&mut page, results);
    page
}

fn section(page: &mut String, results: &Results, kind: Kind) {
    line(page, &format!("\n## {}\n", kind.title()));
    let rounds = ROWS.iter().map(|row| results.rounds_of(kind, row.name)).filter(|rounds| *rounds > 0);
    let (least, most) = (rounds.clone().min().unwrap_or_default(), rounds.max().unwrap_or_default());
    let rounds = if least == most { least.to_string() } else { format!("{least} to {most}") };
    line(page, &format!("Rounds of each load: {rounds}.\n"));
    line(
        page,
        "| load | lockkeeper, ops/s | Curator, ops/s | × Curator | × kazoo | of the bound | \
         acquire p99, × Curator | CPU, × Curator | requests, ours / Curator's |",
    );
    line(page, "|---|---|---|---|---|---|---|---|---|");
    for row in ROWS {
        let ours = results.spread(kind, row.name, "lockkeeper", "ops_s");
        if ours.is_none() {
            continue;
        }
        let share = bound::share(results, kind, row);
        let requests = |peer: &str| figure(results.median(kind, row.name, peer, "reqs_op"), 2);
        let ratio = |peer: &str, field: &str| results.ratio(kind, row.name, peer, field);
        let cells = [
            row.name.to_owned(),
            spread(ours, 0),
            spread(results.spread(kind, row.name, "curator", "ops_s"), 0),
            format!(
                "**{}**{}",
                figure(ratio("curator", "ops_s").map(|all| all.median), 2),
                edges(ratio("curator", "ops_s"), 2)
            ),
            figure(ratio("kazoo", "ops_s").map(|all| all.median), 1),
            share.map_or_else(|| "–".to_owned(), |share| format!("{:.0} %", 100.0 * share.median)),
            spread(ratio("curator", "acq_p99_us"), 2),
            spread(ratio("curator", "cli_cpu_us_op"), 2),
            format!("{} / {}", requests("lockkeeper"), requests("curator")),
        ];
        line(page, &format!("| {} |", cells.join(" | ")));
    }
    limits_page::write(page, results, kind);
    queues(page, results, kind);
    views(page, results, kind);
    lookups(page, results, kind);
    ids(page, results, kind);
    failovers(page, results, kind);
    expiries(page, results, kind);
    rebalances(page, results, kind);
}

/// Items of work queues.
fn queues(page: &mut String, results: &Results, kind: Kind) {
    let measured = |row: &&Row| results.spread(kind, row.name, "lockkeeper", "ops_s").is_some();
    let rows = QUEUES.iter().filter(measured).map(|row| {
        let ratio = |peer: &str, field: &str| spread(results.ratio(kind, row.name, peer, field), 2);
        let each = |field: &str, decimals| {
            let of = |peer: &str| figure(results.median(kind, row.name, peer, field), decimals);
            ["lockkeeper", "curator", "kazoo"].map(of).join(" / ")
        };
        format!(
            "| {} | {} | {} | {} | {} | {} | {} | {} | {} |",
            row.name,
            spread(results.spread(kind, row.name, "lockkeeper", "ops_s"), 0),
            spread(results.spread(kind, row.name, "curator", "ops_s"), 0),
            ratio("curator", "ops_s"),
            ratio("kazoo", "ops_s"),
            each("acq_p50_us", 0),
            each("rel_p50_us", 0),
            ratio("curator", "cli_cpu_us_op"),
            each("reqs_op", 2),
        )
    });
    let head = [
        "Items that were put, taken and ended, beside Curator's `DistributedQueue` with `lockPath` and \
         kazoo's",
        "`LockingQueue`. With slashes between: ours, Curator's and kazoo's.",
        "",
        "| load | lockkeeper, items/s | Curator, items/s | × Curator | × kazoo \
         | from one item to the next, p50, µs | put, p50, µs | CPU, × Curator | requests of an item |",
        "|---|---|---|---|---|---|---|---|---|",
    ];
    table(page, head, rows.collect());
}

/// The first loads of views, their memory, and the reads of their snapshots.
fn views(page: &mut String, results: &Results, kind: Kind) {
    let measured = |row: &&Row| results.spread(kind, row.name, "lockkeeper", "load_s").is_some();
    let rows = ROWS.iter().filter(measured).flat_map(|row| {
        ["lockkeeper", "curator"].into_iter().filter_map(move |peer| {
            let field = |field: &str| results.spread(kind, row.name, peer, field);
            let nodes = field("nodes")?;
            Some(format!(
                "| {}, {peer} | {} | {} | {} | {} |",
                row.name,
                spread(Some(nodes), 0),
                spread(field("load_s"), 2),
                spread(verdict::bytes_by_node(results, kind, row, peer), 0),
                spread(field("snapshot_reads_s"), 0)
            ))
        })
    });
    let head = [
        "A view that is made on nodes that exist. Curator's cache may stop before it has all of them \
         (CURATOR-690); what a",
        "peer cannot do has a dash:",
        "",
        "| load | nodes it has then | first load, s | memory of a node, bytes | reads of a snapshot, 1/s |",
        "|---|---|---|---|---|",
    ];
    table(page, head, rows.collect());
}

/// Instances that a client of a service chose.
fn lookups(page: &mut String, results: &Results, kind: Kind) {
    let rows = ROWS.iter().filter(|row| row.scenario() == "lookup").flat_map(|row| {
        [("lookups_s", "one thread"), ("lookups_w_s", "four threads")].into_iter().filter_map(
            |(field, by)| {
                let of = |peer: &str| results.spread(kind, row.name, peer, field);
                Some(format!(
                    "| {by} | {} | {} | {} |",
                    spread(Some(of("lockkeeper")?), 0),
                    spread(of("curator"), 0),
                    spread(results.ratio(kind, row.name, "curator", field), 2)
                ))
            },
        )
    });
    let head = [
        "A client of a service with a hundred instances chooses one instance after the other by round robin. \
         Choices in a",
        "second:",
        "",
        "| choices by | lockkeeper | Curator | × Curator |",
        "|---|---|---|---|",
    ];
    table(page, head, rows.collect());
}

/// Ids from blocks: every load of additions measures them, and they are the same in all.
fn ids(page: &mut String, results: &Results, kind: Kind) {
    let drawn = |row: &Row| results.spread(kind, row.name, "lockkeeper", "ids_s");
    if let Some(ids) = ROWS.iter().filter(|row| row.scenario() == "count").find_map(drawn) {
        line(
            page,
            &format!(
                "\nIds from blocks of 100,000 that one task draws in a second: {}.",
                spread(Some(ids), 0)
            ),
        );
    }
}

/// Leaders that were killed.
fn failovers(page: &mut String, results: &Results, kind: Kind) {
    let measured = |row: &&Row| results.spread(kind, row.name, "lockkeeper", "of_limit").is_some();
    for row in FAILOVERS.iter().filter(measured) {
        let times = |peer: &str| {
            let field = |field: &str, decimals| spread(results.spread(kind, row.name, peer, field), decimals);
            format!(
                "{} µs, and {} of the session timeout and a tick",
                field("acq_p50_us", 0),
                field("of_limit", 2)
            )
        };
        let (ours, curator) = (times("lockkeeper"), times("curator"));
        line(
            page,
            &format!(
                "\n{}, from the kill of a leader to the next one. Half of them within, and the slowest:",
                row.name
            ),
        );
        line(page, &format!("lockkeeper {ours}; Curator {curator}."));
    }
}

/// Registrations whose session ended.
fn expiries(page: &mut String, results: &Results, kind: Kind) {
    let field = |row: &Row, peer: &str, field: &str, decimals| {
        spread(results.spread(kind, row.name, peer, field), decimals)
    };
    let rows = EXPIRIES.iter().filter(|row| results.rounds_of(kind, row.name) > 0).map(|row| {
        let ratio = spread(results.ratio(kind, row.name, "curator", "acq_p50_us"), 3);
        format!(
            "| {} | {} | {} | {ratio} | {} / {} |",
            row.name,
            field(row, "lockkeeper", "acq_p50_us", 0),
            field(row, "curator", "acq_p50_us", 0),
            field(row, "lockkeeper", "reqs_node", 2),
            field(row, "curator", "reqs_node", 2),
        )
    });
    let head = [
        "A process was stopped until its session had ended. From then on until all its nodes exist again, \
         p50 in µs, and",
        "requests for each node:",
        "",
        "| load | lockkeeper | Curator | × Curator | requests, ours / Curator's |",
        "|---|---|---|---|---|",
    ];
    table(page, head, rows.collect());
}

/// Members that joined a partition and left it.
fn rebalances(page: &mut String, results: &Results, kind: Kind) {
    let rows = REBALANCES.iter().flat_map(|row| {
        ["lockkeeper", "kazoo"].into_iter().filter_map(|peer| {
            let moves = results.spread(kind, row.name, peer, "moves")?;
            let field = |field: &str| spread(results.spread(kind, row.name, peer, field), 0);
            let least = results.spread(kind, row.name, peer, "moves_min");
            Some(format!(
                "| {}, {peer} | {} | {} | {} | {} |",
                row.name,
                field("acq_p50_us"),
                field("rel_p50_us"),
                spread(Some(moves), 0),
                spread(least, 0)
            ))
        })
    });
    let head = [
        "A fifth member joins and leaves: the time until each item is with its member, p50 in µs, \
         the items that moved",
        "in all, and how many had to:",
        "",
        "| load | join | leave | moved | had to |",
        "|---|---|---|---|---|",
    ];
    table(page, head, rows.collect());
}

/// The bare writes, on which the bounds rest.
fn limits(page: &mut String, results: &Results) {
    line(page, "\n## The limit\n");
    line(
        page,
        "One write and one read through zookeeper-client alone, measured beside the loads. \
         A cycle is a create",
    );
    line(page, "and a delete, each awaited.\n");
    line(
        page,
        "| servers | tasks, sessions | create p50, µs | delete p50, µs | read p50, µs | cycles/s | reads/s |",
    );
    line(page, "|---|---|---|---|---|---|---|");
    for kind in Kind::ALL {
        let mut seen = Vec::new();
        for row in ROWS {
            if seen.contains(&row.bare)
                || results.spread(kind, &bare_name(row.bare), "bare", "ops_s").is_none()
            {
                continue;
            }
            seen.push(row.bare);
            let field = |field: &str, decimals| {
                spread(results.spread(kind, &bare_name(row.bare), "bare", field), decimals)
            };
            line(
                page,
                &format!(
                    "| {} | {}, {} | {} | {} | {} | {} | {} |",
                    kind.name(),
                    row.bare.0,
                    row.bare.1,
                    field("acq_p50_us", 0),
                    field("rel_p50_us", 0),
                    field("read_p50_us", 0),
                    field("ops_s", 0),
                    field("reads_s", 0),
                ),
            );
        }
    }
}

fn aims(page: &mut String, results: &Results) {
    line(page, "\n## Aims\n");
    line(page, "On one server with its data on tmpfs, by the medians above.\n");
    line(page, "| aim | target | measured | |");
    line(page, "|---|---|---|---|");
    for aim in verdict::aims(results) {
        let measured = spread(Some(aim.measured), 2);
        line(page, &format!("| {} | {} | {measured} | {} |", aim.what, aim.target, aim.verdict.words()));
    }
}

fn troubles(page: &mut String, results: &Results) {
    line(page, "\n## Broken exclusion, stuck workers, failed runs\n");
    let troubles = results.troubles();
    if troubles.is_empty() {
        line(page, "None, in any run of any peer.");
    }
    for trouble in troubles {
        line(page, &format!("* {trouble}"));
    }
}
