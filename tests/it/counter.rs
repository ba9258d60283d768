//! The end of the sequence numbers on a real server: the parent's counter stops at 2147483647, and continues
//! below zero while creates are in flight (ZOOKEEPER-3249).

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use futures::future::join_all;
use lockkeeper::{ConnectionManager, Error, FencingToken, Mutex, RwLock, Semaphore};
use lockkeeper_tests::Ensemble;
use parking_lot::Mutex as Shared;

use crate::support::{LONG, builder, children, no_node_is_left};

/// A server whose counter at `path` has `left` numbers left, and two clients.
async fn near_the_end(path: &str, left: i32) -> (Ensemble, ConnectionManager, ConnectionManager) {
    let ensemble = Ensemble::builder().counter(path, i32::MAX - left).start().await.unwrap();
    let [one, other] = [(); 2].map(|()| builder(&ensemble.connect_string()).session_timeout(LONG).connect());
    let (one, other) = tokio::try_join!(one, other).unwrap();
    (ensemble, one, other)
}

/// The number of tasks, and of the acquires of each.
const TASKS: usize = 8;
const ROUNDS: usize = 6;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn across_the_end_of_the_sequence_a_mutex_has_one_holder_and_tokens_grow() {
    for left in [0, 2, 9] {
        let (ensemble, one, other) = near_the_end("/locks/a", left).await;
        let inside = Arc::new(AtomicU32::new(0));
        let newest: Arc<Shared<Option<FencingToken>>> = Arc::default();
        let tasks = (0..TASKS).map(|number| {
            let mutex = Mutex::new(if number % 2 == 0 { &one } else { &other }, "/locks/a").unwrap();
            let (inside, newest) = (Arc::clone(&inside), Arc::clone(&newest));
            tokio::spawn(async move {
                for _ in 0..ROUNDS {
                    let guard = mutex.acquire().await.unwrap();
                    assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two holders at once");
                    let before = newest.lock().replace(guard.fencing_token());
                    assert!(
                        before.is_none_or(|before| before < guard.fencing_token()),
                        "the fencing tokens do not grow"
                    );
                    tokio::task::yield_now().await;
                    inside.fetch_sub(1, Ordering::SeqCst);
                    guard.release().await.unwrap();
                }
            })
        });
        for task in join_all(tasks).await {
            task.unwrap();
        }
        no_node_is_left(&ensemble, "/locks/a").await;
        // The sequence did end: the next number is not higher.
        let guard = Mutex::new(&one, "/locks/a").unwrap().acquire().await.unwrap();
        let name = children(&ensemble, "/locks/a").await.remove(0);
        assert!(name.ends_with("lock-2147483647") || name.contains("lock--"), "{name}");
        guard.release().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn across_the_end_of_the_sequence_no_permit_too_many_is_granted() {
    const LIMIT: u32 = 3;
    let (ensemble, one, other) = near_the_end("/limited/locks", 5).await;
    let out = Arc::new(AtomicU32::new(0));
    let tasks = (0..TASKS).map(|number| {
        let semaphore =
            Semaphore::new(if number % 2 == 0 { &one } else { &other }, "/limited", LIMIT).unwrap();
        let out = Arc::clone(&out);
        tokio::spawn(async move {
            for round in 0..ROUNDS {
                let permits = u32::try_from(number + round).unwrap() % LIMIT + 1;
                let lease = semaphore.acquire_many(permits).await.unwrap();
                assert!(out.fetch_add(permits, Ordering::SeqCst) + permits <= LIMIT, "too many");
                tokio::task::yield_now().await;
                out.fetch_sub(permits, Ordering::SeqCst);
                lease.release().await.unwrap();
            }
        })
    });
    for task in join_all(tasks).await {
        task.unwrap();
    }
    no_node_is_left(&ensemble, "/limited/leases").await;
}

#[tokio::test]
async fn at_the_end_of_the_sequence_a_read_write_lock_fails_before_exclusion_breaks() {
    let (ensemble, one, other) = near_the_end("/locks/rw", 3).await;
    let (lock, others) = (RwLock::new(&one, "/locks/rw").unwrap(), RwLock::new(&other, "/locks/rw").unwrap());
    // The last numbers are valid; the node of the downgrade needs one, too.
    lock.write().await.unwrap().downgrade().await.unwrap().release().await.unwrap();
    others.read().await.unwrap().release().await.unwrap();
    for lock in [lock, others] {
        let read = lock.read().await;
        assert!(matches!(read, Err(Error::SequenceExhausted { .. })), "{read:?}");
        let write = lock.write().await;
        assert!(matches!(write, Err(Error::SequenceExhausted { .. })), "{write:?}");
    }
    no_node_is_left(&ensemble, "/locks/rw").await;
}
