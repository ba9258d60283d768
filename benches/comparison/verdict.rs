//! What was aimed at, and whether it is reached.

use crate::bound;
use crate::plan::{DROPPED, MEMORY, ROWS, UNCONTENDED};
use crate::results::Results;
use crate::servers::Kind;

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

/// One aim.
#[derive(Debug)]
pub(crate) struct Aim {
    pub(crate) what: String,
    pub(crate) target: String,
    pub(crate) measured: String,
    pub(crate) met: bool,
}

fn at_least(what: String, target: f64, measured: Option<f64>) -> Option<Aim> {
    let measured = measured?;
    let met = measured >= target;
    Some(Aim { what, target: format!("≥ {target}"), measured: format!("{measured:.2}"), met })
}

fn at_most(what: String, target: f64, measured: Option<f64>) -> Option<Aim> {
    let measured = measured?;
    let met = measured <= target;
    Some(Aim { what, target: format!("≤ {target}"), measured: format!("{measured:.2}"), met })
}

/// All aims that something was measured for, on one server with its data in memory.
pub(crate) fn aims(results: &Results) -> Vec<Aim> {
    let kind = Kind::Tmpfs;
    let ratio =
        |row: &str, field: &str| results.ratio(kind, row, "curator", field).map(|spread| spread.median);
    let ours = |row: &str, field: &str| results.median(kind, row, "lockkeeper", field);
    let mut aims = Vec::new();
    for row in ROWS {
        let name = row.name;
        aims.push(at_least(format!("{name}: operations, × Curator"), row.target, ratio(name, "ops_s")));
    }
    let uncontended = ROWS.iter().find(|row| row.name == UNCONTENDED);
    let share = uncontended.and_then(|row| bound::share(results, kind, row)).map(|share| share.median);
    aims.push(at_least(format!("{UNCONTENDED}: operations, × bare writes"), OF_BARE, share));
    aims.push(at_most(format!("{DROPPED}: requests of a cycle"), REQUESTS, ours(DROPPED, "reqs_op")));
    for row in ROWS.iter().filter(|row| row.scenario() == "handoff") {
        let pair = ours(row.name, "handover_p50_us").zip(ours(row.name, "rel_p50_us"));
        let what = format!("{}: hand-over, × the release's own time", row.name);
        aims.push(at_most(what, HANDOVER, pair.map(|(handover, release)| handover / release)));
    }
    for row in ROWS {
        let what = format!("{}: acquire p99, × Curator", row.name);
        aims.push(at_most(what, 1.0, ratio(row.name, "acq_p99_us")));
    }
    for row in ROWS {
        let what = format!("{}: client CPU of an operation, × Curator", row.name);
        aims.push(at_most(what, PROCESSOR, ratio(row.name, "cli_cpu_us_op")));
    }
    for (name, each) in memory(results) {
        aims.push(at_most(format!("{name}: memory of each, KiB"), WAITER, Some(each)));
    }
    aims.into_iter().flatten().collect()
}

/// What each waiter or lock of the memory rows costs, in KiB.
fn memory(results: &Results) -> Vec<(&'static str, f64)> {
    let each = |(name, _): &(&'static str, &str)| {
        let field = |field: &str| results.median(Kind::Tmpfs, name, "lockkeeper", field);
        let after = field("rss_waiting_kb").or_else(|| field("rss_keeping_kb"))?;
        Some((*name, (after - field("rss_before_kb")?) / field("ops")?))
    };
    MEMORY.iter().filter_map(each).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_aim_is_met_at_its_edge_and_not_beyond() {
        assert!(at_least(String::new(), 1.4, Some(1.4)).unwrap().met);
        assert!(!at_least(String::new(), 1.4, Some(1.39)).unwrap().met);
        assert!(at_most(String::new(), 0.5, Some(0.5)).unwrap().met);
        assert!(!at_most(String::new(), 0.5, Some(0.51)).unwrap().met);
        assert!(at_most(String::new(), 0.5, None).is_none());
    }
}
