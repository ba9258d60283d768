//! Several locks that other clients hold, and overlapping sets.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::future::join_all;
use lockkeeper::error::Phase;
use lockkeeper::locks::ZooKeeperLock;
use lockkeeper::{Error, Mutex};
use lockkeeper_tests::Timing;

use super::{all_atomic, all_of, mutex, mutexes, start};
use crate::support::{no_node_is_left, nodes_become};

#[tokio::test]
async fn a_failed_try_leaves_no_node_and_does_not_wait() {
    let (ensemble, one, other) = start().await;
    let (locks, others) = (mutexes(&one, &["a", "b", "c"]), mutexes(&other, &["a", "b", "c"]));
    for held in &others {
        let held = held.acquire().await.unwrap();
        assert!(all_of(&locks).try_acquire().await.unwrap().is_none());
        let name = held.path().split('/').nth(2).unwrap().to_owned();
        for path in ["a", "b", "c"] {
            nodes_become(&ensemble, &format!("/multi/{path}"), usize::from(path == name)).await;
        }
        held.release().await.unwrap();
    }
    let guard = all_of(&locks).try_acquire().await.unwrap().expect("all are free");
    assert!(all_of(&others).try_acquire().await.unwrap().is_none());
    guard.release().await.unwrap();
}

#[tokio::test]
async fn members_are_acquired_in_the_order_of_their_paths_whatever_order_they_are_named_in() {
    let (ensemble, one, other) = start().await;
    let named = [mutex(&one, "c"), mutex(&one, "a"), mutex(&one, "b")];
    let all = all_of(&named);
    let paths: Vec<String> = all.paths().map(ToString::to_string).collect();
    assert_eq!(paths, ["/multi/a", "/multi/b", "/multi/c"]);
    let held = mutex(&other, "b").acquire().await.unwrap();
    let taking = tokio::spawn(async move { all.acquire().await });
    // The acquire holds the first, waits for the second, and has no node at the third.
    nodes_become(&ensemble, "/multi/b", 2).await;
    nodes_become(&ensemble, "/multi/a", 1).await;
    nodes_become(&ensemble, "/multi/c", 0).await;
    held.release().await.unwrap();
    taking.await.unwrap().unwrap().release().await.unwrap();
}

#[tokio::test]
async fn a_timeout_of_zero_is_one_try_in_both_modes() {
    let (ensemble, one, other) = start().await;
    for atomic in [false, true] {
        let locks = mutexes(&one, &["a", "b"]);
        let all = if atomic { all_atomic(&locks) } else { all_of(&locks) };
        all.acquire_timeout(Duration::ZERO).await.unwrap().release().await.unwrap();
        let held = mutex(&other, "b").acquire().await.unwrap();
        assert!(all.acquire_timeout(Duration::ZERO).await.unwrap_err().is_timeout());
        no_node_is_left(&ensemble, "/multi/a").await;
        held.release().await.unwrap();
    }
}

#[tokio::test]
async fn one_timeout_covers_all_members_and_the_acquired_ones_are_released() {
    let (ensemble, one, other) = start().await;
    let held = mutex(&other, "c").acquire().await.unwrap();
    let all = all_of(&mutexes(&one, &["a", "b", "c", "d"]));
    let error = all.acquire_timeout(Timing::scaled(Duration::from_secs(2))).await.unwrap_err();
    assert_eq!(error.path().as_str(), "/multi/c");
    assert!(matches!(error.cause(), Error::Timeout { phase: Phase::Queued { .. }, .. }), "{error}");
    assert_eq!(error.undo(), []);
    for free in ["a", "b", "d"] {
        no_node_is_left(&ensemble, &format!("/multi/{free}")).await;
    }
    held.release().await.unwrap();
    no_node_is_left(&ensemble, "/multi/c").await;
}

#[tokio::test]
async fn an_atomic_acquire_waits_in_all_queues_at_once() {
    let (ensemble, one, other) = start().await;
    let held = mutex(&other, "b").acquire().await.unwrap();
    let all = all_atomic(&mutexes(&one, &["a", "b", "c"]));
    let taking = tokio::spawn(async move { all.acquire().await });
    for (path, nodes) in [("a", 1), ("b", 2), ("c", 1)] {
        nodes_become(&ensemble, &format!("/multi/{path}"), nodes).await;
    }
    held.release().await.unwrap();
    let guard = taking.await.unwrap().unwrap();
    assert!(guard.is_valid());
    guard.release().await.unwrap();
}

/// Acquires of overlapping sets, named in any order, together with acquires of single locks and, in the
/// ordered mode, of several locks one by one: each is granted, and no lock has two holders.
async fn overlapping(atomic: bool) {
    let (ensemble, one, other) = start().await;
    let names = ["a", "b", "c", "d"];
    let inside: Arc<Vec<AtomicUsize>> = Arc::new(names.iter().map(|_| AtomicUsize::new(0)).collect());
    let sets = [vec![0, 1], vec![1, 2, 3], vec![3, 0], vec![2], vec![2, 1], vec![3, 2, 1, 0], vec![0]];
    let mut takers = Vec::new();
    for (number, set) in sets.iter().cycle().take(28).enumerate() {
        let manager = if number % 2 == 0 { &one } else { &other };
        let locks: Vec<Mutex> = set.iter().map(|at| mutex(manager, names[*at])).collect();
        let mut ways: Vec<Box<dyn ZooKeeperLock>> = match (set.len(), atomic) {
            (1, _) => vec![Box::new(locks[0].clone())],
            (_, true) => vec![Box::new(all_atomic(&locks))],
            // One by one, in the order of the paths.
            (_, false) if number % 3 == 0 => {
                locks.into_iter().map(|lock| Box::new(lock) as Box<dyn ZooKeeperLock>).collect()
            }
            (_, false) => vec![Box::new(all_of(&locks))],
        };
        ways.sort_by(|one, other| one.path().cmp(other.path()));
        let (set, inside) = (set.clone(), Arc::clone(&inside));
        takers.push(tokio::spawn(async move {
            for _ in 0..5 {
                let mut guards = Vec::new();
                for way in &ways {
                    guards.push(way.acquire().await.unwrap());
                }
                for at in &set {
                    assert_eq!(inside[*at].fetch_add(1, Ordering::SeqCst), 0, "two holders of one lock");
                }
                tokio::task::yield_now().await;
                for at in &set {
                    inside[*at].fetch_sub(1, Ordering::SeqCst);
                }
                for guard in guards.into_iter().rev() {
                    guard.release().await.unwrap();
                }
            }
        }));
    }
    for taker in join_all(takers).await {
        taker.unwrap();
    }
    for name in names {
        no_node_is_left(&ensemble, &format!("/multi/{name}")).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn overlapping_sets_in_any_order_never_deadlock() {
    overlapping(false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn overlapping_atomic_sets_never_deadlock() {
    overlapping(true).await;
}
