use std::collections::{BTreeMap, BTreeSet};

use lockkeeper_testserver::machine::Machine;
use lockkeeper_testserver::tree::Tree;

use crate::world::OUT_OF_TURN;

/// Promise 5 for semaphores: permits are created in the order of the line beside them.
///
/// In Curator's layout a permit is a node in `leases`, and its taker's turn a node in `locks`; both change in one
/// transaction. So whenever leases appear, the first of the line must have left it. A node that its own session has
/// given up does not count: within that session its successor goes on before the delete is done.
#[derive(Default)]
pub(super) struct Queues {
    zxid: i64,
    /// By the path of the semaphore: its leases, and its line, first come first.
    seen: BTreeMap<String, (Nodes, Nodes)>,
}

/// The nodes of a directory by their creation zxids.
type Nodes = BTreeMap<i64, String>;

impl Queues {
    /// What is wrong with what happened since the last look.
    pub(super) fn look(&mut self, machine: &Machine, given_up: &BTreeSet<String>) -> Vec<String> {
        // Several transactions at once do not tell which came first.
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
            let (leases, line) = self.seen.insert(path.clone(), now.clone()).unwrap_or_default();
            let is_granted = now.0.keys().any(|lease| !leases.contains_key(lease));
            let mut passed = line.iter().take_while(|(born, _)| now.1.contains_key(born));
            if is_single && is_granted && passed.any(|(_, node)| !given_up.contains(node)) {
                wrong.push(format!("promise 5: {path} was granted past the first of its line"));
            }
        }
        wrong
    }
}

fn born(tree: &Tree, directory: &str) -> Nodes {
    let names = tree.node(directory).map(|node| node.children.clone()).unwrap_or_default();
    let paths = names.iter().filter(|name| !name.starts_with(OUT_OF_TURN));
    let paths = paths.map(|name| format!("{directory}/{name}"));
    paths.filter_map(|path| Some((tree.node(&path)?.stat().czxid, path))).collect()
}
