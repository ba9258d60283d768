//! Items of a partition, and registrations.

use std::collections::BTreeMap;

use lockkeeper::Partition;

use super::{ALONE, Claim, Rule, TestRun, What};
use crate::fixture::{items, lock_of};
use crate::history::Node;

const LIVING: [&str; 2] = ["c0.0", "c1.1"];
const HEALED: u64 = 100;

/// Where the items belong.
fn owner(item: &str) -> &'static str {
    match Partition::owner_among(item, ["c0", "c1"]) {
        Some("c0") => LIVING[0],
        _ => LIVING[1],
    }
}

fn node(name: &str, czxid: i64, data: &str) -> Node {
    Node { name: name.to_owned(), czxid, data: data.to_owned() }
}

/// Two processes that are registered in the end, without any item.
fn registered() -> TestRun {
    let mut run = TestRun::default();
    let nodes = vec![
        node("group/c0", 3, LIVING[0]),
        node("group/c1", 5, LIVING[1]),
        node("single/node", 4, LIVING[0]),
        node("services/web/c0", 6, LIVING[0]),
        node("services/web/c1", 7, LIVING[1]),
    ];
    for Node { name, czxid, data } in &nodes {
        let name = name.clone();
        run.record(data, 9, 10, What::Registered { name, czxid: *czxid });
    }
    for process in LIVING {
        run.record(process, 9, HEALED - 10, sees(&[("c0", LIVING[0])]));
        run.record(process, 9, HEALED + 10, sees(&[("c0", LIVING[0]), ("c1", LIVING[1])]));
        run.record(process, 9, HEALED + 10, finds(&[("c0", LIVING[0]), ("c1", LIVING[1])]));
    }
    let account = &mut run.history.account;
    (account.healed, account.quiet) = (Some(HEALED), Some(HEALED + 50));
    account.living = LIVING.map(str::to_owned).to_vec();
    account.nodes = nodes;
    run
}

fn sees(members: &[(&str, &str)]) -> What {
    let members = members.iter().map(|(id, process)| ((*id).to_owned(), (*process).to_owned()));
    What::Sees { members: members.collect::<BTreeMap<_, _>>() }
}

fn finds(instances: &[(&str, &str)]) -> What {
    let What::Sees { members: instances } = sees(instances) else { unreachable!() };
    What::Finds { instances }
}

/// The same, where each item is with a process from the middle of the faults on.
fn shared(of: impl Fn(&str) -> Vec<(&'static str, (u64, u64))>) -> TestRun {
    let mut run = registered();
    let mut token = 10;
    for item in items() {
        for (process, span) in of(&item) {
            token += 1;
            let lock = lock_of(&item);
            let claim: Claim<'_> = (process, 8, &lock, ALONE, token, span);
            run.claim(claim);
        }
    }
    run
}

const LASTS: (u64, u64) = (HEALED - 20, HEALED + 90);

#[test]
fn in_the_end_each_item_is_with_its_member() {
    assert_eq!(shared(|item| vec![(owner(item), LASTS)]).rules(), []);
    // The process that had it was killed, and its lease ends after the healing.
    let late = |item: &str| vec![("c1.0", (20, HEALED + 20)), (owner(item), (HEALED + 20, HEALED + 90))];
    assert_eq!(shared(late).rules(), []);
    assert_eq!(registered().rules(), [Rule::Partition], "no item has an owner");
    for (wrong, case) in [
        (vec![], "an item without an owner"),
        (vec![("c1.0", LASTS)], "a process that is dead"),
        (vec![("c0.0", (20, HEALED))], "only before the healing"),
        (vec![("c0.0", (HEALED + 51, HEALED + 90))], "only after the end"),
    ] {
        let of = |item: &str| if item == "00" { wrong.clone() } else { vec![(owner(item), LASTS)] };
        assert_eq!(shared(of).rules(), [Rule::Partition], "{case}");
    }
    let swapped = |item: &str| vec![(if owner(item) == LIVING[0] { LIVING[1] } else { LIVING[0] }, LASTS)];
    assert_eq!(shared(swapped).rules(), [Rule::Partition], "all with the other member");
}

#[test]
fn an_item_has_one_owner_at_a_time_and_its_tokens_grow() {
    let run = |first: (u64, (u64, u64)), second: (u64, (u64, u64))| {
        let lock = lock_of("03");
        TestRun::of(&[
            ("c0.0", 8, &lock, ALONE, first.0, first.1),
            ("c1.0", 8, &lock, ALONE, second.0, second.1),
        ])
        .rules()
    };
    assert_eq!(run((5, (10, 20)), (7, (20, 30))), []);
    assert_eq!(run((5, (10, 21)), (7, (20, 30))), [Rule::Exclusion]);
    assert_eq!(run((7, (10, 20)), (5, (20, 30))), [Rule::Order]);
}

#[test]
fn a_node_is_claimed_by_one_process_which_claims_newer_ones_later() {
    let run = |claims: &[(&str, &str, i64)]| {
        let mut run = TestRun::default();
        for (process, name, czxid) in claims {
            run.record(process, 9, 10, What::Registered { name: (*name).to_owned(), czxid: *czxid });
        }
        run.rules()
    };
    assert_eq!(
        run(&[("c0.0", "n", 5), ("c0.0", "n", 5), ("c0.0", "n", 7), ("c1.0", "n", 9), ("c1.0", "m", 5)]),
        []
    );
    assert_eq!(run(&[("c0.0", "n", 5), ("c1.0", "n", 5)]), [Rule::Registration], "of two processes");
    assert_eq!(run(&[("c0.0", "n", 5), ("c0.1", "n", 5)]), [Rule::Registration], "of an earlier process");
    assert_eq!(run(&[("c0.0", "n", 7), ("c0.0", "n", 5)]), [Rule::Registration], "an older one");
}

#[test]
fn in_the_end_each_living_process_is_registered_once_and_no_dead_one_is() {
    let run = |change: &dyn Fn(&mut Vec<Node>)| {
        let mut run = shared(|item| vec![(owner(item), LASTS)]);
        change(&mut run.history.account.nodes);
        run.rules()
    };
    let wrong = Rule::Registration;
    assert_eq!(run(&|_| {}), []);
    // The views do not show the nodes then either, nor does a view of the dead process.
    assert_eq!(run(&|nodes| _ = nodes.remove(0)), [wrong; 3], "a process without a node");
    assert_eq!(run(&|nodes| nodes[1] = node("group/c1", 5, "c1.0")), [wrong; 4], "a dead process");
    assert_eq!(run(&|nodes| nodes.push(node("group/c2", 6, LIVING[0]))), [wrong; 3], "registered twice");
    assert_eq!(run(&|nodes| nodes[0].czxid = 2), [wrong], "a node that no process claims");
    assert_eq!(run(&|nodes| nodes[2].data = LIVING[1].to_owned()), [wrong], "the node of another process");
    assert_eq!(run(&|nodes| _ = nodes.remove(2)), [wrong], "no process has the single node");
    assert_eq!(run(&|nodes| _ = nodes.pop()), [wrong; 3], "a process without an instance");
    assert_eq!(run(&|nodes| nodes[4].data = "c1.0".to_owned()), [wrong; 4], "the instance of a dead process");
}

#[test]
fn a_view_of_the_group_ends_with_the_members() {
    a_view_ends_with(sees);
}

#[test]
fn a_view_of_the_service_ends_with_the_instances() {
    a_view_ends_with(finds);
}

fn a_view_ends_with(shows: fn(&[(&str, &str)]) -> What) {
    let run = |at: u64, nodes: &[(&str, &str)]| {
        let mut run = shared(|item| vec![(owner(item), LASTS)]);
        let is_other = |what: &What| std::mem::discriminant(what) != std::mem::discriminant(&shows(&[]));
        for events in run.history.processes.values_mut() {
            events.retain(|event| is_other(&event.what));
        }
        for process in LIVING {
            run.record(process, 9, at, shows(nodes));
        }
        run.rules()
    };
    let all = [("c0", LIVING[0]), ("c1", LIVING[1])];
    assert_eq!(run(HEALED + 10, &all), []);
    assert_eq!(run(HEALED - 50, &all), [], "nothing has changed since");
    assert_eq!(run(HEALED + 60, &all), [Rule::Registration; 2], "only after the end");
    assert_eq!(run(HEALED + 10, &all[..1]), [Rule::Registration; 2], "a node is missing");
    assert_eq!(run(HEALED + 10, &[("c0", LIVING[0]), ("c1", "c1.0")]), [Rule::Registration; 2], "a dead one");
}
