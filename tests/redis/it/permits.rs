//! What a semaphore does.

use std::time::Duration;

use lockkeeper_redis::{Error, Phase, Semaphore, SemaphoreError};
use lockkeeper_redis_tests::{Proxy, left_out};

use crate::fixture::{
    LONG, client, phase_of_timeout, server, short, through, wait_for_queue, wait_until_free,
};

#[tokio::test]
async fn permits_are_taken_at_once_or_not_at_all_and_cost_one_script_each_way() {
    if left_out() {
        return;
    }
    let server = server().await;
    let proxy = Proxy::start(server.port()).await.unwrap();
    let semaphore = Semaphore::new(&through(&proxy, LONG).await, "s", 4).unwrap();
    semaphore.acquire().await.unwrap().release().await.unwrap();
    let before = proxy.requests();
    let three = semaphore.acquire_many(3).await.unwrap();
    assert_eq!((three.permits(), proxy.requests() - before), (3, 1));
    assert_eq!(semaphore.available().await.unwrap(), 1);
    assert!(semaphore.try_acquire_many(2).await.unwrap().is_none());
    let one = semaphore.acquire().await.unwrap();
    let mut phase = Phase::Queued { ahead: 1 };
    for timeout in [20, 200, 2_000].map(Duration::from_millis) {
        phase = phase_of_timeout(&server, "s", timeout, |timeout| semaphore.acquire_timeout(timeout)).await;
        if !matches!(phase, Phase::Queued { .. }) {
            break;
        }
    }
    assert_eq!(phase, Phase::Permits { asked: 1, free: 0 });
    three.release().await.unwrap();
    one.release().await.unwrap();
    assert_eq!(semaphore.available().await.unwrap(), 4);
    wait_until_free(&server, "s").await;
}

#[tokio::test]
async fn a_large_request_at_the_head_is_not_overtaken_by_small_ones() {
    if left_out() {
        return;
    }
    let server = server().await;
    let semaphore = Semaphore::new(&client(&server, LONG).await, "s", 3).unwrap();
    let held = semaphore.acquire_many(2).await.unwrap();
    let spawn = |permits| {
        let semaphore = semaphore.clone();
        tokio::spawn(async move { semaphore.acquire_many(permits).await.unwrap() })
    };
    let large = spawn(3);
    wait_for_queue(&server, "s", 1).await;
    let small = spawn(1);
    wait_for_queue(&server, "s", 2).await;
    assert!(semaphore.try_acquire().await.unwrap().is_none());
    held.release().await.unwrap();
    let large = large.await.unwrap();
    assert_eq!(semaphore.available().await.unwrap(), 0);
    wait_for_queue(&server, "s", 1).await;
    large.release().await.unwrap();
    let small = small.await.unwrap();
    assert!(small.is_valid());
}

#[tokio::test]
async fn limits_that_disagree_and_too_many_permits_are_errors() {
    if left_out() {
        return;
    }
    let server = server().await;
    let manager = client(&server, LONG).await;
    let two = Semaphore::new(&manager, "s", 2).unwrap();
    let three = Semaphore::new(&manager, "s", 3).unwrap();
    let held = two.acquire().await.unwrap();
    let error = three.acquire().await.unwrap_err();
    let disagree = |error: &Error| {
        matches!(error, Error::Semaphore(SemaphoreError::LimitsDisagree { mine: 3, recorded: 2, .. }))
    };
    assert!(disagree(&error), "{error}");
    let error = two.acquire_many(3).await.unwrap_err();
    assert!(matches!(error, Error::Semaphore(SemaphoreError::TooManyPermits { limit: 2, .. })), "{error}");
    held.release().await.unwrap();
    // When nothing is in use, the next contender sets the limit.
    three.acquire_many(3).await.unwrap().release().await.unwrap();
}

#[tokio::test]
async fn permits_of_a_holder_that_stopped_are_free_after_its_lease() {
    if left_out() {
        return;
    }
    let server = server().await;
    let proxy = Proxy::start(server.port()).await.unwrap();
    let silent = Semaphore::new(&through(&proxy, short()).await, "s", 1).unwrap();
    let lost = silent.acquire().await.unwrap();
    let other = Semaphore::new(&client(&server, short()).await, "s", 1).unwrap();
    let waiting = tokio::spawn(async move { other.acquire().await.unwrap() });
    wait_for_queue(&server, "s", 1).await;
    proxy.hold();
    let granted = waiting.await.unwrap();
    assert!(!lost.is_valid() && granted.is_valid());
    assert!(granted.fencing_token() > lost.fencing_token());
}
