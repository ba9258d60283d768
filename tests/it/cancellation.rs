//! Dropping a future at any await leaves no node behind.
//!
//! Every await is tried: the future is polled once, twice, three times …, and dropped there, until it gets to its
//! end. What the server then has is asked past the library.

use std::future::Future;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use lockkeeper::{ConnectionManager, Mutex, Owner, ReentrantMutex};
use lockkeeper_tests::{Ensemble, Timing};

use crate::support::{connect, no_node_is_left, nodes_become};

/// What became of a future that was given so many polls.
#[derive(Debug, PartialEq)]
enum After<T> {
    /// It got to its end.
    Done(T),
    /// It was dropped with its polls used up.
    Dropped,
    /// It was dropped while it slept and nothing woke it: further polls would be the same case.
    Asleep,
}

/// Polls `future` at most `polls` times, then drops it.
async fn dropped_after<F: Future>(polls: usize, future: F) -> After<F::Output> {
    let mut left = polls;
    let mut future = pin!(future);
    let limited = std::future::poll_fn(|context| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        match future.as_mut().poll(context) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            // Used up: dropped right where it waits.
            Poll::Pending if left == 0 => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    });
    // Not an assertion: only the end of the enumeration, for a future that waits for something that will not come.
    match tokio::time::timeout(Timing::scaled(Duration::from_millis(400)), limited).await {
        Ok(Some(output)) => After::Done(output),
        Ok(None) => After::Dropped,
        Err(_) => After::Asleep,
    }
}

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
        let held = others.acquire_owned().await.unwrap();
        let waiting = {
            let mutex = mutex.clone();
            async move { mutex.acquire_owned().await }
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
    let guard = mutex.acquire_owned().await.unwrap();
    let thread = std::thread::spawn(move || drop(guard));
    thread.join().unwrap();
    no_node_is_left(&ensemble, "/lock").await;
}

#[tokio::test]
async fn a_panic_inside_the_critical_section_releases() {
    let (ensemble, manager) = start().await;
    let mutex = Mutex::new(&manager, "/lock").unwrap();
    let task = tokio::spawn(async move {
        let _guard = mutex.acquire_owned().await.unwrap();
        panic!("as a bug in the work would");
    });
    assert!(task.await.unwrap_err().is_panic());
    no_node_is_left(&ensemble, "/lock").await;
    manager.shutdown().await.unwrap();
}
