//! The rule for the items of a work queue. That no two clients have an item at the same time, and that its
//! tokens grow, is judged as for every lock.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Display, Formatter};

use super::{Rule, Violation};
use crate::fixture::{self, JOB_ATTEMPTS};
use crate::history::{Event, History, Jobs, What};

/// What the clients know of an item.
#[derive(Default)]
struct Item<'a> {
    /// The calls that were to put it, and those that did not.
    calls: usize,
    refused: usize,
    /// A call was answered: it is put.
    is_put: bool,
    /// The holds of the clients that took it, as its effects name them.
    holds: BTreeSet<String>,
    done: Vec<String>,
    not_done: Vec<String>,
    /// The nodes that it had when it was taken.
    paths: BTreeSet<&'a str>,
    /// A hold that has moved it to the failed items.
    moved_by: Option<String>,
}

/// How often an item is where it may be in the end.
#[derive(Default)]
struct Places<'a> {
    waiting: usize,
    failed: usize,
    effects: Vec<&'a str>,
    drained: usize,
}

/// Each item that was put is done once, with its effect, or has failed; one whose put has no known outcome at
/// most once.
pub(super) fn judge(history: &History) -> Vec<Violation> {
    let items = items(history);
    let mut places = places(history);
    let at = history.account.quiet.unwrap_or_default();
    let mut violations = Vec::new();
    let mut complain = |item: &str, text: String| {
        let lock = fixture::lock_of_job(item);
        violations.push(Violation { rule: Rule::Queue, lock, at, text });
    };
    for (name, item) in &items {
        let places = places.remove(name).unwrap_or_default();
        contradictions(item, &places).into_iter().for_each(|text| complain(name, text));
    }
    for (name, places) in places {
        complain(name, format!("nobody has put it, and it is {places}"));
    }
    violations
}

fn contradictions(item: &Item<'_>, places: &Places<'_>) -> Vec<String> {
    let mut found = Vec::new();
    match places.count() {
        0 if item.is_put => found.push("it was put, and is lost".to_owned()),
        0 => {}
        _ if item.refused >= item.calls => {
            found.push(format!("every call to put it said that it did not, and it is {places}"));
        }
        1 if places.waiting > 0 && item.is_put => found.push("it was put, and still waits".to_owned()),
        1 => {}
        _ => found.push(format!("it is {places}")),
    }
    let has_effect = |hold: &String| places.effects.contains(&hold.as_str());
    let of_nobody = places.effects.iter().find(|by| {
        let is_of_driver = **by == Jobs::DRIVER && places.drained > 0;
        !is_of_driver && !item.holds.contains(**by)
    });
    found.extend(of_nobody.map(|by| format!("it has an effect of {by}, who never had it")));
    let missing = item.done.iter().find(|hold| !has_effect(hold));
    found.extend(missing.map(|hold| format!("{hold} ended it, and its effect is missing")));
    let extra = item.not_done.iter().find(|hold| has_effect(hold));
    found.extend(extra.map(|hold| format!("{hold} did not end it, and its effect is there")));
    if let Some(hold) = item.moved_by.as_ref().filter(|_| places.failed == 0) {
        found.push(format!("{hold} moved it to the failed items, and it is {places}"));
    }
    if item.paths.len() > 1 {
        found.push(format!("it has more than one node: {:?}", item.paths));
    }
    let taken = item.holds.len() + places.drained;
    if taken > usize::try_from(JOB_ATTEMPTS).unwrap_or(usize::MAX) {
        found.push(format!("it was taken {taken} times, of {JOB_ATTEMPTS} at most"));
    }
    found
}

fn items(history: &History) -> BTreeMap<&str, Item<'_>> {
    let mut items: BTreeMap<&str, Item<'_>> = BTreeMap::new();
    for (process, events) in &history.processes {
        let (mut attempts, mut holds) = (BTreeMap::new(), BTreeMap::new());
        for Event { what, .. } in events {
            match what {
                What::Putting { attempt, items: put } => {
                    attempts.insert(*attempt, put);
                    put.iter().for_each(|item| items.entry(item).or_default().calls += 1);
                }
                What::Put { attempt } | What::NotPut { attempt } => {
                    for item in attempts.remove(attempt).into_iter().flatten() {
                        let item = items.entry(item).or_default();
                        match what {
                            What::Put { .. } => item.is_put = true,
                            _ => item.refused += 1,
                        }
                    }
                }
                What::Granted { hold, lock, .. } => {
                    if let Some(name) = fixture::job_of(lock) {
                        holds.insert(*hold, name);
                        items.entry(name).or_default().holds.insert(format!("{process} {hold}"));
                    }
                }
                What::Taken { hold, path } => {
                    let item = holds.get(hold).map(|item| items.entry(item).or_default());
                    item.map(|item| item.paths.insert(path));
                }
                What::Done { hold } | What::NotDone { hold } | What::MovedToFailed { hold } => {
                    let Some(item) = holds.get(hold) else { continue };
                    let (item, hold) = (items.entry(item).or_default(), format!("{process} {hold}"));
                    match what {
                        What::Done { .. } => item.done.push(hold),
                        What::NotDone { .. } => item.not_done.push(hold),
                        _ => item.moved_by = Some(hold),
                    }
                }
                _ => {}
            }
        }
    }
    items
}

fn places(history: &History) -> BTreeMap<&str, Places<'_>> {
    let jobs = &history.account.jobs;
    let mut places: BTreeMap<&str, Places<'_>> = BTreeMap::new();
    jobs.waiting.iter().for_each(|item| places.entry(item).or_default().waiting += 1);
    jobs.failed.iter().for_each(|item| places.entry(item).or_default().failed += 1);
    jobs.drained.iter().for_each(|item| places.entry(item).or_default().drained += 1);
    jobs.effects.iter().for_each(|(item, by)| places.entry(item).or_default().effects.push(by));
    places
}

impl Places<'_> {
    fn count(&self) -> usize {
        self.waiting + self.failed + self.effects.len()
    }
}

impl Display for Places<'_> {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let Self { waiting, failed, effects, .. } = self;
        write!(formatter, "{waiting} times in the queue, {failed} times failed, and done by {effects:?}")
    }
}
