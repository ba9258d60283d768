//! Promises that hold for every kind of lock, and for programs outside of the queue.

use std::sync::Arc;

use lockkeeper_redis::{
    ConnectionManager, Lock, LockGuard, LossReason, Mutex, Owner, ReentrantMutex, Semaphore,
};
use lockkeeper_redis_tests::{Proxy, RedisServer, left_out};
use lockkeeper_tests::{Timing, eventually};

use crate::fixture::{LONG, client, server, short, through, wait_for_queue};

/// Every kind of lock, for one holder at a time.
fn locks(manager: &ConnectionManager) -> Vec<Arc<dyn Lock>> {
    vec![
        Arc::new(Mutex::new(manager, "mutex").unwrap()),
        Arc::new(ReentrantMutex::new(manager, "reentrant").unwrap().for_owner(&Owner::new("one"))),
        Arc::new(Semaphore::new(manager, "semaphore", 3).unwrap().permits(2)),
    ]
}

fn acquire(lock: &Arc<dyn Lock>) -> tokio::task::JoinHandle<LockGuard> {
    let lock = Arc::clone(lock);
    tokio::spawn(async move { lock.acquire().await.unwrap() })
}

#[tokio::test]
async fn every_kind_of_guard_is_lost_before_its_lock_is_granted_to_another_contender() {
    if left_out() {
        return;
    }
    let server = server().await;
    let proxy = Proxy::start(server.port()).await.unwrap();
    let (silent, others) = (through(&proxy, short()).await, client(&server, short()).await);
    for (lock, other) in locks(&silent).into_iter().zip(locks(&others)) {
        let guard = lock.acquire().await.unwrap();
        let waiting = acquire(&other);
        wait_for_queue(&server, lock.name(), 1).await;
        proxy.hold();
        let mut waiting = waiting;
        tokio::select! {
            biased;
            lost = guard.lost() => assert!(lost.is_lost() && !guard.is_valid(), "{lost}"),
            _ = &mut waiting => panic!("{} is granted before the loss", lock.name()),
        }
        let until = guard.valid_until();
        let next = waiting.await.unwrap();
        assert!(guard.valid_until() <= until && next.fencing_token() > guard.fencing_token());
        proxy.heal();
        next.release().await.unwrap();
    }
}

#[tokio::test]
async fn a_waiter_that_crashed_is_skipped_and_those_behind_it_are_granted() {
    if left_out() {
        return;
    }
    let server = server().await;
    let proxy = Proxy::start(server.port()).await.unwrap();
    let (crashing, others) = (through(&proxy, short()).await, client(&server, LONG).await);
    for (lock, other) in locks(&crashing).into_iter().zip(locks(&others)) {
        // An owner does not wait for itself.
        let holder = match other.name() {
            "reentrant" => Arc::new(Mutex::new(&others, "reentrant").unwrap()) as Arc<dyn Lock>,
            _ => Arc::clone(&other),
        };
        let guard = holder.acquire().await.unwrap();
        let crashed = acquire(&lock);
        wait_for_queue(&server, lock.name(), 1).await;
        // To the server, a manager that says nothing more is one that crashed.
        proxy.hold();
        let behind = acquire(&other);
        wait_for_queue(&server, lock.name(), 2).await;
        wait_until_it_is_not_alive(&server, lock.name()).await;
        guard.release().await.unwrap();
        let next = behind.await.unwrap();
        assert!(next.is_valid() && !crashed.is_finished());
        crashed.abort();
        next.release().await.unwrap();
        proxy.heal();
    }
}

/// Waits until the first waiter of a lock has been silent for its lease.
async fn wait_until_it_is_not_alive(server: &RedisServer, name: &str) {
    let raw = server.raw().await.unwrap();
    let key = |part: &str| format!("{{{name}}}:lockkeeper:{part}");
    let head: Vec<String> =
        redis::cmd("ZRANGE").arg(key("queue")).arg(0).arg(0).query_async(&mut raw.clone()).await.unwrap();
    eventually("a waiter that is not alive", Timing::event(), || async {
        let mut raw = raw.clone();
        let waiter: String =
            redis::cmd("HGET").arg(key("waiters")).arg(&head[0]).query_async(&mut raw).await.unwrap();
        let (seconds, micros): (u64, u64) = redis::cmd("TIME").query_async(&mut raw).await.unwrap();
        let until: u64 = waiter.split(':').next().unwrap().parse().unwrap();
        (until < seconds * 1_000 + micros / 1_000).then_some(())
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn a_lock_that_another_program_took_over_is_lost_and_not_released() {
    if left_out() {
        return;
    }
    let server = server().await;
    let mutex = Mutex::new(&client(&server, short()).await, "a").unwrap();
    let mut raw = server.raw().await.unwrap();
    for is_known in [true, false] {
        let guard = mutex.acquire().await.unwrap();
        let _: () = redis::cmd("SET").arg("a").arg("another program").query_async(&mut raw).await.unwrap();
        if is_known {
            assert_eq!(guard.lost().await.reason, LossReason::Gone);
        }
        assert!(guard.release().await.unwrap_err().is_lost());
        // Nor is it released in the background.
        assert!(mutex.try_acquire().await.unwrap().is_none());
        let holder: String = redis::cmd("GET").arg("a").query_async(&mut raw).await.unwrap();
        assert_eq!(holder, "another program");
        let _: () = redis::cmd("DEL").arg("a").query_async(&mut raw).await.unwrap();
    }
}

#[tokio::test]
async fn no_program_outside_of_the_queue_comes_between_a_holder_and_a_waiter() {
    if left_out() {
        return;
    }
    let server = server().await;
    let mutex = Mutex::new(&client(&server, LONG).await, "a").unwrap();
    let mut guard = mutex.acquire().await.unwrap();
    let mut raw = server.raw().await.unwrap();
    let over = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let outside = tokio::spawn({
        let over = Arc::clone(&over);
        async move {
            let mut tries = 0;
            while !over.load(std::sync::atomic::Ordering::SeqCst) {
                let mut set = redis::cmd("SET");
                set.arg("a").arg("outside").arg("NX").arg("PX").arg(60_000);
                let taken: Option<String> = set.query_async(&mut raw).await.unwrap();
                assert!(taken.is_none(), "after {tries} tries");
                tries += 1;
            }
            tries
        }
    });
    for _ in 0..30 {
        let waiting = tokio::spawn({
            let mutex = mutex.clone();
            async move { mutex.acquire().await.unwrap() }
        });
        wait_for_queue(&server, "a", 1).await;
        guard.release().await.unwrap();
        guard = waiting.await.unwrap();
    }
    over.store(true, std::sync::atomic::Ordering::SeqCst);
    assert!(outside.await.unwrap() > 0);
}
