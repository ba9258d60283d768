//! Links that break, at every request, and links that fall silent.

use std::time::Duration;

use lockkeeper_redis::{LossReason, Mutex, Semaphore};
use lockkeeper_redis_tests::{Fault, Proxy, left_out};
use lockkeeper_tests::{Timing, eventually};

use crate::fixture::{LONG, client, server, short, through, wait_for_queue, wait_until_free};

#[tokio::test]
async fn a_lost_request_and_a_lost_reply_change_no_outcome() {
    if left_out() {
        return;
    }
    let server = server().await;
    let proxy = Proxy::start(server.port()).await.unwrap();
    let manager = through(&proxy, LONG).await;
    let mutex = Mutex::new(&manager, "a").unwrap();
    let semaphore = Semaphore::new(&manager, "s", 1).unwrap();
    // The server learns the scripts.
    mutex.acquire().await.unwrap().release().await.unwrap();
    semaphore.acquire().await.unwrap().release().await.unwrap();
    let mut struck = 0;
    for fault in [Fault::LoseRequest, Fault::LoseReply] {
        // The acquire, and the release.
        for request in 0..2 {
            struck += 2;
            proxy.arm(fault, request);
            let guard = mutex.acquire().await.unwrap();
            assert!(guard.is_valid());
            guard.release().await.unwrap();
            assert!(!proxy.is_armed(), "{fault:?} {request}");
            proxy.arm(fault, request);
            let lease = semaphore.acquire().await.unwrap();
            lease.release().await.unwrap();
            proxy.struck(struck).await;
            wait_until_free(&server, "a").await;
            wait_until_free(&server, "s").await;
        }
    }
    // A try whose answer is lost knows in the end that it holds the lock.
    proxy.arm(Fault::LoseReply, 0);
    let guard = mutex.try_acquire().await.unwrap().unwrap();
    assert!(Mutex::new(&client(&server, LONG).await, "a").unwrap().try_acquire().await.unwrap().is_none());
    guard.release().await.unwrap();
}

#[tokio::test]
async fn a_waiter_whose_link_breaks_keeps_its_position_and_misses_no_grant() {
    if left_out() {
        return;
    }
    let server = server().await;
    let proxy = Proxy::start(server.port()).await.unwrap();
    let (waiting, other) = (through(&proxy, LONG).await, client(&server, LONG).await);
    let mutex = Mutex::new(&other, "a").unwrap();
    let guard = mutex.acquire().await.unwrap();
    let spawn = |mutex: Mutex| tokio::spawn(async move { mutex.acquire().await.unwrap() });
    let first = spawn(Mutex::new(&waiting, "a").unwrap());
    wait_for_queue(&server, "a", 1).await;
    let second = spawn(mutex.clone());
    wait_for_queue(&server, "a", 2).await;
    // The grant is published while nobody listens.
    proxy.sever();
    guard.release().await.unwrap();
    wait_for_queue(&server, "a", 1).await;
    proxy.heal();
    let guard = first.await.unwrap();
    assert!(guard.is_valid() && !second.is_finished());
    guard.release().await.unwrap();
    second.await.unwrap().release().await.unwrap();
}

#[tokio::test]
async fn a_guard_behind_a_silent_link_is_lost_before_another_contender_is_granted() {
    if left_out() {
        return;
    }
    let server = server().await;
    let proxy = Proxy::start(server.port()).await.unwrap();
    let silent = Mutex::new(&through(&proxy, short()).await, "a").unwrap();
    for is_cut in [false, true] {
        let guard = silent.acquire().await.unwrap();
        let mutex = Mutex::new(&client(&server, short()).await, "a").unwrap();
        let waiting = tokio::spawn(async move { mutex.acquire().await.unwrap() });
        wait_for_queue(&server, "a", 1).await;
        if is_cut {
            proxy.sever()
        } else {
            proxy.hold()
        }
        let lost = async { (guard.lost().await, false) };
        let granted = async { waiting.await.unwrap() };
        tokio::pin!(granted);
        let lost = tokio::select! {
            biased;
            (lost, _) = lost => lost,
            _ = &mut granted => panic!("granted before the loss"),
        };
        assert_eq!(lost.reason, LossReason::LeaseRanOut);
        let next = granted.await;
        assert!(!guard.is_valid() && next.fencing_token() > guard.fencing_token());
        proxy.heal();
        assert!(guard.release().await.unwrap_err().is_lost());
        // What the lost holder sends late does not touch the lock of the next one.
        let mut raw = server.raw().await.unwrap();
        let until = next.valid_until();
        eventually("a renewal", Timing::event(), || async { (next.valid_until() > until).then_some(()) })
            .await
            .unwrap();
        let holder: Option<String> = redis::cmd("GET").arg("a").query_async(&mut raw).await.unwrap();
        assert!(holder.is_some() && next.is_valid());
        next.release().await.unwrap();
    }
}

#[tokio::test]
async fn a_release_without_an_answer_is_reported_and_done_later() {
    if left_out() {
        return;
    }
    let server = server().await;
    let proxy = Proxy::start(server.port()).await.unwrap();
    let manager = crate::fixture::builder(&proxy.url(), LONG)
        .operation_timeout(Duration::from_millis(50))
        .connect()
        .await
        .unwrap();
    let guard = Mutex::new(&manager, "a").unwrap().acquire().await.unwrap();
    proxy.sever();
    let error = guard.release().await.unwrap_err();
    assert!(error.outcome_unknown() && !error.is_lost(), "{error}");
    proxy.heal();
    wait_until_free(&server, "a").await;
}
