//! What a fleet does once.

use std::collections::BTreeMap;

use super::{Rule, Violation};
use crate::history::{History, Hold, What};

/// The outcome of a slot that was recorded.
const RECORDED: &str = "released";

/// The slots of a schedule, in the order of the tokens: a slot is due only after those that earlier holders
/// recorded. Exact, whatever the clocks said: a record is committed while its holder is the head, and the
/// next head reads it.
pub(super) fn slots(lock: &str, holds: &[&Hold]) -> Vec<Violation> {
    let mut due: Vec<(&Hold, u64)> = holds.iter().filter_map(|hold| Some((*hold, hold.slot?))).collect();
    due.sort_by_key(|(hold, _)| hold.token);
    let mut violations = Vec::new();
    let mut last: Option<(&Hold, u64)> = None;
    for (hold, slot) in due {
        if let Some((recorder, recorded)) = last.filter(|(_, recorded)| slot <= *recorded) {
            let text =
                format!("{} has slot {slot}, after {} recorded {recorded}", hold.title(), recorder.title());
            violations.push(Violation { rule: Rule::Once, lock: lock.to_owned(), at: hold.granted, text });
        } else if hold.released.as_deref() == Some(RECORDED) {
            last = Some((hold, slot));
        }
    }
    violations
}

/// The values of the once cells: every call of every process returned the same.
pub(super) fn values(history: &History) -> Vec<Violation> {
    let mut first: BTreeMap<u64, &str> = BTreeMap::new();
    let mut violations = Vec::new();
    for (process, events) in &history.processes {
        for event in events {
            let What::Value { cell, value } = &event.what else { continue };
            let expected = *first.entry(*cell).or_insert(value);
            if value != expected {
                let text = format!("{process} got {value} from cell {cell}, and another call got {expected}");
                violations.push(Violation { rule: Rule::Once, lock: "cells".to_owned(), at: event.at, text });
            }
        }
    }
    violations
}
