//! The writes to the registers.

use super::{Rule, Violation};
use crate::history::{Entry, Hold, Token};

/// The fenced register: it never accepts a smaller token after a greater one, and refuses no valid holder.
pub(super) fn fence(lock: &str, holds: &[&Hold], entries: &[Entry]) -> Vec<Violation> {
    let violation = |at, text| Violation { rule: Rule::Fence, lock: lock.to_owned(), at, text };
    let mut violations = Vec::new();
    for hold in holds {
        // The validity was checked after the refusal, so it held then, unless a foreign change voids the
        // claim.
        let claimed = |at| hold.valid.is_some_and(|(_, end)| at < end);
        let refused = hold.stamps.iter().find(|stamp| !stamp.accepted && stamp.valid && claimed(stamp.at));
        if let Some(stamp) = refused {
            violations.push(violation(stamp.at, format!("{} is refused while it is valid", hold.title())));
        }
    }
    let mut mark = Token::default();
    for entry in entries.iter().filter(|entry| entry.lock == lock && entry.accepted) {
        if entry.token < mark {
            violations.push(violation(entry.at, format!("token {} is accepted after {mark}", entry.token)));
        }
        if !entry.reading {
            mark = mark.max(entry.token);
        }
    }
    violations
}

/// The register in ZooKeeper, written by guarded transactions: its versions are in the order of the tokens.
/// Exact, so every write counts, whatever the clocks said. `last` is its token and version in the end.
pub(super) fn transactions(lock: &str, holds: &[&Hold], last: Option<(Token, i32)>) -> Vec<Violation> {
    let mut writes: Vec<(i32, Token, u64)> = holds
        .iter()
        .flat_map(|hold| hold.committed.iter().map(|(_, version)| (*version, hold.token, hold.granted)))
        .collect();
    writes.sort_unstable();
    let mut violations = Vec::new();
    let mut complain = |at, text| {
        violations.push(Violation { rule: Rule::Transaction, lock: lock.to_owned(), at, text });
    };
    for pair in writes.windows(2) {
        let [(before, earlier, _), (after, later, at)] = pair else { continue };
        if before == after {
            complain(*at, format!("tokens {earlier} and {later} both wrote version {after}"));
        } else if earlier > later {
            complain(*at, format!("token {later} wrote version {after}, after {earlier} wrote {before}"));
        }
    }
    if let (Some((version, token, at)), Some((last_token, last_version))) = (writes.last(), last) {
        // A holder may have written without an answer, but no older holder.
        if last_version < *version || last_token < *token || last_version == *version && last_token != *token
        {
            complain(*at, format!("{last_token} is version {last_version}, after {token} as {version}"));
        }
    }
    violations
}
