use std::collections::BTreeSet;

use lockkeeper_core::{Kind, count_of};
use proptest::prelude::*;

use super::graph::{Blockers, Graph, GraphLock, GraphNode, Pool};

const LOCK: Kind = Kind::LOCK;
const READ: Kind = Kind::READ;
const WRITE: Kind = Kind::WRITE;

/// Queues of (actor, request, kind), in order.
fn graph(locks: &[&[(usize, usize, Kind)]]) -> Graph {
    let queue = |nodes: &&[(usize, usize, Kind)]| {
        let node = |(position, (actor, request, kind)): (i64, &(usize, usize, Kind))| GraphNode {
            actor: *actor,
            request: *request,
            kind: *kind,
            position,
        };
        GraphLock { queue: (0..).zip(nodes.iter()).map(node).collect(), pool: None }
    };
    let actors = locks.iter().flat_map(|nodes| nodes.iter()).map(|node| node.0 + 1).max().unwrap_or(0);
    Graph { locks: locks.iter().map(queue).collect(), actors }
}

fn stuck(graph: &Graph) -> Vec<usize> {
    let all = graph.reduce().actors;
    all.iter().enumerate().filter(|(_, stuck)| **stuck).map(|(actor, _)| actor).collect()
}

#[test]
fn a_chain_is_served_and_opposite_orders_are_stuck() {
    let chain = graph(&[&[(0, 0, LOCK), (1, 1, LOCK)], &[(1, 0, LOCK), (2, 0, LOCK)]]);
    assert_eq!(stuck(&chain), [0; 0]);
    let opposite = graph(&[&[(0, 0, LOCK), (1, 1, LOCK)], &[(1, 0, LOCK), (0, 1, LOCK)]]);
    assert_eq!(stuck(&opposite), [0, 1]);
    assert_eq!(opposite.waits(&opposite.reduce()).len(), 2);
}

#[test]
fn a_waiter_behind_stuck_ones_is_stuck_too_and_a_reader_is_not_behind_readers() {
    let behind = graph(&[&[(0, 0, LOCK), (1, 1, LOCK), (2, 0, LOCK)], &[(1, 0, LOCK), (0, 1, LOCK)]]);
    assert_eq!(stuck(&behind), [0, 1, 2]);
    let readers = graph(&[&[(0, 0, READ), (1, 1, READ)], &[(1, 0, READ), (0, 1, READ)]]);
    assert_eq!(stuck(&readers), [0; 0]);
    // The reader waits for the writer ahead, which waits for the other reader.
    let writer = graph(&[&[(0, 0, READ), (2, 0, WRITE), (1, 1, READ)], &[(1, 0, LOCK), (0, 1, LOCK)]]);
    assert_eq!(stuck(&writer), [0, 1, 2]);
}

#[test]
fn permits_come_from_any_holder() {
    let pool = |leases: Vec<usize>| {
        let mut graph = graph(&[&[(0, 0, LOCK), (1, 1, LOCK)], &[(0, 1, LOCK)]]);
        graph.actors = 3;
        graph.locks[1].pool = Some(Pool { limit: Some(count_of(leases.len())), leases });
        graph
    };
    // Actor 0 waits for a permit, and holds the lock that actor 1 waits for.
    assert_eq!(stuck(&pool(vec![1])), [0, 1]);
    assert_eq!(pool(vec![1]).blockers(&pool(vec![1]).reduce(), (1, 0)), Some(Blockers::Leases(vec![0])));
    assert_eq!(stuck(&pool(vec![1, 2])), [0; 0]);
    let mut unknown = pool(vec![1]);
    unknown.locks[1].pool.as_mut().unwrap().limit = None;
    assert_eq!(stuck(&unknown), [0; 0]);
    // An owner that waits for a further permit keeps the one it has.
    assert_eq!(stuck(&pool(vec![0])), [0, 1]);
}

#[test]
fn of_several_tasks_of_an_owner_each_may_be_the_one_that_releases() {
    // Actor 0 waits with two requests: for actor 1, which waits for it, and for actor 2, which works.
    let locks: &[&[(usize, usize, Kind)]] =
        &[&[(0, 0, LOCK), (1, 1, LOCK)], &[(1, 0, LOCK), (0, 1, LOCK)], &[(2, 0, LOCK), (0, 2, LOCK)]];
    assert_eq!(stuck(&graph(locks)), [0; 0]);
    // With one request it waits for both.
    let together: &[&[(usize, usize, Kind)]] =
        &[&[(0, 0, LOCK), (1, 1, LOCK)], &[(1, 0, LOCK), (0, 1, LOCK)], &[(2, 0, LOCK), (0, 1, LOCK)]];
    assert_eq!(stuck(&graph(together)), [0, 1]);
}

#[test]
fn a_long_queue_is_served_in_few_walks() {
    let nodes: Vec<(usize, usize, Kind)> = (0..50_000).map(|actor| (actor, 0, LOCK)).collect();
    assert_eq!(stuck(&graph(&[&nodes])), [0; 0]);
}

/// Whether a node of this kind waits for an earlier one of that kind, said once more.
fn waits_for(kind: Kind, earlier: Kind) -> bool {
    match (kind, earlier) {
        (Kind::LOCK, Kind::LOCK) | (Kind::WRITE, Kind::READ | Kind::WRITE) => true,
        (kind, earlier) => (kind, earlier) == (READ, WRITE),
    }
}

/// Tries every order in which actors can end, and returns those that end in none.
fn ends_in_no_order(graph: &Graph) -> Vec<usize> {
    let is_blocked = |lock: &GraphLock, at: usize, gone: &BTreeSet<usize>| {
        let node = lock.queue[at];
        let is_ahead = |earlier: &&GraphNode| {
            earlier.position < node.position
                && earlier.actor != node.actor
                && waits_for(node.kind, earlier.kind)
        };
        let ahead = lock.queue[..at].iter().filter(is_ahead).any(|earlier| !gone.contains(&earlier.actor));
        let has_no_permit = lock.pool.as_ref().is_some_and(|pool| {
            let used = pool.leases.iter().filter(|actor| !gone.contains(actor)).count();
            pool.limit.is_some_and(|limit| count_of(used) >= limit)
        });
        ahead || has_no_permit
    };
    let blocked = |actor: usize, gone: &BTreeSet<usize>| -> BTreeSet<usize> {
        let of_lock = |lock: &GraphLock| -> Vec<usize> {
            let waits = |at: &usize| lock.queue[*at].actor == actor && is_blocked(lock, *at, gone);
            (0..lock.queue.len()).filter(waits).map(|at| lock.queue[at].request).collect()
        };
        graph.locks.iter().flat_map(of_lock).collect()
    };
    let waits: Vec<BTreeSet<usize>> =
        (0..graph.actors).map(|actor| blocked(actor, &BTreeSet::new())).collect();
    let mut to_visit = vec![BTreeSet::new()];
    let mut visited = BTreeSet::new();
    let mut ended = BTreeSet::new();
    while let Some(gone) = to_visit.pop() {
        if !visited.insert(gone.clone()) {
            continue;
        }
        for actor in (0..graph.actors).filter(|actor| !gone.contains(actor)) {
            let still = blocked(actor, &gone);
            if waits[actor].is_empty() || waits[actor].iter().any(|request| !still.contains(request)) {
                ended.insert(actor);
                let mut next = gone.clone();
                next.insert(actor);
                to_visit.push(next);
            }
        }
    }
    (0..graph.actors).filter(|actor| !ended.contains(actor)).collect()
}

const ACTORS: usize = 5;

fn any_lock() -> impl Strategy<Value = GraphLock> {
    let nodes = prop::collection::vec((0..ACTORS, 0..2_usize, any::<bool>(), 0..6_i64), 0..6);
    let pool = prop::option::of((prop::option::of(0..3_u32), prop::collection::vec(0..ACTORS, 0..3)));
    (nodes, any::<bool>(), pool).prop_map(|(mut nodes, rw, pool)| {
        nodes.sort_by_key(|node| node.3);
        let is_pool = pool.is_some();
        let kind = |write: bool| match (rw && !is_pool, write) {
            (false, _) => LOCK,
            (true, true) => WRITE,
            (true, false) => READ,
        };
        let node =
            |(actor, request, write, position)| GraphNode { actor, request, kind: kind(write), position };
        let pool = pool.map(|(limit, leases)| Pool { limit, leases });
        GraphLock { queue: nodes.into_iter().map(node).collect(), pool }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// The reduction finds exactly the actors that end in no order of ends.
    #[test]
    fn the_reduction_agrees_with_every_order_of_ends(locks in prop::collection::vec(any_lock(), 1..5)) {
        let graph = Graph { locks, actors: ACTORS };
        let reduced = graph.reduce();
        let found: Vec<usize> = (0..ACTORS).filter(|actor| reduced.actors[*actor]).collect();
        prop_assert_eq!(&found, &ends_in_no_order(&graph));
        // Each stuck actor waits, and only for stuck actors.
        let waits = graph.waits(&reduced);
        for actor in found {
            let own = waits.iter().filter(|(at, _)| graph.node(*at).unwrap().actor == actor);
            prop_assert!(own.count() > 0, "actor {} waits for nobody", actor);
        }
    }
}
