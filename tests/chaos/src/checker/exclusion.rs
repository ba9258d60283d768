//! Which holds may be valid at the same time.

use super::{Rule, Violation};
use crate::fixture;
use crate::history::{Hold, Mode};

/// Holds that claim the same instant, though they exclude each other or are too many.
pub(super) fn judge(lock: &str, holds: &[&Hold]) -> Vec<Violation> {
    // An item of the partition is no lock of the soak, and has one owner.
    let (limit, nests) =
        fixture::named(lock).map_or((None, false), |soak_lock| (soak_lock.limit, soak_lock.nests));
    let mut violations = Vec::new();
    let mut valid: Vec<(&Hold, u64)> = Vec::new();
    for hold in holds {
        let Some((start, end)) = hold.valid else { continue };
        valid.retain(|(_, end)| *end > start);
        if let Some(limit) = limit {
            let out: u32 = permits(hold) + valid.iter().map(|(other, _)| permits(other)).sum::<u32>();
            if out > limit {
                let text = format!("{out} permits of {limit} are out when {} is granted", hold.title());
                violations.push(Violation { rule: Rule::Capacity, lock: lock.to_owned(), at: start, text });
            }
        } else {
            for (other, end) in valid.iter().filter(|(other, _)| conflict(nests, hold, other)) {
                let left = end.saturating_sub(start) / 1_000;
                let text =
                    format!("{} is granted while {}, valid for {left} µs more", hold.title(), other.title());
                violations.push(Violation { rule: Rule::Exclusion, lock: lock.to_owned(), at: start, text });
            }
        }
        valid.push((hold, end));
    }
    violations
}

fn conflict(nests: bool, one: &Hold, other: &Hold) -> bool {
    let may_nest = nests && one.same_owner(other);
    !may_nest && (one.mode == Mode::Alone || other.mode == Mode::Alone)
}

fn permits(hold: &Hold) -> u32 {
    match hold.mode {
        Mode::Permits(permits) => permits,
        _ => 1,
    }
}
