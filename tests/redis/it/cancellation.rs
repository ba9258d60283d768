//! A future that is dropped at any of its awaits leaves nothing behind.

use std::future::Future;

use lockkeeper_redis::{ConnectionManager, Lock, Mutex, Owner, RateLimiter, ReentrantMutex, Semaphore};
use lockkeeper_redis_tests::{RedisServer, left_out};
use lockkeeper_tests::{After, Timing, dropped_after, eventually};

use crate::fixture::{LONG, builder, client, server};

/// Waits until no key of the lock is left but its counter of tokens.
async fn nothing_is_left(server: &RedisServer) {
    let raw = server.raw().await.unwrap();
    eventually("no key but counters", Timing::event(), || {
        let mut raw = raw.clone();
        async move {
            let keys: Vec<String> = redis::cmd("KEYS").arg("*").query_async(&mut raw).await.unwrap();
            keys.iter().all(|key| key.ends_with(":fence")).then_some(())
        }
    })
    .await
    .unwrap();
}

/// Drops the future at its first await, at its second, and so on, until there are no more.
async fn at_every_await<F: Future>(server: &RedisServer, mut call: impl FnMut() -> F) {
    for polls in 1.. {
        let after = dropped_after(polls, call()).await;
        let is_end = after.is_end();
        drop(after);
        nothing_is_left(server).await;
        if is_end {
            return;
        }
        assert!(polls < 200);
    }
}

fn locks(manager: &ConnectionManager) -> (Mutex, ReentrantMutex, Semaphore) {
    (
        Mutex::new(manager, "a").unwrap(),
        ReentrantMutex::new(manager, "b").unwrap(),
        Semaphore::new(manager, "s", 2).unwrap(),
    )
}

fn all(manager: &ConnectionManager) -> [Box<dyn Lock>; 3] {
    let (mutex, reentrant, semaphore) = locks(manager);
    [Box::new(mutex), Box::new(reentrant.for_owner(&Owner::new("one"))), Box::new(semaphore.permits(2))]
}

#[tokio::test]
async fn an_acquire_of_a_free_lock_that_is_dropped_leaves_nothing() {
    if left_out() {
        return;
    }
    let server = server().await;
    let (mutex, reentrant, semaphore) = locks(&client(&server, LONG).await);
    let owner = Owner::new("one");
    at_every_await(&server, || mutex.acquire()).await;
    at_every_await(&server, || mutex.try_acquire()).await;
    at_every_await(&server, || reentrant.acquire(&owner)).await;
    at_every_await(&server, || semaphore.acquire_many(2)).await;
    assert_eq!(reentrant.hold_count(&owner), 0);
}

#[tokio::test]
async fn a_release_that_is_dropped_continues() {
    if left_out() {
        return;
    }
    let server = server().await;
    let (mutex, _, semaphore) = locks(&client(&server, LONG).await);
    for polls in 1..8 {
        let (guard, lease) = (mutex.acquire().await.unwrap(), semaphore.acquire().await.unwrap());
        drop(dropped_after(polls, guard.release()).await);
        drop(dropped_after(polls, lease.release()).await);
        nothing_is_left(&server).await;
    }
}

#[tokio::test]
async fn a_waiter_that_is_dropped_leaves_the_queue_also_when_it_is_being_granted() {
    if left_out() {
        return;
    }
    let server = server().await;
    let (one, other) = (client(&server, LONG).await, client(&server, LONG).await);
    for (lock, waiting) in all(&one).into_iter().zip(all(&other)) {
        for polls in 1.. {
            let guard = lock.acquire().await.unwrap();
            let acquire = async {
                let granted = waiting.acquire();
                // Released meanwhile, so the grant comes at some poll.
                let release = async { guard.release().await.unwrap() };
                futures::join!(granted, release).0
            };
            let after = dropped_after(polls, acquire).await;
            let is_end = matches!(after, After::Done(_));
            drop(after);
            nothing_is_left(&server).await;
            if is_end {
                break;
            }
            assert!(polls < 200);
        }
    }
}

#[tokio::test]
async fn an_admission_that_is_dropped_uses_up_one_start_at_most() {
    if left_out() {
        return;
    }
    let server = server().await;
    let limiter = RateLimiter::new(&client(&server, LONG).await, "r", 500, LONG).unwrap();
    let mut raw = server.raw().await.unwrap();
    for polls in 1.. {
        let is_end = dropped_after(polls, limiter.admit()).await.is_end();
        // The server answers requests of one connection in order, and this one after that of the drop.
        assert!(limiter.try_admit().await.unwrap().admitted().is_some());
        let starts: usize = redis::cmd("ZCARD").arg("r").query_async(&mut raw).await.unwrap();
        assert!(starts <= 2 * polls, "{starts} starts by {polls} admissions and as many tries");
        if is_end {
            return;
        }
        assert!(polls < 200);
    }
}

#[tokio::test]
async fn a_connect_that_is_dropped_leaves_no_connection() {
    if left_out() {
        return;
    }
    let server = server().await;
    let mut raw = server.raw().await.unwrap();
    for polls in 1.. {
        let is_end = dropped_after(polls, builder(&server.url(), LONG).connect()).await.is_end();
        let connections = || {
            let mut raw = raw.clone();
            async move {
                let list: String = redis::cmd("CLIENT").arg("LIST").query_async(&mut raw).await.unwrap();
                (list.lines().count() == 1).then_some(())
            }
        };
        eventually("the test's own connection alone", Timing::event(), connections).await.unwrap();
        if is_end {
            break;
        }
        assert!(polls < 200);
    }
    let _: String = redis::cmd("PING").query_async(&mut raw).await.unwrap();
}

#[tokio::test]
async fn a_shutdown_that_is_dropped_releases_everything_and_can_be_repeated() {
    if left_out() {
        return;
    }
    let server = server().await;
    for polls in 1..6 {
        let manager = client(&server, LONG).await;
        let guards = [all(&manager)[0].acquire().await.unwrap(), all(&manager)[2].acquire().await.unwrap()];
        drop(dropped_after(polls, manager.shutdown()).await);
        nothing_is_left(&server).await;
        manager.shutdown().await.unwrap();
        assert!(guards.iter().all(|guard| !guard.is_valid()));
    }
}
