//! The limit of a semaphore.

use lockkeeper::error::SemaphoreError;
use lockkeeper::locks::SharedLimit;
use lockkeeper::{Error, Semaphore};
use lockkeeper_tests::{CreateMode, OpCode, Timing, eventually};

use super::{LEASES, LOCKS, PATH, head_sleeps, leases, semaphore, sent, settled, two};

const LIMIT: &str = "/limit";

#[tokio::test]
async fn a_raised_limit_wakes_the_waiters_and_a_lowered_one_revokes_nothing() {
    let (ensemble, a, b) = two().await;
    let limit = SharedLimit::new(&a, LIMIT).unwrap();
    limit.set(1).await.unwrap();
    let one = Semaphore::new_shared(&a, PATH, &limit).unwrap();
    let other = Semaphore::new_shared(&b, PATH, &SharedLimit::new(&b, LIMIT).unwrap()).unwrap();
    let first = one.acquire().await.unwrap();
    let waiter = tokio::spawn({
        let other = other.clone();
        async move { other.acquire().await.unwrap() }
    });
    settled(&ensemble, 1, 1).await;
    head_sleeps(&ensemble, 0).await;
    limit.set(2).await.unwrap();
    let second = waiter.await.unwrap();
    limit.set(1).await.unwrap();
    assert!(first.is_valid() && second.is_valid());
    assert_eq!(one.available().await.unwrap(), 0);
    second.release().await.unwrap();
    // One permit is in use, and the limit is one.
    assert!(other.try_acquire().await.unwrap().is_none());
    first.release().await.unwrap();
    other.acquire().await.unwrap().release().await.unwrap();
    settled(&ensemble, 0, 0).await;
}

#[tokio::test]
async fn a_request_beyond_the_limit_fails_and_leaves_the_queue() {
    let (ensemble, a, b) = two().await;
    let error = semaphore(&a, 2).acquire_many(3).await.unwrap_err();
    assert!(
        matches!(error.recipe(), Some(SemaphoreError::TooManyPermits { asked: 3, limit: 2, .. })),
        "{error}"
    );
    assert!(matches!(semaphore(&a, 2).try_acquire_many(0).await.unwrap_err(), Error::Config(_)));
    let limit = SharedLimit::new(&a, LIMIT).unwrap();
    limit.set(3).await.unwrap();
    let one = Semaphore::new_shared(&a, PATH, &limit).unwrap();
    let error = one.acquire_many(4).await.unwrap_err();
    assert!(
        matches!(error.recipe(), Some(SemaphoreError::TooManyPermits { asked: 4, limit: 3, .. })),
        "{error}"
    );
    // The limit is lowered while the request is at the head: the request fails, and its successor proceeds.
    let held = one.acquire().await.unwrap();
    let large = tokio::spawn({
        let one = one.clone();
        async move { one.acquire_many(3).await.unwrap_err() }
    });
    settled(&ensemble, 1, 1).await;
    let other = Semaphore::new_shared(&b, PATH, &SharedLimit::new(&b, LIMIT).unwrap()).unwrap();
    let small = tokio::spawn(async move { other.acquire().await.unwrap() });
    settled(&ensemble, 1, 2).await;
    head_sleeps(&ensemble, 1).await;
    limit.set(2).await.unwrap();
    let error = large.await.unwrap();
    assert!(
        matches!(error.recipe(), Some(SemaphoreError::TooManyPermits { asked: 3, limit: 2, .. })),
        "{error}"
    );
    small.await.unwrap().release().await.unwrap();
    held.release().await.unwrap();
    settled(&ensemble, 0, 0).await;
}

#[tokio::test]
async fn a_limit_that_is_lowered_at_the_last_moment_is_kept() {
    let (ensemble, proxies, manager) = crate::support::behind_proxy().await;
    let other = crate::support::connect(&ensemble.connect_string()).await;
    let limit = SharedLimit::new(&other, LIMIT).unwrap();
    limit.set(2).await.unwrap();
    let held = Semaphore::new_shared(&other, PATH, &limit).unwrap().acquire().await.unwrap();
    let limited = SharedLimit::new(&manager, LIMIT).unwrap();
    let semaphore = Semaphore::new_shared(&manager, PATH, &limited).unwrap();
    let taking = super::exchange(&proxies).hold_request();
    let waiter = tokio::spawn(async move { semaphore.acquire().await.unwrap() });
    // The contender has read room for two.
    taking.triggered().await.unwrap();
    limit.set(1).await.unwrap();
    taking.release();
    head_sleeps(&ensemble, 0).await;
    assert_eq!(leases(&ensemble).await, 1);
    held.release().await.unwrap();
    waiter.await.unwrap().release().await.unwrap();
}

#[tokio::test]
async fn a_shared_limit_that_is_lowered_during_a_hand_off_is_kept() {
    let (ensemble, proxies, manager) = crate::support::behind_proxy().await;
    let other = crate::support::connect(&ensemble.connect_string()).await;
    let limit = SharedLimit::new(&other, LIMIT).unwrap();
    limit.set(2).await.unwrap();
    let held = Semaphore::new_shared(&other, PATH, &limit).unwrap().acquire_many(2).await.unwrap();
    let limited = SharedLimit::new(&manager, LIMIT).unwrap();
    let semaphore = Semaphore::new_shared(&manager, PATH, &limited).unwrap();
    let mut waiting = Vec::new();
    for queue_nodes in 1..=2 {
        let semaphore = semaphore.clone();
        waiting.push(tokio::spawn(async move { semaphore.acquire().await.unwrap() }));
        settled(&ensemble, 2, queue_nodes).await;
    }
    let (second, first) = (waiting.pop().unwrap(), waiting.pop().unwrap());
    let taken = super::exchange(&proxies).hold_reply();
    held.release().await.unwrap();
    // One of two permits is taken, and the hand-off to the second contender has not arrived yet.
    taken.triggered().await.unwrap();
    proxies.clear_log();
    limit.set(1).await.unwrap();
    taken.release();
    let first = first.await.unwrap();
    let listed = eventually("a list of the second contender", Timing::event(), async || {
        sent(&proxies).contains(&OpCode::GetChildren2).then_some(())
    });
    listed.await.unwrap();
    head_sleeps(&ensemble, 0).await;
    assert!(leases(&ensemble).await == 1 && !second.is_finished());
    first.release().await.unwrap();
    second.await.unwrap().release().await.unwrap();
}

#[tokio::test]
async fn limits_that_disagree_are_an_error_that_names_both() {
    let (ensemble, a, b) = two().await;
    let (one, other) = (semaphore(&a, 2), semaphore(&b, 3));
    let held = one.acquire().await.unwrap();
    for error in [other.acquire().await.unwrap_err(), other.try_acquire().await.unwrap_err()] {
        assert!(
            matches!(error.recipe(), Some(SemaphoreError::LimitsDisagree { mine: 3, recorded: 2, .. })),
            "{error}"
        );
        let text = error.to_string();
        assert!(
            text.contains(PATH) && text.contains("the limit 2") && text.contains("the limit 3"),
            "{text}"
        );
    }
    settled(&ensemble, 1, 0).await;
    held.release().await.unwrap();
    // No hold under the old limit is left.
    let held = other.acquire_many(3).await.unwrap();
    let error = one.acquire().await.unwrap_err();
    assert!(
        matches!(error.recipe(), Some(SemaphoreError::LimitsDisagree { mine: 2, recorded: 3, .. })),
        "{error}"
    );
    held.release().await.unwrap();
    one.acquire().await.unwrap().release().await.unwrap();
}

#[tokio::test]
async fn the_first_limit_is_recorded_in_directories_of_curator_or_another_client() {
    let (ensemble, a, _) = two().await;
    let mut raw = ensemble.raw().await.unwrap();
    raw.create(PATH, b"", CreateMode::Persistent).await.unwrap();
    raw.create(LEASES, b"", CreateMode::Persistent).await.unwrap();
    // As Curator creates them: without a recorded limit, and its leases count.
    raw.create(&format!("{LEASES}/_c_1-lease-"), b"10.0.0.1", CreateMode::EphemeralSequential).await.unwrap();
    let one = semaphore(&a, 2);
    let held = one.acquire().await.unwrap();
    assert!(one.try_acquire().await.unwrap().is_none());
    assert_eq!(raw.data(LEASES).await.unwrap().0, [0, 0, 0, 2]);
    held.release().await.unwrap();
    raw.set_data(LEASES, b"foreign data").await.unwrap();
    one.acquire().await.unwrap().release().await.unwrap();
    assert_eq!(raw.data(LEASES).await.unwrap().0, b"foreign data");
}

#[tokio::test]
async fn a_shared_limit_that_cannot_be_read_is_an_error_that_says_what_to_do() {
    let (ensemble, a, _) = two().await;
    let limit = SharedLimit::new(&a, LIMIT).unwrap();
    let semaphore = Semaphore::new_shared(&a, PATH, &limit).unwrap();
    let mut raw = ensemble.raw().await.unwrap();
    let error = semaphore.acquire().await.unwrap_err();
    assert!(error.to_string().contains("SharedLimit::set()"), "{error}");
    raw.create(LIMIT, b"four", CreateMode::Persistent).await.unwrap();
    // Four bytes are a number, and this one is about 1.7 billion.
    assert_eq!(limit.get().await.unwrap(), 0x666f_7572);
    for wrong in [&b"4"[..], b"", &[0xff; 4]] {
        raw.set_data(LIMIT, wrong).await.unwrap();
        assert!(
            matches!(
                semaphore.try_acquire().await.unwrap_err().recipe(),
                Some(SemaphoreError::NoLimit { .. })
            ),
            "{wrong:?}"
        );
        assert!(matches!(
            semaphore.available().await.unwrap_err().recipe(),
            Some(SemaphoreError::NoLimit { .. })
        ));
        assert!(matches!(limit.get().await.unwrap_err().recipe(), Some(SemaphoreError::NoLimit { .. })));
    }
    crate::support::no_node_is_left(&ensemble, LOCKS).await;
    limit.set(1).await.unwrap();
    assert_eq!(raw.data(LIMIT).await.unwrap().0, [0, 0, 0, 1]);
    semaphore.acquire().await.unwrap().release().await.unwrap();
}
