//! A rate limiter whose limit is in a node, and changes while it runs.

use std::time::Duration;

use lockkeeper::error::{RateLimiterError, SemaphoreError};
use lockkeeper::locks::SharedLimit;
use lockkeeper::{ConnectionManager, Error, RateLimiter};
use lockkeeper_testserver::{Fault, Op, TestServer, When};

use crate::limit::{becomes, within};
use crate::server_fixture::servers;

/// No test waits so long.
const WINDOW: Duration = Duration::from_secs(600);

struct Shared {
    server: TestServer,
    manager: ConnectionManager,
    /// Of another process.
    limit: SharedLimit,
    calls: RateLimiter,
}

impl Shared {
    async fn new(starts: u32) -> Self {
        let server = servers().start().await.unwrap();
        let manager = ConnectionManager::connect(&server.connect_string()).await.unwrap();
        let other = ConnectionManager::connect(&server.connect_string()).await.unwrap();
        let limit = SharedLimit::new(&other, "/limit").unwrap();
        limit.set(starts).await.unwrap();
        let ours = SharedLimit::new(&manager, "/limit").unwrap();
        let calls = RateLimiter::new_shared(&manager, "/calls", &ours, WINDOW).unwrap();
        Self { server, manager, limit, calls }
    }

    async fn is_full(&self) -> bool {
        self.calls.try_admit().await.unwrap().retry_after().is_some()
    }
}

fn too_many(error: &Error) -> Option<(u32, u32)> {
    match error.recipe::<RateLimiterError>() {
        Some(RateLimiterError::TooManyStarts { asked, limit, .. }) => Some((*asked, *limit)),
        _ => None,
    }
}

#[tokio::test]
async fn a_higher_limit_wakes_the_call_that_waits_for_room() {
    let shared = Shared::new(1).await;
    drop(shared.calls.admit().await.unwrap());
    let read =
        shared.server.fault(When::op(Op::GetData).path("/limit").always(), Fault::DelayReply(Duration::ZERO));
    let calls = shared.calls.clone();
    let waiting = tokio::spawn(async move { calls.admit().await.map(drop) });
    // The limit with the turn, and the limit with a watch.
    becomes("a call that waits", || read.hits() >= 2).await.unwrap();
    assert!(!waiting.is_finished());
    shared.limit.set(2).await.unwrap();
    within("an admission", waiting).await.unwrap().unwrap().unwrap();
    assert_eq!(read.hits(), 3, "once for the change");
    assert!(shared.is_full().await);
}

/// The limit is lowered while the write of a start is on its way.
#[tokio::test]
async fn a_start_is_recorded_only_under_the_limit_that_it_was_decided_by() {
    let shared = Shared::new(2).await;
    drop(shared.calls.admit().await.unwrap());
    let write = shared.server.fault(When::op(Op::Multi).path("/calls"), Fault::HoldRequest);
    let calls = shared.calls.clone();
    let trying = tokio::spawn(async move { calls.try_admit().await.unwrap() });
    within("a write", write.hit()).await.unwrap();
    shared.limit.set(1).await.unwrap();
    write.release();
    assert!(within("an answer", trying).await.unwrap().unwrap().retry_after().is_some());
    shared.limit.set(2).await.unwrap();
    drop(shared.calls.try_admit().await.unwrap().admitted().unwrap());
}

#[tokio::test]
async fn a_lower_limit_counts_earlier_starts_and_refuses_what_it_never_admits() {
    let shared = Shared::new(5).await;
    drop(shared.calls.admit_many(4).await.unwrap());
    shared.limit.set(3).await.unwrap();
    assert!(shared.is_full().await);
    let refused = shared.calls.admit_many(4).await.unwrap_err();
    assert_eq!(too_many(&refused), Some((4, 3)), "{refused}");
    assert_eq!(shared.calls.inspect().await.unwrap().window().unwrap().limit(), 3);

    shared.limit.set(0).await.unwrap();
    let closed = shared.calls.admit().await.unwrap_err();
    assert_eq!(too_many(&closed), Some((1, 0)), "{closed}");
}

/// The call was not too large when it came.
#[tokio::test]
async fn a_waiting_call_that_a_lower_limit_never_admits_ends() {
    let shared = Shared::new(3).await;
    drop(shared.calls.admit_many(2).await.unwrap());
    let read =
        shared.server.fault(When::op(Op::GetData).path("/limit").always(), Fault::DelayReply(Duration::ZERO));
    let calls = shared.calls.clone();
    let waiting = tokio::spawn(async move { calls.admit_many(2).await.map(drop) });
    becomes("a call that waits", || read.hits() >= 2).await.unwrap();
    shared.limit.set(1).await.unwrap();
    let refused = within("an answer", waiting).await.unwrap().unwrap().unwrap_err();
    assert_eq!(too_many(&refused), Some((2, 1)), "{refused}");
}

#[tokio::test]
async fn a_call_without_a_limit_fails_and_says_where_it_belongs() {
    let shared = Shared::new(1).await;
    shared.manager.znodes().delete("/limit").await.unwrap();
    let error = shared.calls.admit().await.unwrap_err();
    assert!(matches!(error.recipe(), Some(SemaphoreError::NoLimit { .. })), "{error}");
    assert!(error.to_string().contains("/limit"), "{error}");

    let other = ConnectionManager::connect(&shared.server.connect_string()).await.unwrap();
    let error = RateLimiter::new_shared(&other, "/calls", &shared.limit, WINDOW).unwrap_err();
    assert!(matches!(error, Error::Config(_)), "{error}");
}

#[tokio::test]
async fn a_limit_below_the_starts_that_are_taken_ahead_is_used_up_and_kept() {
    let shared = Shared::new(3).await;
    let calls = shared.calls.clone().with_ahead(100).with_grace(WINDOW);
    for _ in 0..3 {
        drop(within("an admission", calls.admit()).await.unwrap().unwrap());
    }
    assert!(calls.try_admit().await.unwrap().retry_after().is_some());
}
