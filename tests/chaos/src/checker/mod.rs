//! Judges a history. Pure: what was written down is all it knows.
//!
//! The claim of a guard is an interval: from a check after its grant that found it valid until it was
//! released, was found invalid, or its lease, as last read, ran out. So a process that was killed or frozen
//! continues to claim until its lease ends, as the promise has it. A hold that a foreign client ended (a node
//! deleted, a session closed) claims nothing from then on; all else on the same lock still does.

mod beside;
mod exclusion;
mod fleet;
mod jobs;
mod lapses;
mod once;
mod order;
mod others;
mod register;
mod starts;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};

pub(crate) use self::lapses::lapses;
use crate::history::{History, Hold, Incident, Void};

/// A broken promise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Which one.
    pub rule: Rule,
    /// Of which lock; empty if of none alone.
    pub lock: String,
    /// When it was seen, in nanoseconds of the boot clock.
    pub at: u64,
    /// The violation in words.
    pub text: String,
}

/// The rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Rule {
    /// No two guards that exclude each other are valid at once (promise 1).
    Exclusion,
    /// No more permits are out than there are (promise 1).
    Capacity,
    /// No window has more starts of a rate limiter than it admits.
    Rate,
    /// Tokens grow in the order of grants, hand-overs included and readers among themselves excepted
    /// (promises 3 and 5): grants follow the queue, for a token begins with the zxid of the contender's
    /// create.
    Order,
    /// Each semaphore grant has a token of its own, and a nested hold that of the first (promise 3).
    Token,
    /// A resource that checks tokens refuses no valid holder, and never returns to an older token (promise
    /// 3).
    Fence,
    /// Guarded transactions are committed in the order of their tokens (promise 4).
    Transaction,
    /// A slot of a schedule is recorded once, and never due again. A once cell has one value.
    Once,
    /// `lost()` and `is_valid()` agree (promise 2).
    Loss,
    /// Each addition to a counter, or to an entry of a table, counts once, between its beginning and its end.
    Counter,
    /// Each item that was put into a work queue is done once, with its effect, or has failed.
    Queue,
    /// A view shows nothing older than it has shown, and after a sync nothing older than the call.
    View,
    /// Nobody enters a double barrier before enough members are there.
    Barrier,
    /// After the faults each item of a partition is with the member to which the hash gives it, and with no
    /// other.
    Partition,
    /// A registered node is that of one process. After the faults each living process is registered once, no
    /// dead one is, and every view of the group shows that.
    Registration,
    /// No node is left after the last release (promise 6).
    Orphan,
    /// Everyone gets everything again when the faults are over.
    Liveness,
    /// No error that waiting does not cure.
    Error,
    /// No process ends by itself.
    Death,
}

impl Display for Violation {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let Self { rule, lock, text, .. } = self;
        write!(formatter, "{rule:?}{}{lock}: {text}", if lock.is_empty() { "" } else { " of " })
    }
}

/// All violations, in the order of time.
pub(crate) fn judge(history: &History) -> Vec<Violation> {
    let reported = history.holds();
    let mut claimed = reported.clone();
    let first = first_grants(&reported);
    for hold in &mut claimed {
        void(hold, &first, &history.account.incidents);
    }
    let mut violations = Vec::new();
    for (lock, holds) in by_lock(&claimed) {
        violations.extend(exclusion::judge(lock, &holds));
        violations.extend(order::judge(lock, &holds));
        violations.extend(register::fence(lock, &holds, &history.account.stamps));
    }
    // A foreign change voids nothing here.
    for (lock, holds) in by_lock(&reported) {
        let last = history.account.registers.get(lock).copied();
        violations.extend(register::transactions(lock, &holds, last));
        violations.extend(others::holds(lock, &holds));
        violations.extend(once::slots(lock, &holds));
    }
    violations.extend(starts::judge(history));
    violations.extend(once::values(history));
    violations.extend(others::run(history));
    violations.extend(beside::judge(history));
    violations.extend(fleet::judge(history));
    violations.extend(jobs::judge(history));
    violations.sort_by_key(|violation| violation.at);
    violations
}

/// The holds of each lock, in the order in which they began to claim.
fn by_lock(holds: &[Hold]) -> BTreeMap<&str, Vec<&Hold>> {
    let mut by_lock: BTreeMap<&str, Vec<&Hold>> = BTreeMap::new();
    for hold in holds {
        by_lock.entry(&hold.lock).or_default().push(hold);
    }
    for holds in by_lock.values_mut() {
        holds.sort_by_key(|hold| (hold.valid.map_or(hold.granted, |(start, _)| start), hold.token));
    }
    by_lock
}

/// When each node was granted first. What is handed over within a process later rests on the same node.
fn first_grants(holds: &[Hold]) -> BTreeMap<&str, u64> {
    let mut first = BTreeMap::new();
    for hold in holds {
        for node in &hold.nodes {
            let granted = first.entry(node.as_str()).or_insert(hold.granted);
            *granted = hold.granted.min(*granted);
        }
    }
    first
}

/// Shortens the claim of a hold to the time before a foreign change.
fn void(hold: &mut Hold, first: &BTreeMap<&str, u64>, incidents: &[Incident]) {
    let nodes = hold.nodes.iter().filter_map(|node| first.get(node.as_str()).copied());
    let granted = nodes.min().unwrap_or(hold.granted);
    for incident in incidents {
        for void in &incident.voids {
            match void {
                // A grant in the session's last moments cannot be distinguished from a grant of the next
                // session.
                Void::Session { client } if hold.client() == client && granted < incident.stop => {
                    hold.clip(incident.start);
                }
                Void::Node { path, at } if hold.nodes.contains(path) => hold.clip(*at),
                _ => {}
            }
        }
    }
}
