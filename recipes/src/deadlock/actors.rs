//! Which nodes are of one actor: pure.

use std::collections::{BTreeMap, HashMap};

use lockkeeper_core::Zxid;
use lockkeeper_core::{ContenderInfo, Kind, NodeName, Role};

use super::graph::{At, Graph, GraphLock, GraphNode, Pool};
use crate::inspection::Inspection;

/// How much the nodes of one actor prove.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Certainty {
    /// Each waiter names what its owner holds, here or in the process that started its process, or one
    /// transaction created its nodes. One actor is one owner.
    Found,
    /// The nodes have a session and the name of an owner, or no name, in common. Two tasks of one process
    /// look like one actor.
    Possible,
}

/// The graph of a snapshot, with the nodes that it was built from.
#[derive(Debug)]
pub(super) struct LocksSnapshot<'a> {
    pub(super) graph: Graph,
    pub(super) locks: Vec<LockNodes<'a>>,
}

#[derive(Debug)]
pub(super) struct LockNodes<'a> {
    pub(super) lock: &'a Inspection,
    pub(super) queue: Vec<&'a ContenderInfo>,
    pub(super) leases: Vec<&'a ContenderInfo>,
}

impl<'a> LocksSnapshot<'a> {
    pub(super) fn of(inspections: &'a [Inspection], certainty: Certainty) -> Self {
        let locks: Vec<LockNodes<'a>> = inspections.iter().map(LockNodes::of).collect();
        let nodes: Vec<&ContenderInfo> =
            locks.iter().flat_map(|lock| lock.queue.iter().chain(&lock.leases)).copied().collect();
        let actors = match certainty {
            Certainty::Found => certain_actors(&nodes),
            Certainty::Possible => possible_actors(&nodes),
        };
        let count = actors.iter().max().map_or(0, |last| last + 1);
        let mut requests: BTreeMap<Zxid, usize> = BTreeMap::new();
        let mut actors = actors.into_iter();
        let mut graph = Graph { locks: Vec::new(), actors: count };
        for lock in &locks {
            let positions = positions(&lock.queue);
            let queue =
                lock.queue.iter().zip(positions).zip(actors.by_ref()).map(|((node, position), actor)| {
                    let next = requests.len();
                    let request = match certainty {
                        Certainty::Found => *requests.entry(node.czxid()).or_insert(next),
                        Certainty::Possible => 0,
                    };
                    GraphNode { actor, request, kind: node.kind().unwrap_or(Kind::OTHER), position }
                });
            let queue = queue.collect();
            let leases = lock.leases.iter().zip(actors.by_ref()).map(|(_, actor)| actor).collect();
            let pool = lock.lock.has_permits().then(|| Pool { limit: lock.lock.limit(), leases });
            graph.locks.push(GraphLock { queue, pool });
        }
        Self { graph, locks }
    }

    pub(super) fn info(&self, at: At) -> Option<&'a ContenderInfo> {
        self.locks.get(at.0)?.queue.get(at.1).copied()
    }
}

impl<'a> LockNodes<'a> {
    fn of(lock: &'a Inspection) -> Self {
        let of_role = |role| lock.contenders().iter().filter(move |node| node.role() == role);
        if lock.has_permits() {
            let (queue, leases) = (of_role(Role::Waiter).collect(), of_role(Role::Holder).collect());
            return Self { lock, queue: in_order(queue), leases };
        }
        let queue = of_role(Role::Holder).chain(of_role(Role::Waiter)).collect();
        Self { lock, queue: in_order(queue), leases: Vec::new() }
    }
}

fn in_order(queue: Vec<&ContenderInfo>) -> Vec<&ContenderInfo> {
    let mut ordered: Vec<_> = positions(&queue).into_iter().zip(queue).collect();
    ordered.sort_by_key(|(position, node)| (*position, node.czxid()));
    ordered.into_iter().map(|(_, node)| node).collect()
}

/// The sequence numbers, or where these do not give the order, the transactions of the creates.
fn positions(queue: &[&ContenderInfo]) -> Vec<i64> {
    let number = |node: &&ContenderInfo| {
        NodeName::parse(node.name())
            .filter(NodeName::has_ordered_sequence)
            .map(|name| i64::from(name.sequence()))
    };
    let numbers: Option<Vec<i64>> = queue.iter().map(number).collect();
    numbers.unwrap_or_else(|| queue.iter().map(|node| node.czxid().get()).collect())
}

/// The actor of each node: the nodes of one transaction, joined with those that a waiter names.
///
/// A waiter names the holds of its own session, and those of the process that started its process, and waits
/// for its end. A node of another session of the waiter's own process is no hold: that session is over, and
/// the server is about to delete the node.
fn certain_actors(nodes: &[&ContenderInfo]) -> Vec<usize> {
    let mut joined: Vec<usize> = (0..nodes.len()).collect();
    let mut by_transaction: HashMap<(i64, Zxid), usize> = HashMap::new();
    let mut by_create_id: HashMap<&str, Vec<usize>> = HashMap::new();
    for (index, node) in nodes.iter().enumerate().filter(|(_, node)| node.session() != 0) {
        let first = *by_transaction.entry((node.session(), node.czxid())).or_insert(index);
        join(&mut joined, first, index);
        if let Some(id) = NodeName::create_id(node.name()) {
            by_create_id.entry(id).or_default().push(index);
        }
    }
    for (index, node) in nodes.iter().enumerate().filter(|(_, node)| node.session() != 0) {
        for held in node.identity().holds() {
            for other in by_create_id.get(held.as_str()).into_iter().flatten() {
                let is_held = |of: &&&ContenderInfo| of.session() == node.session() || is_of_other(node, of);
                if nodes.get(*other).filter(is_held).is_some() {
                    join(&mut joined, *other, index);
                }
            }
        }
    }
    let roots: Vec<usize> = (0..nodes.len()).map(|index| root(&joined, index)).collect();
    numbered(&roots)
}

/// Whether both nodes say of which process they are, and the processes differ.
fn is_of_other(node: &ContenderInfo, other: &ContenderInfo) -> bool {
    let process = |of: &ContenderInfo| {
        let identity = of.identity();
        Some((identity.host()?.to_owned(), identity.pid()?))
    };
    process(node).zip(process(other)).is_some_and(|(one, other)| one != other)
}

/// The actor of each node: the nodes of one session for one name of an owner.
fn possible_actors(nodes: &[&ContenderInfo]) -> Vec<usize> {
    let mut known: HashMap<(i64, Option<String>), usize> = HashMap::new();
    let roots: Vec<usize> = nodes
        .iter()
        .enumerate()
        .map(|(index, node)| match node.session() {
            0 => index,
            session => *known.entry((session, node.identity().owner().map(str::to_owned))).or_insert(index),
        })
        .collect();
    numbered(&roots)
}

fn numbered(roots: &[usize]) -> Vec<usize> {
    let mut numbers: HashMap<usize, usize> = HashMap::new();
    let mut number = |root: &usize| {
        let next = numbers.len();
        *numbers.entry(*root).or_insert(next)
    };
    roots.iter().map(&mut number).collect()
}

/// Each element points to another one of its set, and the root to itself.
fn join(joined: &mut [usize], one: usize, other: usize) {
    let (one, other) = (root(joined, one), root(joined, other));
    if let Some(points_to) = joined.get_mut(one.max(other)) {
        *points_to = one.min(other);
    }
}

fn root(joined: &[usize], mut at: usize) -> usize {
    while let Some(next) = joined.get(at).copied().filter(|next| *next != at) {
        at = next;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_that_are_joined_have_one_root() {
        let mut joined: Vec<usize> = (0..6).collect();
        for (one, other) in [(4, 5), (0, 1), (1, 5)] {
            join(&mut joined, one, other);
        }
        let roots: Vec<usize> = (0..6).map(|at| root(&joined, at)).collect();
        assert_eq!(roots, [0, 0, 2, 3, 0, 0]);
        assert_eq!(numbered(&roots), [0, 0, 1, 2, 0, 0]);
    }
}
