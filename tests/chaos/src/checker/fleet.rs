//! What a fleet shares out and registers.

use std::collections::BTreeMap;

use lockkeeper::Partition;

use super::{Rule, Violation};
use crate::fixture::{self, INSTANCE, MEMBER, SINGLE};
use crate::history::{Account, Event, History, Hold, What, client_of};

pub(super) fn judge(history: &History) -> Vec<Violation> {
    let Account { healed, quiet, .. } = history.account;
    let mut violations = claims(history);
    if let (Some(healed), Some(quiet)) = (healed, quiet) {
        violations.extend(items(history, healed, quiet));
        violations.extend(nodes(history, quiet));
        violations.extend(views(history, healed, quiet, MEMBER));
        violations.extend(views(history, healed, quiet, INSTANCE));
    }
    violations
}

/// Who has which item, by the lock of the item.
type Owners<'a> = BTreeMap<String, Vec<&'a str>>;

/// At some instant after the faults each item is with its member, and with no other. That no two members have
/// it at any time is judged as for every lock.
fn items(history: &History, healed: u64, quiet: u64) -> Option<Violation> {
    let living = &history.account.living;
    let owner = |item: &str| {
        let owner = Partition::owner_among(item, living.iter().map(|process| client_of(process)));
        living.iter().map(String::as_str).filter(|process| Some(client_of(process)) == owner).collect()
    };
    let expected: Owners<'_> = fixture::items().map(|item| (fixture::lock_of(&item), owner(&item))).collect();
    let mut holds = history.holds();
    holds.retain(|hold| fixture::item_of(&hold.lock).is_some());
    // The items move only where a claim begins.
    let begins = holds.iter().filter_map(|hold| hold.valid).map(|(start, _)| start.max(healed));
    let mut instants = begins.filter(|at| *at <= quiet);
    if instants.any(|at| owners(&holds, at) == expected) {
        return None;
    }
    let text = format!("no item is for good where it belongs: {:?}, not {expected:?}", owners(&holds, quiet));
    Some(Violation { rule: Rule::Partition, lock: String::new(), at: quiet, text })
}

fn owners(holds: &[Hold], at: u64) -> Owners<'_> {
    let mut owners = Owners::new();
    for hold in holds {
        if hold.valid.is_some_and(|(start, end)| start <= at && at < end) {
            owners.entry(hold.lock.clone()).or_default().push(&hold.process);
        }
    }
    owners
}

/// A registered node, and the process that claims it.
type Claims<'a> = BTreeMap<(&'a str, i64), &'a str>;

fn claimed(history: &History) -> impl Iterator<Item = (u64, &str, (&str, i64))> {
    history.processes.iter().flat_map(|(process, events)| {
        events.iter().filter_map(move |Event { at, what, .. }| match what {
            What::Registered { name, czxid } => Some((*at, process.as_str(), (name.as_str(), *czxid))),
            _ => None,
        })
    })
}

/// A node is claimed by one process, which claims newer ones later.
fn claims(history: &History) -> Vec<Violation> {
    let (mut owners, mut newest) = (Claims::new(), BTreeMap::new());
    let mut violations = Vec::new();
    for (at, process, (name, czxid)) in claimed(history) {
        let mut complain = |text| {
            violations.push(Violation { rule: Rule::Registration, lock: String::new(), at, text });
        };
        let owner = *owners.entry((name, czxid)).or_insert(process);
        if owner != process {
            complain(format!("{process} claims {name} of {czxid}, which is the node of {owner}"));
        }
        let earlier = newest.insert((process, name), czxid).unwrap_or(czxid);
        if earlier > czxid {
            complain(format!("{process} claims {name} of {czxid} after that of {earlier}"));
        }
    }
    violations
}

/// After the faults each living process is registered once, and no dead one is.
fn nodes(history: &History, quiet: u64) -> Vec<Violation> {
    let Account { nodes, living, .. } = &history.account;
    let owners: Claims<'_> = claimed(history).map(|(_, process, node)| (node, process)).collect();
    let violation = |text| Violation { rule: Rule::Registration, lock: String::new(), at: quiet, text };
    let is_wrong = |node: &&crate::history::Node| {
        owners.get(&(node.name.as_str(), node.czxid)) != Some(&node.data.as_str())
            || !living.contains(&node.data)
    };
    let wrong = nodes.iter().filter(is_wrong);
    let wrong = wrong.map(|node| violation(format!("{node:?} is no node of a living process")));
    let missing = [MEMBER, INSTANCE].into_iter().flat_map(|prefix| {
        let is_missing = move |process: &&String| {
            let is_its = |name: &str| name.strip_prefix(prefix) == Some(client_of(process));
            !nodes.iter().any(|node| is_its(&node.name) && node.data == **process)
        };
        let missing = living.iter().filter(is_missing);
        missing.map(move |process| violation(format!("{process} has no node below {prefix}")))
    });
    let has_single = living.is_empty() || nodes.iter().any(|node| node.name == fixture::name_of(SINGLE));
    let single = (!has_single).then(|| violation(format!("no process has {}", fixture::name_of(SINGLE))));
    wrong.chain(missing).chain(single).collect()
}

/// After the faults the view of each living process shows the members, or the instances, as they are.
fn views(history: &History, healed: u64, quiet: u64, prefix: &str) -> Vec<Violation> {
    let Account { nodes, living, .. } = &history.account;
    let members: BTreeMap<&str, &str> =
        nodes.iter().filter_map(|node| Some((node.name.strip_prefix(prefix)?, node.data.as_str()))).collect();
    let is_blind = |process: &&String| {
        let events = history.processes.get(*process).map(Vec::as_slice).unwrap_or_default();
        let seen = events.iter().filter(|event| event.at <= quiet).filter_map(|event| match &event.what {
            What::Sees { members } if prefix == MEMBER => Some((event.at, members)),
            What::Finds { instances } if prefix == INSTANCE => Some((event.at, instances)),
            _ => None,
        });
        // What it saw last before the healing counts as well: perhaps nothing has changed since.
        let seen: Vec<_> = seen.collect();
        let first = seen.partition_point(|(at, _)| *at <= healed).saturating_sub(1);
        let is_right = |(_, seen): &(u64, &BTreeMap<String, String>)| {
            seen.iter().map(|(id, process)| (id.as_str(), process.as_str())).eq(members.clone())
        };
        !seen.iter().skip(first).any(is_right)
    };
    let blind = living.iter().filter(is_blind);
    let violation = |process: &String| Violation {
        rule: Rule::Registration,
        lock: String::new(),
        at: quiet,
        text: format!("the view of {process} does not end with the nodes {members:?} below {prefix}"),
    };
    blind.map(violation).collect()
}
