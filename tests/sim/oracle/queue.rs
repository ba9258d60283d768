use std::collections::BTreeMap;

use lockkeeper_testserver::machine::Machine;
use lockkeeper_testserver::tree::Tree;

use crate::world::OUT_OF_TURN;

/// Promise 5 for semaphores: permits are created in the order of the line beside them.
///
/// In Curator's layout a permit is a node in `leases`, and its taker's turn a node in `locks`; both change in one
/// transaction. So whenever leases appear, the first of the line must have left it.
#[derive(Default)]
pub(super) struct Queues {
    zxid: i64,
    /// By the path of the semaphore: its leases, and its line, first come first.
    seen: BTreeMap<String, (Vec<i64>, Vec<i64>)>,
}

impl Queues {
    /// What is wrong with what happened since the last look.
    pub(super) fn look(&mut self, machine: &Machine) -> Vec<String> {
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
            let is_granted = now.0.iter().any(|lease| !leases.contains(lease));
            if let (true, true, Some(first)) = (is_single, is_granted, line.first())
                && now.1.contains(first)
            {
                wrong.push(format!("promise 5: {path} was granted past the first of its line"));
            }
        }
        wrong
    }
}

/// The creation zxids of a directory's children, lowest first.
fn born(tree: &Tree, directory: &str) -> Vec<i64> {
    let names = tree.node(directory).map(|node| node.children.clone()).unwrap_or_default();
    let names = names.iter().filter(|name| !name.starts_with(OUT_OF_TURN));
    let czxid = |name: &String| tree.node(&format!("{directory}/{name}")).map(|node| node.stat().czxid);
    let mut born: Vec<i64> = names.filter_map(czxid).collect();
    born.sort_unstable();
    born
}
