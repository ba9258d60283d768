//! The rules for single holds, and for the run as a whole.

use std::collections::BTreeSet;

use super::{Rule, Violation};
use crate::history::{Event, History, Hold, What, client_of};

/// The contradictions within a hold.
pub(super) fn holds(lock: &str, holds: &[&Hold]) -> Vec<Violation> {
    let violation = |hold: &Hold, at, text: &str| {
        let text = format!("{}: {text}", hold.title());
        Violation { rule: Rule::Loss, lock: lock.to_owned(), at, text }
    };
    let of = |hold: &&Hold| -> Vec<Violation> {
        hold.contradictions.iter().map(|(at, text)| violation(hold, *at, text)).collect()
    };
    holds.iter().flat_map(of).collect()
}

/// The violations of the run as a whole.
pub(super) fn run(history: &History) -> Vec<Violation> {
    let account = &history.account;
    let end = account.healed.unwrap_or_default();
    let violation = |rule, lock: &str, text| Violation { rule, lock: lock.to_owned(), at: end, text };
    let orphans = account.orphans.iter().map(|node| {
        // `/chaos/locks/<lock>/…`
        let lock = node.split('/').nth(3).unwrap_or_default();
        violation(Rule::Orphan, lock, format!("{node} is left"))
    });
    let unserved = account
        .unserved
        .iter()
        .map(|(client, lock)| violation(Rule::Liveness, lock, waits_in_vain(history, client, lock)));
    let died = account.died.iter().map(|how| violation(Rule::Death, "", how.clone()));
    let errors = history.processes.iter().flat_map(|(process, events)| {
        events.iter().filter_map(move |event| match event {
            Event { at, task, what: What::Failed { error, transient: false, .. } } => Some(Violation {
                rule: Rule::Error,
                lock: String::new(),
                at: *at,
                text: format!("{process} task {task}: {error}"),
            }),
            _ => None,
        })
    });
    orphans.chain(unserved).chain(died).chain(errors).collect()
}

/// A client that was not granted a lock again, with the error of its last attempt.
fn waits_in_vain(history: &History, client: &str, lock: &str) -> String {
    let mut last = (0, "");
    for (process, events) in &history.processes {
        let mut attempts = BTreeSet::new();
        for Event { at, what, .. } in events.iter().filter(|_| client_of(process) == client) {
            match what {
                What::Asked { attempt, locks } if locks.iter().any(|asked| asked == lock) => {
                    attempts.insert(*attempt);
                }
                What::GaveUp { attempt, why } if attempts.contains(attempt) && !why.is_empty() => {
                    last = last.max((*at, why));
                }
                _ => {}
            }
        }
    }
    format!("{client} was not granted it again. {}", last.1)
}
