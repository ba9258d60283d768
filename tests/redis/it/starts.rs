//! What a rate limiter does.

use std::time::Duration;

use futures::future::try_join_all;
use lockkeeper_redis::{BootInstant, Error, Phase, RateLimiter, RateLimiterError};
use lockkeeper_redis_tests::{Fault, Proxy, left_out};

use crate::fixture::{LONG, client, server, through};

#[tokio::test]
async fn no_window_has_more_starts_than_the_limit() {
    if left_out() {
        return;
    }
    let server = server().await;
    let managers = [client(&server, LONG).await, client(&server, LONG).await];
    let window = Duration::from_millis(200);
    let limiters = managers.each_ref().map(|manager| RateLimiter::new(manager, "r", 3, window).unwrap());
    let starts = (0..12).map(|number| {
        let limiter = limiters[number % 2].clone();
        async move {
            let admission = limiter.admit().await?;
            let now = BootInstant::now();
            // A start that comes too late on a busy machine does not count.
            Ok::<_, Error>(admission.is_fresh().then_some(now))
        }
    });
    let mut starts: Vec<BootInstant> = try_join_all(starts).await.unwrap().into_iter().flatten().collect();
    starts.sort();
    for pair in starts.windows(4) {
        assert!(pair[3].since(pair[0]) >= window, "{starts:?}");
    }
}

#[tokio::test]
async fn a_try_and_a_short_timeout_use_no_start_up() {
    if left_out() {
        return;
    }
    let server = server().await;
    let limiter = RateLimiter::new(&client(&server, LONG).await, "r", 2, Duration::from_secs(600)).unwrap();
    let _first = limiter.admit().await.unwrap();
    for timeout in [Duration::ZERO, Duration::from_secs(60)] {
        assert!(limiter.admit_timeout(timeout).await.is_ok() == timeout.is_zero());
    }
    assert!(limiter.try_admit().await.unwrap().retry_after().is_some());
    let mut raw = server.raw().await.unwrap();
    let starts: usize = redis::cmd("ZCARD").arg("r").query_async(&mut raw).await.unwrap();
    assert_eq!(starts, 2);
}

#[tokio::test]
async fn an_answer_that_was_lost_uses_one_start_up() {
    if left_out() {
        return;
    }
    let server = server().await;
    let proxy = Proxy::start(server.port()).await.unwrap();
    let limiter = RateLimiter::new(&through(&proxy, LONG).await, "r", 2, Duration::from_secs(600)).unwrap();
    let _first = limiter.admit().await.unwrap();
    proxy.arm(Fault::LoseReply, 0);
    let _second = limiter.admit().await.unwrap();
    assert!(!proxy.is_armed());
    let mut raw = server.raw().await.unwrap();
    let starts: usize = redis::cmd("ZCARD").arg("r").query_async(&mut raw).await.unwrap();
    assert_eq!(starts, 2);
    let error = limiter.admit_timeout(Duration::from_secs(60)).await.unwrap_err();
    assert!(matches!(error, Error::Timeout { phase: Phase::Starts { .. }, .. }), "{error}");
    let error = limiter.admit_many(3).await.unwrap_err();
    assert!(matches!(error, Error::RateLimiter(RateLimiterError::TooManyStarts { .. })), "{error}");
}
