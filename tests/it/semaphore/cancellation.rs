//! Dropping a future at any await leaves no node behind.

use lockkeeper::{Mutex, Semaphore, SharedLimit};
use lockkeeper_tests::{After, Ensemble, dropped_after};

use super::{head_sleeps, semaphore, settled, two};
use crate::support::{connect, no_node_is_left};

#[tokio::test]
async fn an_acquire_of_permits_dropped_anywhere_leaves_no_node() {
    let ensemble = Ensemble::start(1).await.unwrap();
    let manager = connect(&ensemble.connect_string()).await;
    for polls in 0.. {
        // A path of its own each time, so that making the directories is among the awaits.
        let path = format!("/fresh/{polls}");
        let semaphore = Semaphore::new(&manager, &path, 3).unwrap();
        let after = dropped_after(polls, semaphore.acquire_many(2)).await;
        let is_done = matches!(after, After::Done(_));
        drop(after);
        for directory in ["locks", "leases"] {
            no_node_is_left(&ensemble, &format!("{path}/{directory}")).await;
        }
        if is_done {
            assert!(polls > 8, "{polls} polls: making two directories takes more awaits");
            break;
        }
    }
    manager.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_shared_acquire_or_a_try_dropped_anywhere_leaves_no_node() {
    let ensemble = Ensemble::start(1).await.unwrap();
    let manager = connect(&ensemble.connect_string()).await;
    let limit = SharedLimit::new(&manager, "/limit").unwrap();
    limit.set(2).await.unwrap();
    let semaphore = Semaphore::with_shared_limit(&manager, super::PATH, &limit).unwrap();
    let mutex = Mutex::in_semaphore_layout(&manager, "/mutex").unwrap();
    let mut is_left = [true; 3];
    for polls in 0.. {
        if is_left[0] {
            is_left[0] = !matches!(dropped_after(polls, semaphore.acquire_many(2)).await, After::Done(_));
        }
        settled(&ensemble, 0, 0).await;
        if is_left[1] {
            is_left[1] = !matches!(dropped_after(polls, semaphore.try_acquire_many(2)).await, After::Done(_));
        }
        settled(&ensemble, 0, 0).await;
        if is_left[2] {
            is_left[2] = !matches!(dropped_after(polls, mutex.acquire()).await, After::Done(_));
        }
        no_node_is_left(&ensemble, "/mutex/leases").await;
        no_node_is_left(&ensemble, "/mutex/locks").await;
        if is_left == [false; 3] {
            break;
        }
    }
}

#[tokio::test]
async fn a_wait_for_permits_dropped_anywhere_leaves_no_node_and_the_next_is_served() {
    let (ensemble, a, b) = two().await;
    let (one, other) = (semaphore(&a, 2), semaphore(&b, 2));
    for polls in 0.. {
        let held = other.acquire().await.unwrap();
        let after = dropped_after(polls, one.acquire_many(2)).await;
        let is_asleep = matches!(after, After::Asleep);
        assert!(!matches!(after, After::Done(_)), "three permits of two");
        drop(after);
        settled(&ensemble, 1, 0).await;
        other.acquire().await.unwrap().release().await.unwrap();
        held.release().await.unwrap();
        if is_asleep {
            assert!(polls > 3, "{polls} polls: a wait takes more awaits");
            break;
        }
    }
}

#[tokio::test]
async fn a_wait_dropped_at_the_moment_it_gets_its_permits_passes_them_on() {
    let (ensemble, a, b) = two().await;
    let (one, other) = (semaphore(&a, 2), semaphore(&b, 2));
    for extra in 0..5 {
        let held = other.acquire().await.unwrap();
        let mut waiting = Box::pin(one.acquire_many(2));
        tokio::select! {
            _ = &mut waiting => panic!("three permits of two"),
            () = head_sleeps(&ensemble, 0) => {}
        }
        let release = tokio::spawn(held.release());
        let after = dropped_after(extra, &mut waiting).await;
        drop(after);
        drop(waiting);
        release.await.unwrap().unwrap();
        settled(&ensemble, 0, 0).await;
        other.acquire_many(2).await.unwrap().release().await.unwrap();
    }
}

#[tokio::test]
async fn a_lease_given_back_in_any_way_comes_back() {
    let (ensemble, a, _) = two().await;
    let semaphore = semaphore(&a, 3);
    for polls in 0.. {
        let lease = semaphore.acquire_many(3).await.unwrap();
        let is_done = matches!(dropped_after(polls, lease.release()).await, After::Done(_));
        settled(&ensemble, 0, 0).await;
        if is_done {
            break;
        }
    }
    drop(semaphore.acquire_many(2).await.unwrap());
    settled(&ensemble, 0, 0).await;
    let lease = semaphore.acquire_many(2).await.unwrap();
    std::thread::spawn(move || drop(lease)).join().unwrap();
    settled(&ensemble, 0, 0).await;
}
