//! What a rate limiter says of the time, limiters by key, and what is left of unused ones.

use std::time::Duration;

use lockkeeper::error::RateLimiterError;
use lockkeeper::{ConnectionManager, KeyedRateLimiter, RateLimiter, TryAdmit};
use lockkeeper_testserver::{Fault, Op, TestServer, When};

use crate::limit::within;

/// No test waits so long: the server's clock is moved.
const WINDOW: Duration = Duration::from_secs(600);
const GRACE: Duration = Duration::from_secs(60);

/// A session that outlasts every jump of the server's clock.
const SESSION: Duration = Duration::from_secs(10_000);

async fn connect(server: &TestServer) -> ConnectionManager {
    ConnectionManager::builder(&server.connect_string()).session_timeout(SESSION).connect().await.unwrap()
}

async fn connected() -> (TestServer, ConnectionManager) {
    let server =
        TestServer::builder().session_timeouts(Duration::from_secs(1), SESSION).start().await.unwrap();
    let manager = connect(&server).await;
    (server, manager)
}

#[tokio::test]
async fn after_the_time_that_a_refused_try_names_another_try_is_admitted() {
    let (server, manager) = connected().await;
    let limiter = RateLimiter::new(&manager, "/calls", 2, WINDOW).unwrap().grace(GRACE);
    for _ in 0..2 {
        assert!(limiter.try_admit().await.unwrap().admitted().is_some_and(|of| of.is_fresh()));
        server.advance_clock(Duration::from_secs(100));
    }
    let TryAdmit::Later { retry_after } = limiter.try_admit().await.unwrap() else { panic!("admitted") };
    // The first start counts for the window and the grace.
    let left = WINDOW + GRACE - Duration::from_secs(200);
    assert!(retry_after <= left + Duration::from_millis(1), "{retry_after:?}");
    assert!(retry_after > left - Duration::from_secs(60), "{retry_after:?}");
    server.advance_clock(retry_after);
    assert!(limiter.try_admit().await.unwrap().retry_after().is_none());
}

#[tokio::test]
async fn a_try_behind_a_waiter_names_a_time_and_uses_nothing_up() {
    let (server, manager) = connected().await;
    let limiter = RateLimiter::new(&manager, "/calls", 1, WINDOW).unwrap().grace(GRACE);
    let _first = limiter.admit().await.unwrap();
    let waiting = tokio::spawn({
        let limiter = limiter.clone();
        async move { limiter.admit().await.map(drop) }
    });
    within("a waiter", server.wait_until(|machine| machine.tree().ephemeral_count() == 1)).await.unwrap();
    let other = connect(&server).await;
    let behind = RateLimiter::new(&other, "/calls", 1, WINDOW).unwrap().grace(GRACE);
    assert_eq!(behind.try_admit().await.unwrap().retry_after(), Some(WINDOW + GRACE));
    waiting.abort();
}

#[tokio::test]
async fn a_grace_that_is_too_short_is_an_error_and_no_endless_loop() {
    let (_server, manager) = connected().await;
    let limiter = RateLimiter::new(&manager, "/calls", 9, WINDOW).unwrap();
    let admission = limiter.clone().grace(GRACE).admit_fresh().await.unwrap();
    assert!(admission.is_fresh());
    let error = limiter.grace(Duration::ZERO).admit_fresh_timeout(GRACE).await.unwrap_err();
    assert!(matches!(error.recipe(), Some(RateLimiterError::Stale { tries: 4, .. })), "{error}");
}

#[tokio::test]
async fn keys_do_not_wait_for_each_other_and_what_they_leave_is_swept() {
    let (server, manager) = connected().await;
    let calls = KeyedRateLimiter::new(&manager, "/calls", 1, WINDOW).unwrap().grace(GRACE);
    assert!(calls.of("").is_err());
    for key in ["anna", "bert/2", "."] {
        assert!(calls.of(key).unwrap().try_admit().await.unwrap().admitted().is_some(), "{key}");
        assert!(calls.of(key).unwrap().try_admit().await.unwrap().retry_after().is_some(), "{key}");
    }
    assert_eq!(calls.sweep().await.unwrap(), 0);
    server.advance_clock(WINDOW + GRACE * 2);
    let _again = calls.of("anna").unwrap().admit_fresh().await.unwrap();
    // The admission has deleted the start of its own key.
    assert_eq!(calls.sweep().await.unwrap(), 2);
    assert_eq!(calls.sweep().await.unwrap(), 0);
    assert!(calls.of("anna").unwrap().try_admit().await.unwrap().retry_after().is_some());
    assert!(calls.of("bert/2").unwrap().try_admit().await.unwrap().admitted().is_some());
}

/// The starts of a read over one connection decide about no transaction over another one: a server that is
/// behind may have shown too few of them.
#[tokio::test]
async fn a_start_that_is_found_over_another_connection_than_the_read_before_it_admits_nobody() {
    let (server, manager) = connected().await;
    let limiter = RateLimiter::new(&manager, "/calls", 2, WINDOW).unwrap().grace(GRACE);
    assert!(limiter.try_admit().await.unwrap().admitted().is_some());
    let start = When::op(Op::Multi).path("/calls/starts/*");
    let start = server.fault(start, Fault::HoldReply);
    let admitting = tokio::spawn(async move { limiter.try_admit().await.unwrap() });
    within("the start", start.hit()).await.unwrap();
    server.drop_connections();
    // The start counts, so there is no room for the next try.
    let tried = within("an answer", admitting).await.unwrap().unwrap();
    assert!(tried.retry_after().is_some(), "admitted by a read that may be old");
}
