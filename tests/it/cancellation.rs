//! Dropping a future at any await leaves no node behind.
//!
//! Every await is tried: the future is polled once, twice, three times …, and dropped there, until it gets to
//! its end. What the server then has is asked past the library.

use std::collections::BTreeSet;

use lockkeeper::{ConnectionManager, Mutex, Owner, ReentrantMutex};
use lockkeeper_test_recipes::{AnyAdapter, LOCKS, Target};
use lockkeeper_tests::{After, Ensemble, LentEnsemble, Timing, dropped_after, eventually};

use crate::support::{connect, no_node_is_left};

async fn start() -> (LentEnsemble, ConnectionManager) {
    let ensemble = Ensemble::lend().await.unwrap();
    let manager = connect(&ensemble.connect_string()).await;
    (ensemble, manager)
}

/// Waits until all clients together have so many nodes.
async fn ephemerals_become(ensemble: &Ensemble, count: usize) {
    let seen = eventually(format!("{count} nodes"), Timing::settle(), async || {
        let nodes: usize = ensemble.dump().await.ok()?.ephemerals.values().map(BTreeSet::len).sum();
        (nodes == count).then_some(())
    });
    seen.await.unwrap();
}

/// Each lock, with its name, at a path of its own whose directory exists.
async fn locks(manager: &ConnectionManager) -> Vec<(&'static str, AnyAdapter)> {
    for (name, adapter) in LOCKS {
        adapter.prepare(at(manager, name)).await.unwrap();
        adapter.acquire(at(manager, name)).await.unwrap().release().await.unwrap();
    }
    LOCKS.to_vec()
}

fn at(manager: &ConnectionManager, name: &str) -> Target {
    Target::new(manager, &format!("/locks/{name}"))
}

#[tokio::test]
async fn an_acquire_dropped_anywhere_leaves_no_node() {
    let (ensemble, manager) = start().await;
    for (name, adapter) in LOCKS {
        for polls in 0.. {
            // A path of its own each time, so that making the directory is among the awaits.
            let name = format!("{name}/{polls}");
            adapter.prepare(at(&manager, &name)).await.unwrap();
            let after = dropped_after(polls, adapter.acquire(at(&manager, &name))).await;
            let done = matches!(after, After::Done(_));
            drop(after);
            ephemerals_become(&ensemble, 0).await;
            if done {
                let has_enough = polls > 4 || adapter.waits_for_task();
                assert!(has_enough, "{name}, {polls} polls: making a directory takes more awaits");
                break;
            }
        }
    }
    manager.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_wait_in_the_queue_dropped_anywhere_leaves_no_node_and_the_next_contender_is_served() {
    let (ensemble, manager) = start().await;
    let other = connect(&ensemble.connect_string()).await;
    for (name, adapter) in locks(&manager).await {
        for polls in 0.. {
            let held = adapter.exclude(at(&other, name)).await.unwrap();
            let after = dropped_after(polls, adapter.acquire(at(&manager, name))).await;
            // With fewer polls it waited for an answer only.
            let asleep = matches!(after, After::Asleep) && polls > 2;
            assert!(!matches!(after, After::Done(_)), "{name}: two holders");
            drop(after);
            ephemerals_become(
                &ensemble,
                held.holds().into_iter().map(|hold| hold.node_count() as usize).sum(),
            )
            .await;
            held.release().await.unwrap();
            if asleep {
                break;
            }
        }
        adapter.acquire(at(&manager, name)).await.unwrap().release().await.unwrap();
        ephemerals_become(&ensemble, 0).await;
    }
}

#[tokio::test]
async fn a_wait_dropped_at_the_moment_of_its_grant_passes_it_on() {
    let (ensemble, manager) = start().await;
    let other = connect(&ensemble.connect_string()).await;
    for (name, adapter) in locks(&manager).await {
        for extra in 0..4 {
            let held = adapter.exclude(at(&other, name)).await.unwrap();
            let mut waiting = adapter.acquire(at(&manager, name));
            assert!(matches!(dropped_after(usize::MAX, &mut waiting).await, After::Asleep), "{name}");
            let release = tokio::spawn(held.release());
            // Awake again: dropped after none, one, two … polls of the hand-over.
            let after = dropped_after(extra, &mut waiting).await;
            drop(after);
            drop(waiting);
            release.await.unwrap().unwrap();
            ephemerals_become(&ensemble, 0).await;
            adapter.acquire(at(&other, name)).await.unwrap().release().await.unwrap();
        }
    }
}

#[tokio::test]
async fn a_try_dropped_anywhere_leaves_no_node() {
    let (ensemble, manager) = start().await;
    for (name, adapter) in locks(&manager).await {
        for polls in 0.. {
            let after = dropped_after(polls, adapter.try_acquire(at(&manager, name))).await;
            let done = matches!(after, After::Done(_));
            drop(after);
            ephemerals_become(&ensemble, 0).await;
            if done {
                break;
            }
        }
    }
}

#[tokio::test]
async fn a_release_dropped_anywhere_is_completed() {
    let (ensemble, manager) = start().await;
    for (name, adapter) in locks(&manager).await {
        for polls in 0.. {
            let grant = adapter.acquire(at(&manager, name)).await.unwrap();
            let done = matches!(dropped_after(polls, grant.release()).await, After::Done(_));
            ephemerals_become(&ensemble, 0).await;
            if done {
                break;
            }
        }
    }
}

#[tokio::test]
async fn a_reentrant_acquire_dropped_anywhere_leaves_no_node_and_no_hold() {
    let (ensemble, manager) = start().await;
    let mutex = ReentrantMutex::new(&manager, "/lock").unwrap();
    let owner = Owner::new("one");
    for polls in 0.. {
        let done = matches!(dropped_after(polls, mutex.acquire(&owner)).await, After::Done(_));
        no_node_is_left(&ensemble, "/lock").await;
        assert_eq!(mutex.hold_count(&owner), 0);
        if done {
            break;
        }
    }
    mutex.acquire(&owner).await.unwrap().release().await.unwrap();
}

#[tokio::test]
async fn guards_dropped_outside_a_runtime_are_released() {
    let (ensemble, manager) = start().await;
    let mutex = Mutex::new(&manager, "/lock").unwrap();
    let guard = mutex.acquire().await.unwrap();
    let thread = std::thread::spawn(move || drop(guard));
    thread.join().unwrap();
    no_node_is_left(&ensemble, "/lock").await;
}

#[tokio::test]
async fn a_panic_inside_the_critical_section_releases() {
    let (ensemble, manager) = start().await;
    let mutex = Mutex::new(&manager, "/lock").unwrap();
    let task = tokio::spawn(async move {
        let _guard = mutex.acquire().await.unwrap();
        panic!("as a bug in the work would");
    });
    assert!(task.await.unwrap_err().is_panic());
    no_node_is_left(&ensemble, "/lock").await;
    manager.shutdown().await.unwrap();
}
