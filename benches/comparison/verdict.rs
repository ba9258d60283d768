//! The aims, and whether they are reached.

use crate::bound;
use crate::plan::{DROPPED, HELD, MEMORY, ROWS, Row, UNCONTENDED};
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
    Some(Aim { what, target: format!("≥ {target}"), measured, verdict })
}

fn at_most(what: String, target: f64, measured: Option<Spread>) -> Option<Aim> {
    let measured = measured?;
    let verdict = Verdict::of(measured, |figure| figure <= target);
    Some(Aim { what, target: format!("≤ {target}"), measured, verdict })
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
    for row in ROWS.iter().filter(|row| row.name == HELD) {
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
    for (name, each) in memory(results) {
        aims.push(at_most(format!("{name}: memory of each, KiB"), WAITER, Spread::of([each])));
    }
    aims.into_iter().flatten().collect()
}

/// From a holder's release to the next one's grant, in the time that the release itself takes, round by round.
fn handover(results: &Results, kind: Kind, row: &Row) -> Option<Spread> {
    let rounds = results.by_round();
    ratios(rounds.iter().filter_map(|round| {
        let ours = |field: &str| round.median(kind, row.name, "lockkeeper", field);
        ours("handover_p50_us").zip(ours("rel_p50_us"))
    }))
}

/// The cost of each waiter or lock of the memory rows, in KiB.
fn memory(results: &Results) -> Vec<(&'static str, f64)> {
    let each = |name: &'static str| {
        let field = |field: &str| results.median(Kind::Tmpfs, name, "lockkeeper", field);
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
    fn rounds_that_disagree_are_told() {
        assert_eq!(at_least(String::new(), 2.0, of(&[1.0, 2.0, 3.0])).unwrap().verdict, Verdict::MetByMedian);
        assert_eq!(
            at_most(String::new(), 2.0, of(&[1.0, 2.5, 3.0])).unwrap().verdict,
            Verdict::MissedByMedian
        );
    }
}
