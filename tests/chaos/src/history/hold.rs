//! A hold, as its client knew it.

use std::collections::BTreeMap;

use super::event::{Event, Mode, What};
use super::token::Token;

/// One hold of one lock.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Hold {
    /// The process, such as `c1.0`: the client and how often it was started before.
    pub(crate) process: String,
    pub(crate) task: usize,
    pub(crate) lock: String,
    pub(crate) mode: Mode,
    pub(crate) token: Token,
    pub(crate) nodes: Vec<String>,
    pub(crate) granted: u64,
    /// The span in which the guard claims to be valid: from a check after the grant until it was released,
    /// was seen to be invalid, or its lease, as last read, ran out. `None` if it never was.
    pub(crate) valid: Option<(u64, u64)>,
    /// When the client stopped to believe in it.
    pub(crate) over: Option<u64>,
    /// When and why it was seen to be lost.
    pub(crate) lost: Option<(u64, String)>,
    /// How it was given back.
    pub(crate) released: Option<String>,
    /// The instant and the version of its confirmed write to the transactional register.
    pub(crate) committed: Vec<(u64, i32)>,
    pub(crate) stamps: Vec<Stamp>,
    /// The slot of a schedule that it is.
    pub(crate) slot: Option<u64>,
    /// Tokens of nested holds.
    pub(crate) again: Vec<Token>,
    pub(crate) contradictions: Vec<(u64, String)>,
}

/// An answer of the fenced register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(crate) at: u64,
    pub(crate) accepted: bool,
    pub(crate) valid: bool,
}

impl Hold {
    /// The client, such as `c1`.
    pub(crate) fn client(&self) -> &str {
        client_of(&self.process)
    }

    /// Whether both are holds of one task, and so of one owner.
    pub(crate) fn same_owner(&self, other: &Self) -> bool {
        self.process == other.process && self.task == other.task
    }

    /// Its name in a violation.
    pub(crate) fn title(&self) -> String {
        format!("{} task {} token {} ({:?})", self.process, self.task, self.token, self.mode)
    }

    /// Claims nothing from `at` on.
    pub(crate) fn clip(&mut self, at: u64) {
        self.valid = self.valid.map(|(start, end)| (start, end.min(at))).filter(|(start, end)| start < end);
    }
}

/// The client of a process.
pub(crate) fn client_of(process: &str) -> &str {
    process.split('.').next().unwrap_or(process)
}

/// Puts the holds of one process together.
pub(crate) fn holds(process: &str, events: &[Event]) -> Vec<Hold> {
    let mut holds: BTreeMap<u64, Hold> = BTreeMap::new();
    for Event { at, task, what } in events {
        if let What::Granted { hold, lock, mode, token, nodes, .. } = what {
            holds.insert(
                *hold,
                Hold {
                    process: process.to_owned(),
                    task: *task,
                    lock: lock.clone(),
                    mode: *mode,
                    token: *token,
                    nodes: nodes.clone(),
                    granted: *at,
                    valid: None,
                    over: None,
                    lost: None,
                    released: None,
                    committed: Vec::new(),
                    stamps: Vec::new(),
                    slot: None,
                    again: Vec::new(),
                    contradictions: Vec::new(),
                },
            );
        } else if let Some(hold) = hold_of(what).and_then(|hold| holds.get_mut(&hold)) {
            hold.take(*at, what);
        }
    }
    holds.into_values().collect()
}

impl Hold {
    fn take(&mut self, at: u64, what: &What) {
        match what {
            What::Valid { until, .. } => {
                let start = self.valid.map_or(at, |(start, _)| start);
                self.valid = Some((start, *until));
            }
            What::Invalid { why, .. } => {
                self.clip(at);
                self.over.get_or_insert(at);
                self.lost.get_or_insert_with(|| (at, why.clone()));
            }
            What::Ended { .. } => {
                self.clip(at);
                self.over.get_or_insert(at);
            }
            What::Released { outcome, .. } => self.released = Some(outcome.clone()),
            What::Committed { version, .. } => self.committed.push((at, *version)),
            What::Stamped { accepted, valid, .. } => {
                self.stamps.push(Stamp { at, accepted: *accepted, valid: *valid });
            }
            What::Due { slot, .. } => self.slot = Some(*slot),
            What::Again { token, .. } => self.again.push(*token),
            What::Contradiction { text, .. } => self.contradictions.push((at, text.clone())),
            _ => {}
        }
    }
}

fn hold_of(what: &What) -> Option<u64> {
    match what {
        What::Again { hold, .. }
        | What::Due { hold, .. }
        | What::Valid { hold, .. }
        | What::Invalid { hold, .. }
        | What::Contradiction { hold, .. }
        | What::Ended { hold }
        | What::Released { hold, .. }
        | What::Committed { hold, .. }
        | What::Uncommitted { hold, .. }
        | What::Stamped { hold, .. } => Some(*hold),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn granted() -> Event {
        let what = What::Granted {
            attempt: 1,
            hold: 2,
            lock: "mutex".to_owned(),
            mode: Mode::Alone,
            token: Token { zxid: 5, handover: 0 },
            nodes: vec!["/n".to_owned()],
        };
        Event { at: 10, task: 0, what }
    }

    fn valid(whats: &[(u64, What)]) -> Option<(u64, u64)> {
        let rest = whats.iter().map(|(at, what)| Event { at: *at, task: 0, what: what.clone() });
        let events: Vec<Event> = std::iter::once(granted()).chain(rest).collect();
        holds("c1.0", &events).remove(0).valid
    }

    #[test]
    fn a_hold_claims_validity_until_it_ends_or_its_lease_does() {
        let seen = |until| What::Valid { hold: 2, until };
        assert_eq!(valid(&[]), None, "the guard was never checked");
        assert_eq!(valid(&[(11, seen(90))]), Some((11, 90)), "killed: its lease counts");
        assert_eq!(valid(&[(11, seen(90)), (50, seen(120))]), Some((11, 120)));
        assert_eq!(valid(&[(11, seen(90)), (60, What::Ended { hold: 2 })]), Some((11, 60)));
        let invalid = What::Invalid { hold: 2, why: String::new() };
        assert_eq!(valid(&[(11, seen(90)), (70, invalid.clone())]), Some((11, 70)));
        assert_eq!(valid(&[(11, seen(90)), (170, invalid.clone())]), Some((11, 90)), "frozen meanwhile");
        assert_eq!(valid(&[(11, invalid)]), None, "lost before it was known");
    }
}
