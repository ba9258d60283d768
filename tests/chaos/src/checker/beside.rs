//! The rules for the counter, the entries of the table, the views and the double barrier.

use std::collections::BTreeMap;

use lockkeeper_test_recipes::{Addition, AdditionEnd, judge_additions};

use super::{Rule, Violation};
use crate::fixture::MEMBERS;
use crate::history::{Event, History, What};

pub(super) fn judge(history: &History) -> Vec<Violation> {
    counter(history).into_iter().chain(views(history)).chain(barrier(history)).collect()
}

/// Every addition, to the counter or to an entry of the table, counts once, and takes effect between its
/// beginning and its end.
fn counter(history: &History) -> Vec<Violation> {
    let mut additions: BTreeMap<(&str, u64), (&str, Addition)> = BTreeMap::new();
    for (process, events) in &history.processes {
        for Event { at, what, .. } in events {
            let begun = Addition { begun: *at, end: AdditionEnd::Unknown };
            let (attempt, end) = match what {
                What::Adding { attempt } => {
                    additions.insert((process, *attempt), ("", begun));
                    continue;
                }
                What::Updating { attempt, entry } => {
                    additions.insert((process, *attempt), (entry, begun));
                    continue;
                }
                What::Added { attempt, sum } | What::Updated { attempt, sum } => {
                    (attempt, AdditionEnd::Sum(*sum, *at))
                }
                What::NotAdded { attempt } | What::NotUpdated { attempt } => (attempt, AdditionEnd::NotAdded),
                _ => continue,
            };
            if let Some((_, addition)) = additions.get_mut(&(process.as_str(), *attempt)) {
                addition.end = end;
            }
        }
    }
    let mut of_each: BTreeMap<&str, Vec<Addition>> = BTreeMap::new();
    for (number, addition) in additions.into_values() {
        of_each.entry(number).or_default().push(addition);
    }
    let account = &history.account;
    // A number that nobody has added to is zero.
    account.entries.keys().for_each(|entry| _ = of_each.entry(entry).or_default());
    of_each.entry("").or_default();
    let violation = |(number, additions): (&str, Vec<Addition>)| {
        let last = match number {
            "" => account.number,
            entry => account.entries.get(entry).copied().unwrap_or_default(),
        };
        let text = judge_additions(&additions, last).err()?;
        let lock = if number.is_empty() { String::new() } else { format!("table/{number}") };
        Some(Violation { rule: Rule::Counter, lock, at: account.healed.unwrap_or_default(), text })
    };
    of_each.into_iter().filter_map(violation).collect()
}

/// No view shows an older state after a newer one, and after a sync none shows anything older than the call.
fn views(history: &History) -> Vec<Violation> {
    let holds = history.holds();
    let mut committed: Vec<(u64, &str, i32)> = holds
        .iter()
        .flat_map(|hold| hold.committed.iter().map(|(at, version)| (*at, hold.lock.as_str(), *version)))
        .collect();
    committed.sort_unstable();
    let mut violations = Vec::new();
    for (process, events) in &history.processes {
        let mut newest: BTreeMap<&str, i32> = BTreeMap::new();
        let mut complain = |at: u64, lock: &str, text: String| {
            let text = format!("{process}: {text}");
            violations.push(Violation { rule: Rule::View, lock: lock.to_owned(), at, text });
        };
        for Event { at, what, .. } in events {
            match what {
                What::Shown { register, version } => {
                    let earlier = newest.insert(register, *version);
                    if let Some(earlier) = earlier.filter(|earlier| earlier >= version) {
                        complain(*at, register, format!("shows version {version} after {earlier}"));
                    }
                }
                What::Synced { asked, registers } => {
                    let before = committed.partition_point(|(committed, ..)| committed < asked);
                    let before = committed.get(..before).unwrap_or_default();
                    let is_older = |(_, lock, version): &&(u64, &str, i32)| {
                        registers.get(*lock).is_none_or(|shown| shown < version)
                    };
                    if let Some((_, lock, version)) = before.iter().rev().find(is_older) {
                        let shown = registers.get(*lock);
                        complain(*at, lock, format!("shows {shown:?} after a sync, not version {version}"));
                    }
                }
                _ => {}
            }
        }
    }
    violations
}

/// The time in which a client may be a member of the double barrier, and when it was let in.
struct Membership<'a> {
    process: &'a str,
    asked: u64,
    over: u64,
    entered: Option<u64>,
}

/// Nobody is let in before enough members are there at one instant.
fn barrier(history: &History) -> Vec<Violation> {
    let mut members = Vec::new();
    for (process, events) in &history.processes {
        let mut attempts: BTreeMap<u64, Membership<'_>> = BTreeMap::new();
        for Event { at, what, .. } in events {
            match what {
                What::Entering { attempt } => {
                    // Without the end of a leave, its node may exist as long as its session does.
                    let member = Membership { process, asked: *at, over: u64::MAX, entered: None };
                    attempts.insert(*attempt, member);
                }
                What::Entered { attempt } => {
                    if let Some(member) = attempts.get_mut(attempt) {
                        member.entered = Some(*at);
                    }
                }
                What::Left { attempt } => {
                    if let Some(member) = attempts.get_mut(attempt) {
                        member.over = *at;
                    }
                }
                _ => {}
            }
        }
        members.extend(attempts.into_values());
    }
    let is_together = |at: u64| {
        let here = members.iter().filter(|one| one.asked <= at && at < one.over);
        here.map(|_| 1_u32).sum::<u32>() >= MEMBERS
    };
    let mut violations = Vec::new();
    for member in &members {
        let Some(entered) = member.entered else { continue };
        // The number of members grows only where one asks.
        let asks = members.iter().map(|one| one.asked);
        let mut asks = asks.filter(|at| (member.asked..=entered).contains(at));
        if !asks.any(is_together) {
            let text = format!("{} was let in, and was never there with another member", member.process);
            violations.push(Violation { rule: Rule::Barrier, lock: String::new(), at: entered, text });
        }
    }
    violations
}
