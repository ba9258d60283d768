//! What a mutex and a reentrant mutex do while nothing fails.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use lockkeeper_redis::{Error, ErrorKind, Lock, LossReason, Mutex, Owner, Phase, ReentrantMutex, Semaphore};
use lockkeeper_redis_tests::{Proxy, left_out};
use lockkeeper_tests::{Timing, eventually};
use tokio::sync::Mutex as AsyncMutex;

use crate::fixture::{
    LONG, client, phase_of_timeout, queued, server, short, through, wait_for_queue, wait_until_free,
};

#[tokio::test]
async fn a_free_mutex_costs_one_script_to_take_and_one_to_release_and_tokens_grow() {
    if left_out() {
        return;
    }
    let server = server().await;
    let proxy = Proxy::start(server.port()).await.unwrap();
    let manager = through(&proxy, LONG).await;
    let mutex = Mutex::new(&manager, "a").unwrap();
    // The server learns the scripts.
    mutex.acquire().await.unwrap().release().await.unwrap();
    let (before, mut newest) = (proxy.requests(), 0);
    for _ in 0..10 {
        let guard = mutex.acquire().await.unwrap();
        assert!(guard.is_valid() && guard.fencing_token().as_u64() > newest);
        newest = guard.fencing_token().as_u64();
        guard.release().await.unwrap();
    }
    assert_eq!(proxy.requests() - before, 20);
}

#[tokio::test]
async fn a_held_mutex_excludes_tries_and_timeouts_say_how_many_are_ahead() {
    if left_out() {
        return;
    }
    let server = server().await;
    let (one, other) = (client(&server, LONG).await, client(&server, LONG).await);
    let guard = Mutex::new(&one, "a").unwrap().acquire().await.unwrap();
    let mutex = Mutex::new(&other, "a").unwrap();
    assert!(mutex.try_acquire().await.unwrap().is_none());
    for timeout in [Duration::ZERO, Duration::from_millis(30)] {
        let phase = phase_of_timeout(&server, "a", timeout, |timeout| mutex.acquire_timeout(timeout)).await;
        assert_eq!(phase, Phase::Queued { ahead: 0 });
    }
    // A waiter that gave up leaves the queue.
    wait_for_queue(&server, "a", 0).await;
    guard.release().await.unwrap();
    assert!(mutex.try_acquire().await.unwrap().is_some());
}

#[tokio::test]
async fn waiters_of_several_managers_are_served_in_the_order_in_which_they_queued() {
    if left_out() {
        return;
    }
    let server = server().await;
    let managers = [client(&server, LONG).await, client(&server, LONG).await];
    let guard = Mutex::new(&managers[0], "a").unwrap().acquire().await.unwrap();
    let served = Arc::new(AsyncMutex::new(Vec::new()));
    let mut tasks = Vec::new();
    for number in 0..10 {
        let mutex = Mutex::new(&managers[number % 2], "a").unwrap();
        let served = Arc::clone(&served);
        tasks.push(tokio::spawn(async move {
            let guard = mutex.acquire().await.unwrap();
            served.lock().await.push((number, guard.fencing_token()));
            guard.release().await.unwrap();
        }));
        wait_for_queue(&server, "a", number + 1).await;
    }
    guard.release().await.unwrap();
    for task in tasks {
        task.await.unwrap();
    }
    let served = served.lock().await;
    assert!(served.iter().map(|(number, _)| *number).eq(0..10), "{served:?}");
    assert!(served.is_sorted_by(|earlier, later| earlier.1 < later.1));
}

#[tokio::test]
async fn a_hand_off_needs_the_release_alone() {
    if left_out() {
        return;
    }
    let server = server().await;
    let proxy = Proxy::start(server.port()).await.unwrap();
    let waiting = through(&proxy, LONG).await;
    let guard = Mutex::new(&client(&server, LONG).await, "a").unwrap().acquire().await.unwrap();
    let mutex = Mutex::new(&waiting, "a").unwrap();
    let acquire = tokio::spawn(async move { mutex.acquire().await });
    wait_for_queue(&server, "a", 1).await;
    let before = proxy.requests();
    guard.release().await.unwrap();
    let guard = acquire.await.unwrap().unwrap();
    assert!(guard.is_valid());
    assert_eq!(proxy.requests(), before);
}

#[tokio::test]
async fn a_dropped_guard_releases_in_the_background_and_a_hold_is_renewed_beyond_its_lease() {
    if left_out() {
        return;
    }
    let server = server().await;
    let manager = client(&server, short()).await;
    let mutex = Mutex::new(&manager, "a").unwrap();
    let guard = mutex.acquire().await.unwrap();
    let first = guard.valid_until();
    eventually("three renewals", Timing::event(), || async {
        (guard.valid_until() > first.after(short() * 2)).then_some(())
    })
    .await
    .unwrap();
    assert!(guard.is_valid());
    drop(guard);
    wait_until_free(&server, "a").await;
    assert!(mutex.try_acquire().await.unwrap().is_some());
}

#[tokio::test]
async fn a_hold_whose_key_is_deleted_by_hand_is_lost_and_its_work_is_dropped() {
    if left_out() {
        return;
    }
    let server = server().await;
    let manager = client(&server, short()).await;
    let guard = Mutex::new(&manager, "a").unwrap().acquire().await.unwrap();
    let mut raw = server.raw().await.unwrap();
    let _: i64 = redis::cmd("DEL").arg("a").query_async(&mut raw).await.unwrap();
    let lost = guard.run(std::future::pending::<()>()).await.unwrap_err();
    assert_eq!(lost.reason, LossReason::Gone);
    assert!(guard.release().await.unwrap_err().is_lost());
}

#[tokio::test]
async fn an_owner_counts_its_holds_and_would_not_wait_for_itself() {
    if left_out() {
        return;
    }
    let server = server().await;
    let manager = client(&server, LONG).await;
    let reentrant = ReentrantMutex::new(&manager, "a").unwrap();
    let (owner, other) = (Owner::new("one"), Owner::new("other"));
    let guards = join_all((0..4).map(|_| reentrant.acquire(&owner))).await;
    assert_eq!((reentrant.hold_count(&owner), reentrant.hold_count(&other)), (4, 0));
    assert!(reentrant.try_acquire(&other).await.unwrap().is_none());
    let plain = Mutex::new(&manager, "a").unwrap();
    let refused = owner.scope(plain.acquire()).await.unwrap_err();
    assert!(matches!(refused, Error::WouldDeadlock { .. }), "{refused}");
    for guard in guards {
        assert!(plain.try_acquire().await.unwrap().is_none());
        guard.unwrap().release().await.unwrap();
    }
    let guard = owner.scope(plain.acquire()).await.unwrap();
    let refused = reentrant.acquire(&owner).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Misuse);
    guard.release().await.unwrap();
    assert!(matches!(reentrant.acquire_scoped().await, Err(Error::NoOwner)));
    owner.scope(reentrant.acquire_scoped()).await.unwrap().release().await.unwrap();
    let limit = Duration::from_secs(60);
    assert!(matches!(reentrant.acquire_scoped_timeout(limit).await, Err(Error::NoOwner)));
    owner.scope(reentrant.acquire_scoped_timeout(limit)).await.unwrap().release().await.unwrap();
    assert!(matches!(reentrant.try_acquire_scoped().await, Err(Error::NoOwner)));
    owner.scope(reentrant.try_acquire_scoped()).await.unwrap().unwrap().release().await.unwrap();
}

#[tokio::test]
async fn every_lock_is_a_lock_of_any_engine() {
    if left_out() {
        return;
    }
    let server = server().await;
    let manager = client(&server, LONG).await;
    let locks: Vec<Box<dyn Lock>> = vec![
        Box::new(Mutex::new(&manager, "a").unwrap()),
        Box::new(ReentrantMutex::new(&manager, "b").unwrap().for_owner(&Owner::new("one"))),
        Box::new(Semaphore::new(&manager, "c", 2).unwrap().permits(2)),
    ];
    for lock in locks {
        let guard = lock.acquire().await.unwrap();
        assert!(guard.run(async { guard.is_valid() }).await.unwrap());
        if lock.name() != "b" {
            assert!(lock.try_acquire().await.unwrap().is_none());
            let error = lock.acquire_timeout(Duration::ZERO).await.unwrap_err();
            assert!(error.is_timeout() && error.engine::<Error>().is_some());
        }
        guard.release().await.unwrap();
    }
}

#[tokio::test]
async fn a_shutdown_ends_waits_loses_guards_and_frees_the_locks() {
    if left_out() {
        return;
    }
    let server = server().await;
    let manager = client(&server, LONG).await;
    let mutex = Mutex::new(&manager, "a").unwrap();
    let guard = mutex.acquire().await.unwrap();
    let waiting = tokio::spawn({
        let mutex = mutex.clone();
        async move { mutex.acquire().await }
    });
    wait_for_queue(&server, "a", 1).await;
    assert_eq!(manager.shutdown_within(Duration::from_millis(10)).await.unwrap(), 1);
    assert!(waiting.await.unwrap().unwrap_err().is_closed());
    assert_eq!(guard.lost().await.reason, LossReason::Closed);
    assert!(mutex.acquire().await.unwrap_err().is_closed());
    assert!(Semaphore::new(&manager, "s", 1).unwrap().available().await.unwrap_err().is_closed());
    let free = Mutex::new(&client(&server, LONG).await, "a").unwrap();
    assert!(free.try_acquire().await.unwrap().is_some());
}

#[tokio::test]
async fn a_shutdown_takes_waits_that_nobody_polls_out_of_the_queue() {
    if left_out() {
        return;
    }
    let server = server().await;
    let (holder, manager) = (client(&server, LONG).await, client(&server, LONG).await);
    let _guard = Mutex::new(&holder, "m").unwrap().acquire().await.unwrap();
    let waiting = Mutex::new(&manager, "m").unwrap();
    let mut acquire = std::pin::pin!(waiting.acquire());
    tokio::select! {
        _ = &mut acquire => panic!("the lock is held"),
        () = wait_for_queue(&server, "m", 1) => {}
    }
    // As in a loop that ends at SIGTERM: the wait is neither polled nor dropped.
    manager.shutdown().await.unwrap();
    assert_eq!(queued(&mut server.raw().await.unwrap(), "m").await, 0);
    assert!(acquire.await.unwrap_err().is_closed());
}

#[tokio::test]
async fn the_last_handle_closes_the_connection_after_it_has_released_everything() {
    if left_out() {
        return;
    }
    let server = server().await;
    let manager = client(&server, LONG).await;
    let guard = Mutex::new(&manager, "a").unwrap().acquire().await.unwrap();
    drop(manager);
    assert!(guard.is_valid());
    drop(guard);
    wait_until_free(&server, "a").await;
    let raw = server.raw().await.unwrap();
    eventually("one connection", Timing::event(), || {
        let mut raw = raw.clone();
        async move {
            let list: String = redis::cmd("CLIENT").arg("LIST").query_async(&mut raw).await.unwrap();
            (!list.contains("sub=1")).then_some(())
        }
    })
    .await
    .unwrap();
}
