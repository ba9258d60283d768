//! The aims, and whether they are reached.

use crate::bound;
use crate::plan::{
    AHEAD, DROPPED, EXPIRIES, FAILOVERS, HELD, KEPT_NODES, KEYED, LED, LIMITS, MEMORY, QUEUES, REBALANCES,
    ROWS, Row, UNCONTENDED,
};
use crate::results::Results;
use crate::servers::Kind;
use crate::statistics::{Spread, ratios};

/// Operations against the bare writes, uncontended.
const OF_BARE: f64 = 0.95;
/// Requests of a cycle when it is repeated at once.
const REQUESTS: f64 = 2.1;
/// Client processor time against Curator's.
const PROCESSOR: f64 = 0.5;
/// From a holder's release to the next holder's grant, against the time the release itself takes.
const HANDOVER: f64 = 1.1;
/// Memory of a waiting task, in KiB.
const WAITER: f64 = 4.0;

/// The time of a view's first load for each node, against Curator's.
const FIRST_LOAD: f64 = 0.5;
/// Memory of a view for each node, against Curator's.
const NODE_OF_VIEW: f64 = 1.0 / 3.0;
/// Ids from blocks that one task draws in a second, in millions.
const IDS: f64 = 1.0;
/// Items that move between the members of a partition, of those that have to.
const MOVES: f64 = 1.0;
/// Reads of a view's snapshot in a second, in millions.
const SNAPSHOT_READS: f64 = 10.0;

/// Requests of an item of a work queue: the put, the claim and the end.
const REQUESTS_OF_ITEM: f64 = 4.0;
/// Requests of a start at 200 a second.
const REQUESTS_OF_START: f64 = 6.0;
/// How much of the limit is used by callers that want more, in percent.
const USED: f64 = 98.0;
/// Tries that are made at once, with room for all.
const TRIES: f64 = 20.0;
/// A start that was taken ahead, in microseconds.
const AHEAD_P50: f64 = 10.0;

/// One aim.
#[derive(Debug)]
pub(crate) struct Aim {
    pub(crate) what: String,
    pub(crate) target: String,
    pub(crate) measured: Spread,
    pub(crate) verdict: Verdict,
}

/// Two rounds that disagree say more together than their median says alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// In every round.
    Met,
    /// By the median, and not in every round.
    MetByMedian,
    /// In some rounds, and not by the median.
    MissedByMedian,
    /// In no round.
    Missed,
}

impl Verdict {
    fn of(measured: Spread, reaches: impl Fn(f64) -> bool) -> Self {
        let (least, median, greatest) =
            (reaches(measured.least), reaches(measured.median), reaches(measured.greatest));
        match (least && greatest, median, least || greatest) {
            (true, ..) => Self::Met,
            (_, true, _) => Self::MetByMedian,
            (_, _, true) => Self::MissedByMedian,
            _ => Self::Missed,
        }
    }

    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Met => "met",
            Self::MetByMedian => "met, not in every round",
            Self::MissedByMedian => "**not met**, but in some rounds",
            Self::Missed => "**not met**",
        }
    }
}

fn at_least(what: String, target: f64, measured: Option<Spread>) -> Option<Aim> {
    let measured = measured?;
    let verdict = Verdict::of(measured, |figure| figure >= target);
    Some(Aim { what, target: format!("≥ {}", rounded(target)), measured, verdict })
}

fn at_most(what: String, target: f64, measured: Option<Spread>) -> Option<Aim> {
    let measured = measured?;
    let verdict = Verdict::of(measured, |figure| figure <= target);
    Some(Aim { what, target: format!("≤ {}", rounded(target)), measured, verdict })
}

/// As a reader expects it: 1.4, 4, and 0.33 for a third.
fn rounded(target: f64) -> f64 {
    (target * 100.0).round() / 100.0
}

/// All aims that something was measured for, on one server with its data in memory.
pub(crate) fn aims(results: &Results) -> Vec<Aim> {
    let kind = Kind::Tmpfs;
    let ratio = |row: &str, field: &str| results.ratio(kind, row, "curator", field);
    let ours = |row: &str, field: &str| results.spread(kind, row, "lockkeeper", field);
    let mut aims = Vec::new();
    for row in ROWS {
        let name = row.name;
        aims.push(at_least(format!("{name}: operations, × Curator"), row.target, ratio(name, "ops_s")));
    }
    let uncontended = ROWS.iter().find(|row| row.name == UNCONTENDED);
    let share = uncontended.and_then(|row| bound::share(results, kind, row));
    aims.push(at_least(format!("{UNCONTENDED}: operations, × bare writes"), OF_BARE, share));
    aims.push(at_most(format!("{DROPPED}: requests of a cycle"), REQUESTS, ours(DROPPED, "reqs_op")));
    for row in ROWS.iter().filter(|row| [HELD, LED].contains(&row.name)) {
        let what = format!("{}: hand-off, × the release's own time", row.name);
        aims.push(at_most(what, HANDOVER, handover(results, kind, row)));
    }
    for row in ROWS {
        let what = format!("{}: acquire p99, × Curator", row.name);
        aims.push(at_most(what, 1.0, ratio(row.name, "acq_p99_us")));
    }
    for row in ROWS {
        let what = format!("{}: client CPU of an operation, × Curator", row.name);
        aims.push(at_most(what, PROCESSOR, ratio(row.name, "cli_cpu_us_op")));
    }
    for row in ROWS.iter().filter(|row| row.scenario() == "count") {
        let ids = ours(row.name, "ids_s").map(|all| Spread {
            least: all.least / 1e6,
            median: all.median / 1e6,
            greatest: all.greatest / 1e6,
        });
        aims.push(at_least(format!("{}: ids from blocks, millions/s", row.name), IDS, ids));
    }
    aims.extend(
        ROWS.iter().filter(|row| row.scenario() == "view").flat_map(|row| of_view(results, kind, row)),
    );
    aims.extend(of_limits(results, kind));
    for row in QUEUES {
        let name = row.name;
        aims.push(at_least(format!("{name}: items, × Curator"), row.target, ratio(name, "ops_s")));
        aims.push(at_most(format!("{name}: requests of an item"), REQUESTS_OF_ITEM, ours(name, "reqs_op")));
    }
    for row in FAILOVERS {
        let what = format!("{}: the slowest, × session timeout and tick", row.name);
        aims.push(at_most(what, row.target, ours(row.name, "of_limit")));
    }
    for row in EXPIRIES {
        let what = format!("{}: until all nodes exist again, p50, × Curator", row.name);
        aims.push(at_most(what, row.target, ratio(row.name, "acq_p50_us")));
    }
    for row in REBALANCES {
        let join = results.ratio(kind, row.name, "kazoo", "acq_p50_us");
        aims.push(at_most(format!("{}: until a member has its share, × kazoo", row.name), row.target, join));
        aims.push(at_most(format!("{}: items moved, × least", row.name), MOVES, moves(results, kind, row)));
    }
    for (name, each) in memory(results) {
        aims.push(at_most(format!("{name}: memory of each, KiB"), WAITER, Spread::of([each])));
    }
    aims.into_iter().flatten().collect()
}

/// The aims of limits, and of permits and readers that stay in the process.
fn of_limits(results: &Results, kind: Kind) -> Vec<Option<Aim>> {
    let ours = |row: &Row, field: &str| results.spread(kind, row.name, "lockkeeper", field);
    let mut aims = Vec::new();
    for row in LIMITS.iter().chain(KEPT_NODES) {
        let name = row.name;
        if row.target > 0.0 {
            aims.push(at_least(format!("{name}: operations a second"), row.target, ours(row, "ops_s")));
        } else {
            aims.push(at_most(
                format!("{name}: requests of a start"),
                REQUESTS_OF_START,
                ours(row, "reqs_op"),
            ));
            aims.push(at_least(format!("{name}: % of the limit used"), USED, ours(row, "used_pct")));
        }
        aims.push(at_most(format!("{name}: windows above the limit"), 0.0, ours(row, "windows_above")));
        aims.push(at_least(format!("{name}: of 20 tries at once"), TRIES, ours(row, "tries_admitted")));
        if name == AHEAD {
            aims.push(at_most(format!("{name}: p50, µs"), AHEAD_P50, ours(row, "acq_p50_us")));
        }
    }
    for row in KEYED {
        let what = format!("{}: nodes that stay", row.name);
        aims.push(at_most(what, 0.0, ours(row, "stuck_workers")));
    }
    aims
}

/// The aims of a view besides those of every row.
fn of_view(results: &Results, kind: Kind, row: &Row) -> [Option<Aim>; 4] {
    let name = row.name;
    let rounds = results.by_round();
    // Curator's cache may stop before it has all nodes (CURATOR-690), so each figure is that of one node.
    let by_node = |figure: &dyn Fn(&Results, &str) -> Option<f64>| {
        let of =
            |round: &Results, peer| Some(figure(round, peer)? / round.median(kind, name, peer, "nodes")?);
        ratios(rounds.iter().filter_map(|round| of(round, "lockkeeper").zip(of(round, "curator"))))
    };
    let load = by_node(&|round, peer| round.median(kind, name, peer, "load_s"));
    let memory = by_node(&|round, peer| {
        let kilobytes = |field: &str| round.median(kind, name, peer, field);
        Some(kilobytes("rss_keeping_kb")? - kilobytes("rss_before_kb")?)
    });
    let reads = rounds.iter().filter_map(|round| round.median(kind, name, "lockkeeper", "snapshot_reads_s"));
    [
        at_most(
            format!("{name}: from a write to the change in the view, p50, × Curator"),
            1.0,
            results.ratio(kind, name, "curator", "acq_p50_us"),
        ),
        at_most(format!("{name}: time of the first load for each node, × Curator"), FIRST_LOAD, load),
        at_most(format!("{name}: memory for each node, × Curator"), NODE_OF_VIEW, memory),
        at_least(
            format!("{name}: reads of the snapshot, millions/s"),
            SNAPSHOT_READS,
            Spread::of(reads.map(|reads| reads / 1e6)),
        ),
    ]
}

/// The memory that each node of a view takes, in bytes.
pub(crate) fn bytes_by_node(results: &Results, kind: Kind, row: &Row, peer: &str) -> Option<Spread> {
    let rounds = results.by_round();
    Spread::of(rounds.iter().filter_map(|round| {
        let field = |field: &str| round.median(kind, row.name, peer, field);
        Some(1024.0 * (field("rss_keeping_kb")? - field("rss_before_kb")?) / field("nodes")?)
    }))
}

/// From a holder's release to the next one's grant, in the time that the release itself takes, round by
/// round.
fn handover(results: &Results, kind: Kind, row: &Row) -> Option<Spread> {
    let rounds = results.by_round();
    ratios(rounds.iter().filter_map(|round| {
        let ours = |field: &str| round.median(kind, row.name, "lockkeeper", field);
        ours("handover_p50_us").zip(ours("rel_p50_us"))
    }))
}

/// The items that moved, of those that had to.
fn moves(results: &Results, kind: Kind, row: &Row) -> Option<Spread> {
    ratios(results.by_round().iter().filter_map(|round| {
        let ours = |field: &str| round.median(kind, row.name, "lockkeeper", field);
        ours("moves").zip(ours("moves_min"))
    }))
}

/// The cost of each waiter or lock of the memory rows, in KiB.
fn memory(results: &Results) -> Vec<(&'static str, f64)> {
    let each = |name: &'static str| {
        let field = |field: &str| results.median(Kind::Tmpfs, name, "lockkeeper", field);
        if field("nodes").is_some() {
            // A view has an aim of its own: its operations are changes.
            return None;
        }
        let after = field("rss_waiting_kb").or_else(|| field("rss_keeping_kb"))?;
        Some((name, (after - field("rss_before_kb")?) / field("ops")?))
    };
    ROWS.iter().map(|row| row.name).chain(MEMORY.iter().map(|(name, _)| *name)).filter_map(each).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(figures: &[f64]) -> Option<Spread> {
        Spread::of(figures.iter().copied())
    }

    #[test]
    fn an_aim_is_met_at_its_edge_and_not_beyond() {
        assert_eq!(at_least(String::new(), 1.4, of(&[1.4])).unwrap().verdict, Verdict::Met);
        assert_eq!(at_least(String::new(), 1.4, of(&[1.39])).unwrap().verdict, Verdict::Missed);
        assert_eq!(at_most(String::new(), 0.5, of(&[0.5])).unwrap().verdict, Verdict::Met);
        assert_eq!(at_most(String::new(), 0.5, of(&[0.51])).unwrap().verdict, Verdict::Missed);
        assert!(at_most(String::new(), 0.5, None).is_none());
    }

    #[test]
    fn a_view_is_judged_by_the_node() {
        let line = |peer: &str, nodes: f64, load: f64, kept: f64| {
            serde_json::json!({
                "servers": "tmpfs", "row": "view of 100,000 nodes, changes", "peer": peer, "round": 0,
                "nodes": nodes, "load_s": load, "rss_before_kb": 1000.0, "rss_keeping_kb": 1000.0 + kept,
                "acq_p50_us": 300.0, "snapshot_reads_s": 9e6,
            })
        };
        let mut results = Results::at(tempfile());
        results.begin().unwrap();
        results.add(line("lockkeeper", 100.0, 1.0, 100.0)).unwrap();
        // Half of the nodes, in the time of all.
        results.add(line("curator", 50.0, 1.0, 100.0)).unwrap();
        let row = ROWS.iter().find(|row| row.name == "view of 100,000 nodes, changes").unwrap();
        let verdicts = of_view(&results, Kind::Tmpfs, row).map(|aim| aim.unwrap().verdict);
        std::fs::remove_file(results.file()).unwrap();
        assert_eq!(verdicts, [Verdict::Met, Verdict::Met, Verdict::Missed, Verdict::Missed]);
    }

    /// A file of this test alone.
    fn tempfile() -> std::path::PathBuf {
        std::env::temp_dir().join(format!("lockkeeper-verdict-{}.jsonl", std::process::id()))
    }

    #[test]
    fn rounds_that_disagree_are_reported() {
        assert_eq!(at_least(String::new(), 2.0, of(&[1.0, 2.0, 3.0])).unwrap().verdict, Verdict::MetByMedian);
        assert_eq!(
            at_most(String::new(), 2.0, of(&[1.0, 2.5, 3.0])).unwrap().verdict,
            Verdict::MissedByMedian
        );
    }
}
