//! The part of the page about limits, and about nodes that stay in the process.

use crate::plan::{KEPT_NODES, KEYED, LIMITS, Row};
use crate::results::Results;
use crate::servers::Kind;
use crate::table::{figure, line, spread, table};

/// Starts of limiters, and nodes that stay in the process.
pub(crate) fn write(page: &mut String, results: &Results, kind: Kind) {
    let of = |row: &Row, peer: &str, field: &str| results.spread(kind, row.name, peer, field);
    let ratio = |row: &Row, peer: &str| spread(results.ratio(kind, row.name, peer, "ops_s"), 2);
    let measured = |row: &&Row| of(row, "lockkeeper", "ops_s").is_some();
    let limits = LIMITS.iter().filter(measured).map(|row| {
        format!(
            "| {} | {} | {} | {} | {} | {} | {} | {} |",
            row.name,
            spread(of(row, "lockkeeper", "ops_s"), 0),
            ratio(row, "redis"),
            ratio(row, "governor"),
            spread(of(row, "lockkeeper", "reqs_op"), 2),
            spread(of(row, "lockkeeper", "acq_p50_us"), 0),
            spread(of(row, "lockkeeper", "used_pct"), 1),
            spread(of(row, "lockkeeper", "windows_above"), 0),
        )
    });
    let head = [
        "Starts of a rate limiter. Beside it a script of GCRA on Redis, and the crate `governor`, which",
        "limits one process alone: both admit up to twice their limit in a window that begins with a burst.",
        "",
        "| load | lockkeeper, starts/s | × Redis | × governor | requests of a start | p50, µs \
         | % of the limit used | windows above it |",
        "|---|---|---|---|---|---|---|---|",
    ];
    table(page, head, limits.collect());
    let kept = KEPT_NODES.iter().filter(measured).map(|row| {
        format!(
            "| {} | {} | {} | {} |",
            row.name,
            spread(of(row, "lockkeeper", "ops_s"), 0),
            ratio(row, "curator"),
            spread(of(row, "lockkeeper", "reqs_op"), 3),
        )
    });
    let head = [
        "Permits and readers that stay in the process, by `with_handoff()`, beside a Curator that sends",
        "requests to the servers each time:",
        "",
        "| load | lockkeeper, ops/s | × Curator | requests of an operation |",
        "|---|---|---|---|",
    ];
    table(page, head, kept.collect());
    for row in KEYED.iter().filter(measured) {
        let kilobytes = |field: &str| results.median(kind, row.name, "lockkeeper", field);
        let by_key = kilobytes("rss_keeping_kb").zip(kilobytes("rss_before_kb"));
        let keys = results.median(kind, row.name, "lockkeeper", "ops");
        let bytes = by_key.zip(keys).map(|((with, before), keys)| (with - before) * 1024.0 / keys);
        let field = |field: &str, decimals| spread(of(row, "lockkeeper", field), decimals);
        line(
            page,
            &format!(
                "\nA start of each of {}: {} a second, {} requests each; {} bytes of memory for each key \
                 while its starts count. Nodes that stayed when they counted no more: {}.",
                row.name,
                field("ops_s", 0),
                field("reqs_op", 2),
                figure(bytes, 0),
                field("stuck_workers", 0),
            ),
        );
    }
}
