//! The starts that a rate limiter admitted.

use std::collections::BTreeMap;

use super::{Rule, Violation};
use crate::history::{Event, History, What};

/// No window has more starts than its limit. A start is at the instant that its process wrote down, at which
/// its admission was fresh.
pub(super) fn judge(history: &History) -> Vec<Violation> {
    let mut starts: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    for Event { at, what, .. } in history.processes.values().flatten() {
        if let What::Started { lock, starts: count, .. } = what {
            starts.entry(lock).or_default().extend((0..*count).map(|_| *at));
        }
    }
    history.account.limiters.iter().flat_map(|limiter| over(limiter, &mut starts)).collect()
}

fn over((lock, limit, window): &(String, u32, u64), starts: &mut BTreeMap<&str, Vec<u64>>) -> Vec<Violation> {
    let mut starts = starts.remove(lock.as_str()).unwrap_or_default();
    starts.sort_unstable();
    let last = starts.iter().skip(usize::try_from(*limit).unwrap_or(usize::MAX));
    let full = starts.iter().zip(last).filter(|(first, last)| *last - *first < *window);
    let violation = |(first, last): (&u64, &u64)| Violation {
        rule: Rule::Rate,
        lock: lock.clone(),
        at: *last,
        text: format!(
            "{} starts within {} µs, of {limit} in {} µs",
            limit + 1,
            (last - first) / 1_000,
            window / 1_000
        ),
    };
    full.map(violation).collect()
}
