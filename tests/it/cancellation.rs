//! Dropping a future at any await leaves no node behind.
//!
//! Every await is tried: the future is polled once, twice, three times …, and dropped there, until it gets to its
//! end. What the server then has is asked past the library.

use lockkeeper::{ConnectionManager, Mutex, Owner, ReentrantMutex};
use lockkeeper_tests::{After, Ensemble, dropped_after};

use crate::support::{connect, no_node_is_left, nodes_become};

async fn start() -> (Ensemble, ConnectionManager) {
    let ensemble = Ensemble::start(1).await.unwrap();
    let manager = connect(&ensemble.connect_string()).await;
    (ensemble, manager)
}

#[tokio::test]
async fn an_acquire_dropped_anywhere_leaves_no_node() {
    let (ensemble, manager) = start().await;
    for polls in 0.. {
        // A path of its own each time, so that making the directory is among the awaits.
        let path = format!("/fresh/{polls}/lock");
        let mutex = Mutex::new(&manager, &path).unwrap();
        let after = dropped_after(polls, mutex.acquire()).await;
        let done = matches!(after, After::Done(_));
        drop(after);
        no_node_is_left(&ensemble, &path).await;
        if done {
            assert!(polls > 4, "{polls} polls: making a directory takes more awaits");
            break;
        }
    }
    manager.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_wait_in_line_dropped_anywhere_leaves_no_node_and_the_next_is_served() {
    let (ensemble, manager) = start().await;
    let other = connect(&ensemble.connect_string()).await;
    let (mutex, others) = (Mutex::new(&manager, "/lock").unwrap(), Mutex::new(&other, "/lock").unwrap());
    for polls in 0.. {
        let held = others.acquire().await.unwrap();
        let after = dropped_after(polls, mutex.acquire()).await;
        let asleep = matches!(after, After::Asleep);
        assert!(!matches!(after, After::Done(_)), "two holders");
        drop(after);
        nodes_become(&ensemble, "/lock", 1).await;
        held.release().await.unwrap();
        if asleep {
            assert!(polls > 2, "{polls} polls: a wait takes more awaits");
            break;
        }
    }
    mutex.acquire().await.unwrap().release().await.unwrap();
    no_node_is_left(&ensemble, "/lock").await;
}

#[tokio::test]
async fn a_wait_dropped_at_the_moment_of_its_grant_passes_it_on() {
    let (ensemble, manager) = start().await;
    let other = connect(&ensemble.connect_string()).await;
    let (mutex, others) = (Mutex::new(&manager, "/lock").unwrap(), Mutex::new(&other, "/lock").unwrap());
    for extra in 0..4 {
        let held = others.acquire().await.unwrap();
        let waiting = {
            let mutex = mutex.clone();
            async move { mutex.acquire().await }
        };
        let mut waiting = Box::pin(waiting);
        // In line and asleep.
        assert!(matches!(dropped_after(usize::MAX, &mut waiting).await, After::Asleep));
        let release = tokio::spawn(held.release());
        // Awake again: dropped after none, one, two … polls of the hand-over.
        let after = dropped_after(extra, &mut waiting).await;
        drop(after);
        drop(waiting);
        release.await.unwrap().unwrap();
        no_node_is_left(&ensemble, "/lock").await;
        others.acquire().await.unwrap().release().await.unwrap();
    }
}

#[tokio::test]
async fn a_try_dropped_anywhere_leaves_no_node() {
    let (ensemble, manager) = start().await;
    let mutex = Mutex::new(&manager, "/lock").unwrap();
    mutex.acquire().await.unwrap().release().await.unwrap();
    for polls in 0.. {
        let done = matches!(dropped_after(polls, mutex.try_acquire()).await, After::Done(_));
        no_node_is_left(&ensemble, "/lock").await;
        if done {
            break;
        }
    }
}

#[tokio::test]
async fn a_release_dropped_anywhere_goes_on() {
    let (ensemble, manager) = start().await;
    let mutex = Mutex::new(&manager, "/lock").unwrap();
    for polls in 0.. {
        let guard = mutex.acquire().await.unwrap();
        let done = matches!(dropped_after(polls, guard.release()).await, After::Done(_));
        no_node_is_left(&ensemble, "/lock").await;
        if done {
            break;
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
