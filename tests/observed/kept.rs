//! A mutex that hands its node off: a wait for the own process is measured like any other wait.

use std::time::Duration;

use futures::FutureExt;
use futures::future::LocalBoxFuture;
use lockkeeper::config::HandOffPolicy;
use lockkeeper::{ConnectionManager, Error, Mutex, MutexGuard};
use lockkeeper_testserver::TestServer;

use crate::measured::{all_is_back_to_zero, times_out};
use crate::recorded::recorder;
use crate::seen::Seen;
use crate::{SESSION, connected};

const BRIEF: Duration = Duration::from_millis(30);

/// A mutex with a hand-off policy, its server and its manager.
async fn kept(keep: HandOffPolicy) -> (TestServer, ConnectionManager, Mutex) {
    let (server, manager) = connected().await;
    let mutex = Mutex::new(&manager, "/locks/kept").unwrap().with_handoff(keep).unwrap();
    (server, manager, mutex)
}

/// A waiter behind a guard of its own process.
fn waiter(mutex: &Mutex) -> LocalBoxFuture<'_, Result<MutexGuard, Error>> {
    let mut waiter = mutex.acquire().boxed_local();
    assert!((&mut waiter).now_or_never().is_none());
    waiter
}

#[tokio::test]
async fn a_wait_for_the_own_process_is_measured_by_its_result() {
    let (recorder, recorded) = recorder();
    let _recorder = metrics::set_default_local_recorder(&recorder);
    let (_server, manager, mutex) = kept(HandOffPolicy::default()).await;
    let waiting = || recorded.value("lockkeeper_waiting recipe=mutex");

    let held = mutex.acquire().await.unwrap();
    let next = waiter(&mutex);
    assert_eq!(waiting(), 1.0, "it has no node, and waits all the same");
    let gives_up = waiter(&mutex);
    assert_eq!(waiting(), 2.0);
    drop(gives_up);
    assert_eq!((waiting(), recorded.waited()), (1.0, [1, 0, 0, 1, 0]));
    let timeouts = times_out(&recorded, &mutex, BRIEF).await;
    assert!(mutex.try_acquire().await.unwrap().is_none());
    assert!(mutex.acquire_timeout(Duration::ZERO).await.unwrap_err().is_timeout());
    assert_eq!((waiting(), recorded.waited()), (1.0, [1, 2, timeouts, 1, 0]));

    held.release().await.unwrap();
    let held = next.await.unwrap();
    assert_eq!((waiting(), recorded.waited()), (0.0, [2, 2, timeouts, 1, 0]));
    // It began before a wait that timed out, and ended after it.
    assert!(recorded.waits("granted")[1] >= BRIEF.as_secs_f64());

    let closed = waiter(&mutex);
    drop(held);
    drop(closed);
    all_is_back_to_zero(&recorded, manager).await;
    assert!(mutex.acquire().await.unwrap_err().is_closed());
    assert_eq!(recorded.waited(), [2, 2, timeouts, 2, 1]);
}

#[tokio::test]
async fn a_wait_in_the_process_and_then_in_the_queue_is_one_wait() {
    let (recorder, recorded) = recorder();
    let _recorder = metrics::set_default_local_recorder(&recorder);
    let (server, manager, mutex) = kept(HandOffPolicy::default()).await;
    let held = mutex.acquire().await.unwrap();
    let next = waiter(&mutex);
    assert!(mutex.acquire_timeout(BRIEF).await.unwrap_err().is_timeout());
    // There is nothing left to hand off: the waiter creates its own node.
    assert!(server.delete_node(held.path()));
    held.lost().await;
    let next = next.await.unwrap();
    assert!(next.path() != held.path());
    assert_eq!(recorded.waited(), [2, 0, 1, 0, 0]);
    assert!(recorded.waits("granted")[1] >= BRIEF.as_secs_f64());
    drop((held, next));
    all_is_back_to_zero(&recorded, manager).await;
}

#[tokio::test]
async fn a_grant_of_an_idle_node_is_a_wait_and_each_guard_is_a_hold() {
    let (recorder, recorded) = recorder();
    let _recorder = metrics::set_default_local_recorder(&recorder);
    let (_server, manager, mutex) = kept(HandOffPolicy::default().idle_time(SESSION / 3)).await;
    mutex.acquire().await.unwrap().release().await.unwrap();
    mutex.acquire().await.unwrap().release().await.unwrap();
    drop(mutex.try_acquire().await.unwrap().unwrap());
    assert_eq!((recorded.waited(), recorded.held()), ([3, 0, 0, 0, 0], [2, 1, 0, 0]));
    drop(mutex);
    all_is_back_to_zero(&recorded, manager).await;
}

#[tokio::test]
async fn the_end_of_a_guard_is_reported_also_when_its_node_is_handed_off() {
    let (recorder, recorded) = recorder();
    let _recorder = metrics::set_default_local_recorder(&recorder);
    let (_server, manager, mutex) = kept(HandOffPolicy::default()).await;
    let held = mutex.acquire().await.unwrap();
    let (next, last) = (waiter(&mutex), waiter(&mutex));
    let node = held.path().to_owned();
    drop(held);
    let held = next.await.unwrap();
    assert_eq!(recorded.held(), [0, 1, 0, 0]);
    held.release().await.unwrap();
    let held = last.await.unwrap();
    assert_eq!((held.path().as_str(), recorded.held()), (node.as_str(), [1, 1, 0, 0]));
    held.release().await.unwrap();
    assert_eq!(recorded.held(), [2, 1, 0, 0]);
    all_is_back_to_zero(&recorded, manager).await;
}

#[tokio::test]
async fn a_long_wait_for_the_own_process_is_logged() {
    let (seen, _listening) = Seen::begin();
    let (_server, manager, mutex) = kept(HandOffPolicy::default()).await;
    let held = mutex.acquire().await.unwrap();
    let (mut next, mut last) = (waiter(&mutex), waiter(&mutex));
    let logged = || seen.events("still waiting for other tasks of this process");
    tokio::time::pause();
    for rounds in 1..=2 {
        tokio::time::advance(Duration::from_secs(31)).await;
        assert!((&mut next).now_or_never().is_none() && (&mut last).now_or_never().is_none());
        assert_eq!(logged().len(), 2 * rounds);
    }
    tokio::time::resume();
    assert_eq!(logged()[3].field("path"), "/locks/kept");
    assert_eq!(
        logged().iter().map(|entry| entry.field("ahead").to_owned()).collect::<Vec<_>>(),
        ["1", "2", "1", "2"]
    );
    drop((held, next, last));
    manager.shutdown().await.unwrap();
}

#[tokio::test]
async fn the_span_of_a_call_lasts_while_it_waits_for_its_own_process() {
    let (seen, _listening) = Seen::begin();
    let (_server, manager, mutex) = kept(HandOffPolicy::default()).await;
    let held = mutex.acquire().await.unwrap();
    let next = waiter(&mutex);
    assert!(!seen.spans("acquire")[1].is_closed);
    held.release().await.unwrap();
    let next = next.await.unwrap();
    let acquired = &seen.spans("acquire")[1];
    assert!(acquired.is_closed && !acquired.field("waited").is_empty());
    assert_eq!((acquired.field("path"), acquired.field("outcome")), ("/locks/kept", "granted"));
    let hold = &seen.spans("hold")[1];
    assert!(!hold.is_closed && !hold.field("waited").is_empty());
    assert_eq!(hold.field("token"), next.fencing_token().to_string());
    next.release().await.unwrap();
    manager.shutdown().await.unwrap();
}
