//! The wait-for graph, and the actors in it that can never be served: pure.
//!
//! An *actor* holds nodes and waits with nodes. It is *stuck* if it waits, and keeps waiting whatever the
//! actors that are not stuck do. Graph reduction finds the stuck actors: it removes every actor that waits
//! for no other, releases its holds, removes the actors that are granted then, until nothing changes.
//!
//! A circle in the graph would prove less: a waiter for permits is served by any of their holders.

use lockkeeper_core::{Kind, Rule, count_of};

/// The nodes of all locks.
#[derive(Clone, Debug, Default)]
pub(super) struct Graph {
    pub(super) locks: Vec<GraphLock>,
    pub(super) actors: usize,
}

#[derive(Clone, Debug, Default)]
pub(super) struct GraphLock {
    /// In the order of the queue.
    pub(super) queue: Vec<GraphNode>,
    /// `None` for a lock without permits.
    pub(super) pool: Option<Pool>,
}

/// A node of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct GraphNode {
    pub(super) actor: usize,
    /// The nodes of one request are waited for together.
    pub(super) request: usize,
    pub(super) kind: Kind,
    /// Nodes with equal positions do not wait for each other.
    pub(super) position: i64,
}

/// The permits of a semaphore.
#[derive(Clone, Debug, Default)]
pub(super) struct Pool {
    /// `None` if the limit is not known: then there is always a free permit.
    pub(super) limit: Option<u32>,
    /// The actor of each permit in use.
    pub(super) leases: Vec<usize>,
}

/// Where a node is: the index of its lock, and its index in the queue.
pub(super) type At = (usize, usize);

/// What a node waits for, where its actor is stuck.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Blockers {
    /// All of these nodes, in the order of the queue.
    Nodes(Vec<At>),
    /// One of these leases of the lock.
    Leases(Vec<usize>),
}

/// The stuck actors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stuck {
    pub(super) actors: Vec<bool>,
}

/// The rule that grants to a contender of this kind. Nobody waits with a node of another kind.
fn rule(kind: Kind) -> Option<Rule> {
    const LATCH: Rule = Rule::blocked_by(&[Kind::LATCH]);
    match kind {
        Kind::LOCK => Some(Rule::MUTEX),
        Kind::READ => Some(Rule::READER),
        Kind::WRITE => Some(Rule::WRITER),
        Kind::LATCH => Some(LATCH),
        _ => None,
    }
}

impl GraphLock {
    /// The nodes of other actors that this one waits for, among those of actors that are `left`.
    fn ahead<'a>(&'a self, at: usize, left: &'a [bool]) -> impl Iterator<Item = usize> + use<'a> {
        let node = self.queue.get(at).copied();
        let rule = node.and_then(|node| rule(node.kind));
        self.queue.iter().take(at).enumerate().filter_map(move |(index, earlier)| {
            let (node, rule) = (node?, rule?);
            let blocks = earlier.position < node.position && rule.blocks(earlier.kind);
            (blocks && earlier.actor != node.actor && contains(left, earlier.actor)).then_some(index)
        })
    }

    /// Whether no permit is free. An actor that waits for more permits does not give its own back.
    fn is_used_up(&self, left: &[bool]) -> bool {
        let Some(Pool { limit: Some(limit), leases }) = &self.pool else { return false };
        count_of(leases.iter().filter(|actor| contains(left, **actor)).count()) >= *limit
    }
}

fn contains(actors: &[bool], actor: usize) -> bool {
    actors.get(actor).copied().unwrap_or_default()
}

impl Graph {
    /// Removes the actors that can be served. The others are stuck.
    pub(super) fn reduce(&self) -> Stuck {
        let all = vec![true; self.actors];
        let waits = self.blocked_requests(&all, &[]);
        let only_waits = self.only_waits(&waits);
        // An actor that waits for nothing works, and gives back what it holds.
        let mut left: Vec<bool> = waits.iter().map(|requests| !requests.is_empty()).collect();
        loop {
            let blocked = self.blocked_requests(&left, &only_waits);
            let mut is_over = true;
            for (actor, is_left) in left.iter_mut().enumerate().filter(|(_, is_left)| **is_left) {
                let (Some(waits), Some(blocked)) = (waits.get(actor), blocked.get(actor)) else { continue };
                // Its requests are of several tasks: the one that is served may be the one that releases.
                if waits.iter().any(|request| !blocked.contains(request)) {
                    (*is_left, is_over) = (false, false);
                }
            }
            if is_over {
                return Stuck { actors: left };
            }
        }
    }

    /// For each actor that waits with one node: the request of that node.
    fn only_waits(&self, waits: &[Vec<usize>]) -> Vec<Option<usize>> {
        let mut counts = vec![0; self.actors];
        for node in self.locks.iter().flat_map(|lock| &lock.queue) {
            let is_waiting = waits.get(node.actor).is_some_and(|requests| requests.contains(&node.request));
            if let Some(count) = counts.get_mut(node.actor).filter(|_| is_waiting) {
                *count += 1;
            }
        }
        let only = |(count, requests): (i32, &Vec<usize>)| requests.first().copied().filter(|_| count == 1);
        counts.into_iter().zip(waits).map(only).collect()
    }

    /// For each actor, the requests that wait for actors that are `left`.
    ///
    /// An actor that has one wait, and is served by this walk, is not in the way of the later nodes: so one
    /// walk serves a whole queue of such actors.
    fn blocked_requests(&self, left: &[bool], only_waits: &[Option<usize>]) -> Vec<Vec<usize>> {
        let mut blocked: Vec<Vec<usize>> = vec![Vec::new(); self.actors];
        for lock in &self.locks {
            let is_used_up = lock.is_used_up(left);
            let mut ahead = Ahead::default();
            for node in lock.queue.iter().filter(|node| contains(left, node.actor)) {
                let is_behind = rule(node.kind).is_some_and(|rule| ahead.blocks(node, rule));
                // Only the head of a queue for permits takes one.
                if !is_behind && !is_used_up {
                    let only_wait = only_waits.get(node.actor).copied().flatten();
                    if only_wait != Some(node.request) {
                        ahead.add(*node);
                    }
                    continue;
                }
                let requests = blocked.get_mut(node.actor);
                if let Some(requests) = requests.filter(|requests| !requests.contains(&node.request)) {
                    requests.push(node.request);
                }
                ahead.add(*node);
            }
        }
        blocked
    }

    /// What a node of a stuck actor waits for. `None` if the node itself waits for nothing.
    pub(super) fn blockers(&self, stuck: &Stuck, at: At) -> Option<Blockers> {
        let lock = self.locks.get(at.0)?;
        let nodes: Vec<At> = lock.ahead(at.1, &stuck.actors).map(|index| (at.0, index)).collect();
        if !nodes.is_empty() {
            return Some(Blockers::Nodes(nodes));
        }
        let pool = lock.pool.as_ref().filter(|_| lock.is_used_up(&stuck.actors))?;
        let leases = pool.leases.iter().enumerate().filter(|(_, actor)| contains(&stuck.actors, **actor));
        Some(Blockers::Leases(leases.map(|(index, _)| index).collect()))
    }

    /// Every node that a stuck actor waits with, and what it waits for.
    pub(super) fn waits(&self, stuck: &Stuck) -> Vec<(At, Blockers)> {
        let mut waits = Vec::new();
        for (index, lock) in self.locks.iter().enumerate() {
            let of_stuck =
                lock.queue.iter().enumerate().filter(|(_, node)| contains(&stuck.actors, node.actor));
            for at in of_stuck.map(|(position, _)| (index, position)) {
                waits.extend(self.blockers(stuck, at).map(|blockers| (at, blockers)));
            }
        }
        waits
    }

    pub(super) fn node(&self, at: At) -> Option<&GraphNode> {
        self.locks.get(at.0)?.queue.get(at.1)
    }

    /// The actor of the first node, or of the first lease, that blocks: what ends one wait is its end.
    pub(super) fn first_actor(&self, lock: usize, blockers: &Blockers) -> Option<usize> {
        match blockers {
            Blockers::Nodes(nodes) => self.node(*nodes.first()?).map(|node| node.actor),
            Blockers::Leases(leases) => {
                self.locks.get(lock)?.pool.as_ref()?.leases.get(*leases.first()?).copied()
            }
        }
    }
}

/// The nodes ahead in one walk over a queue: how many of each kind, and whose. Nodes with the position of the
/// last one are kept apart, because equal positions do not wait for each other.
#[derive(Debug, Default)]
struct Ahead {
    /// The two first actors of each kind are enough to know whether another actor has one.
    before: Vec<(Kind, Vec<usize>)>,
    equal: Vec<GraphNode>,
}

impl Ahead {
    fn blocks(&mut self, node: &GraphNode, rule: Rule) -> bool {
        if self.equal.first().is_some_and(|last| last.position < node.position) {
            for earlier in std::mem::take(&mut self.equal) {
                self.settle(earlier);
            }
        }
        let is_ahead = |(kind, actors): &(Kind, Vec<usize>)| {
            rule.blocks(*kind) && actors.iter().any(|actor| *actor != node.actor)
        };
        self.before.iter().any(is_ahead)
    }

    fn add(&mut self, node: GraphNode) {
        self.equal.push(node);
    }

    fn settle(&mut self, node: GraphNode) {
        let Some((_, known)) = self.before.iter_mut().find(|(kind, _)| *kind == node.kind) else {
            self.before.push((node.kind, vec![node.actor]));
            return;
        };
        if known.len() < 2 && !known.contains(&node.actor) {
            known.push(node.actor);
        }
    }
}
