//! A mutex that keeps its node: who waits for its own process waits as everyone else does.

use std::time::Duration;

use futures::FutureExt;
use lockkeeper::{Keep, Mutex, OwnedMutexGuard};

use crate::measured::all_is_back_to_zero;
use crate::recorded::{Recorded, recorder};
use crate::seen::Seen;
use crate::{builder, server};

const BRIEF: Duration = Duration::from_millis(30);

fn waits(recorded: &Recorded, outcome: &str) -> Vec<f64> {
    recorded.samples(&format!("lockkeeper_wait_seconds recipe=mutex outcome={outcome}"))
}

/// How many waits came to what: granted, busy, timeout, cancelled, error.
fn outcomes(recorded: &Recorded) -> [usize; 5] {
    ["granted", "busy", "timeout", "cancelled", "error"].map(|outcome| waits(recorded, outcome).len())
}

#[tokio::test]
async fn a_wait_for_the_own_process_is_measured_by_what_came_of_it() {
    let (recorder, recorded) = recorder();
    let _recorder = metrics::set_default_local_recorder(&recorder);
    let server = server().await;
    let manager = builder(&server).connect().await.unwrap();
    let mutex = Mutex::new(&manager, "/locks/kept").unwrap().keeping(Keep::default()).unwrap();
    let waiting = || recorded.value("lockkeeper_waiting recipe=mutex");

    let held = mutex.acquire_owned().await.unwrap();
    let mut next = Box::pin(mutex.acquire_owned());
    assert!((&mut next).now_or_never().is_none());
    assert_eq!(waiting(), 1.0, "it has no node, and waits all the same");
    let mut gives_up = Box::pin(mutex.acquire_owned());
    assert!((&mut gives_up).now_or_never().is_none());
    assert_eq!(waiting(), 2.0);
    drop(gives_up);
    assert_eq!((waiting(), outcomes(&recorded)), (1.0, [1, 0, 0, 1, 0]));
    assert!(mutex.acquire_timeout(BRIEF).await.unwrap_err().is_timeout());
    assert!(mutex.try_acquire().await.unwrap().is_none());
    assert!(mutex.acquire_timeout(Duration::ZERO).await.unwrap_err().is_timeout());
    assert_eq!((waiting(), outcomes(&recorded)), (1.0, [1, 2, 1, 1, 0]));
    assert!(waits(&recorded, "timeout")[0] >= BRIEF.as_secs_f64());

    held.release().await.unwrap();
    let held = next.await.unwrap();
    assert_eq!((waiting(), outcomes(&recorded)), (0.0, [2, 2, 1, 1, 0]));
    assert!(waits(&recorded, "granted")[1] >= BRIEF.as_secs_f64());

    let mut closed = Box::pin(mutex.acquire_owned());
    assert!((&mut closed).now_or_never().is_none());
    drop(held);
    drop(closed);
    all_is_back_to_zero(&recorded, manager).await;
    assert!(mutex.acquire().await.unwrap_err().is_closed());
    assert_eq!(outcomes(&recorded), [2, 2, 1, 2, 1]);
}

#[tokio::test]
async fn who_waits_first_here_and_then_in_the_line_has_waited_once() {
    let (recorder, recorded) = recorder();
    let _recorder = metrics::set_default_local_recorder(&recorder);
    let server = server().await;
    let manager = builder(&server).connect().await.unwrap();
    let mutex = Mutex::new(&manager, "/locks/kept").unwrap().keeping(Keep::default()).unwrap();
    let held = mutex.acquire_owned().await.unwrap();
    let mut next = Box::pin(mutex.acquire_owned());
    assert!((&mut next).now_or_never().is_none());
    assert!(mutex.acquire_timeout(BRIEF).await.unwrap_err().is_timeout());
    // Nothing is left to be passed on: it takes a place of its own.
    assert!(server.delete_node(held.path()));
    held.lost().await;
    let next = next.await.unwrap();
    assert!(next.path() != held.path());
    assert_eq!(outcomes(&recorded), [2, 0, 1, 0, 0]);
    assert!(waits(&recorded, "granted")[1] >= BRIEF.as_secs_f64());
    drop((held, next));
    all_is_back_to_zero(&recorded, manager).await;
}

#[tokio::test]
async fn a_lingering_node_is_granted_by_a_wait_and_each_guard_is_a_hold() {
    let (recorder, recorded) = recorder();
    let _recorder = metrics::set_default_local_recorder(&recorder);
    let server = server().await;
    let manager = builder(&server).connect().await.unwrap();
    let keep = Keep::default().linger(crate::SESSION / 3);
    let mutex = Mutex::new(&manager, "/locks/kept").unwrap().keeping(keep).unwrap();
    mutex.acquire().await.unwrap().release().await.unwrap();
    mutex.acquire().await.unwrap().release().await.unwrap();
    let guard: Option<OwnedMutexGuard> = mutex.try_acquire_owned().await.unwrap();
    drop(guard.unwrap());
    assert_eq!(outcomes(&recorded), [3, 0, 0, 0, 0]);
    assert_eq!(recorded.samples("lockkeeper_hold_seconds recipe=mutex outcome=released").len(), 3);
    drop(mutex);
    all_is_back_to_zero(&recorded, manager).await;
}

#[tokio::test]
async fn the_span_of_a_call_lasts_while_it_waits_for_its_own_process() {
    let (seen, _listening) = Seen::begin();
    let server = server().await;
    let manager = builder(&server).connect().await.unwrap();
    let mutex = Mutex::new(&manager, "/locks/kept").unwrap().keeping(Keep::default()).unwrap();
    let held = mutex.acquire_owned().await.unwrap();
    let mut next = Box::pin(mutex.acquire_owned());
    assert!((&mut next).now_or_never().is_none());
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
