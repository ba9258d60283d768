//! Dropping a future at any await leaves no node behind: beside holders of other permits, and with all of
//! them.

use lockkeeper_tests::{After, dropped_after};

use super::{head_sleeps, semaphore, settled, two};

#[tokio::test]
async fn a_wait_for_permits_dropped_at_any_await_leaves_no_node_and_its_successor_is_granted() {
    let (ensemble, a, b) = two().await;
    let (one, other) = (semaphore(&a, 2), semaphore(&b, 2));
    for polls in 0.. {
        let held = other.acquire().await.unwrap();
        let after = dropped_after(polls, one.acquire_many(2)).await;
        // With fewer polls it waited for an answer only.
        let is_asleep = matches!(after, After::Asleep) && polls > 3;
        assert!(!matches!(after, After::Done(_)), "three permits of two");
        drop(after);
        settled(&ensemble, 1, 0).await;
        other.acquire().await.unwrap().release().await.unwrap();
        held.release().await.unwrap();
        if is_asleep {
            break;
        }
    }
}

#[tokio::test]
async fn a_wait_dropped_at_the_moment_of_its_grant_releases_its_permits() {
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
async fn a_lease_released_in_any_way_is_free_again() {
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
