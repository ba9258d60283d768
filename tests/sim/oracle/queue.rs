use std::collections::{BTreeMap, BTreeSet};

use lockkeeper_testserver::machine::Machine;
use lockkeeper_testserver::tree::Tree;

use crate::world::OUT_OF_TURN;

/// Promise 5 for semaphores: permits are granted in the order of the queue.
///
/// In Curator's layout a permit is a node in `leases`, and a contender a node in `locks`; both change in one
/// transaction. So whenever leases appear, the head of the queue must have left it, or it takes permits for
/// the tasks of its process, and stays. A node whose delete its own session has sent does not count: within
/// that session the successor is granted before the delete is applied.
#[derive(Default)]
pub(super) struct Queues {
    zxid: i64,
    /// By the path of the semaphore: its leases, and its queue in order.
    seen: BTreeMap<String, (Nodes, Nodes)>,
}

/// The nodes of a directory by their creation zxids: the path and the session of each.
type Nodes = BTreeMap<i64, (String, i64)>;

impl Queues {
    /// The promises that were broken since the last check.
    pub(super) fn check(&mut self, machine: &Machine, given_up: &BTreeSet<String>) -> Vec<String> {
        // The order of several transactions at once is unknown.
        let is_single = machine.zxid() == self.zxid + 1;
        self.zxid = machine.zxid();
        let tree = machine.tree();
        let locks = tree.node("/locks").map(|node| node.children.clone()).unwrap_or_default();
        let mut wrong = Vec::new();
        for path in locks.iter().map(|lock| format!("/locks/{lock}")) {
            if tree.node(&format!("{path}/leases")).is_none() {
                continue;
            }
            let now = (born(tree, &format!("{path}/leases")), born(tree, &format!("{path}/locks")));
            let (leases, queue) = self.seen.insert(path.clone(), now.clone()).unwrap_or_default();
            let is_new = |(born, _): &(&i64, &(String, i64))| !leases.contains_key(born);
            let granted = now.0.iter().find(is_new).map(|(_, (_, session))| session);
            let passed = queue.iter().take_while(|(born, _)| now.1.contains_key(born));
            let is_given_up = |node: &String, owner| given_up.contains(node) && granted == Some(owner);
            let mut waiting = passed.filter(|(_, (node, owner))| !is_given_up(node, owner));
            let is_past_head = match queue.keys().any(|born| !now.1.contains_key(born)) {
                true => waiting.next().is_some(),
                // A contender for all tasks of its process stays, and is the head.
                false => queue.first_key_value().is_some_and(|(_, (_, owner))| granted != Some(owner)),
            };
            if is_single && granted.is_some() && is_past_head {
                wrong.push(format!("promise 5: {path} was granted past the head of its queue"));
            }
        }
        wrong
    }
}

fn born(tree: &Tree, directory: &str) -> Nodes {
    let names = tree.node(directory).map(|node| node.children.clone()).unwrap_or_default();
    let paths = names.iter().filter(|name| !name.starts_with(OUT_OF_TURN));
    let paths = paths.map(|name| format!("{directory}/{name}"));
    // A restored node belongs to no session: it is never granted, and its place is judged at a grant.
    let stated = paths.filter_map(|path| Some((tree.node(&path)?.stat(), path)));
    let stated = stated.filter(|(stat, _)| stat.ephemeral_owner != 0);
    stated.map(|(stat, path)| (stat.czxid, (path, stat.ephemeral_owner))).collect()
}
