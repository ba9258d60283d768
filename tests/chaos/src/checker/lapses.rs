//! Where the ensemble itself has broken its word.
//!
//! All promises rest on it: the quorum keeps what it has committed. No client can undo a committed write of a
//! register, whose node no client deletes, nor make servers differ for long.

use super::by_lock;
use crate::history::{History, Hold};

/// The errors of the ensemble itself; empty when it kept its guarantees, as far as the history shows.
pub(crate) fn lapses(history: &History) -> Vec<String> {
    let mut lapses = history.account.disagreements.clone();
    let holds = history.holds();
    for (lock, holds) in by_lock(&holds) {
        let last = history.account.registers.get(lock).map(|(_, version)| *version);
        lapses
            .extend(gone_back(&holds, last).map(|how| format!("the register of {lock} lost a write: {how}")));
    }
    lapses
}

/// A confirmed version, and a later one that is no greater.
fn gone_back(holds: &[&Hold], last: Option<i32>) -> Option<String> {
    // The instant of each confirmation, and an instant before its request.
    let reported = holds
        .iter()
        .flat_map(|hold| hold.committed.iter().map(|(at, version)| (*at, *version, hold.granted)));
    let mut reported: Vec<(u64, i32, u64)> = reported.collect();
    reported.sort_unstable();
    let mut highest = i32::MIN;
    let highest_by_then: Vec<(u64, i32)> = reported
        .iter()
        .map(|(at, version, _)| {
            highest = highest.max(*version);
            (*at, highest)
        })
        .collect();
    let before = |instant: u64| {
        let count = highest_by_then.partition_point(|(at, _)| *at < instant);
        highest_by_then.get(count.checked_sub(1)?).map(|(_, version)| *version)
    };
    let back = reported.iter().find_map(|(_, version, asked)| {
        let earlier = before(*asked).filter(|earlier| earlier >= version)?;
        Some(format!("version {earlier} was committed, and later {version}"))
    });
    let lost = last.filter(|last| *last < highest);
    back.or_else(|| lost.map(|last| format!("version {highest} was committed, and in the end it has {last}")))
}
