//! Holds that are never handed off, and the end of a node.

use std::time::Duration;

use futures::FutureExt;
use lockkeeper::config::HandOffPolicy;
use lockkeeper::error::{ConfigError, LossReason};
use lockkeeper::locks::ZooKeeperLock;
use lockkeeper::manager::HoldEvent;
use lockkeeper::{Error, Mutex, ReleaseError, Revoker};
use lockkeeper_testserver::{Fault, Op, When};

use super::fixture::{HandOffFixture, Waiter, keep};
use crate::limit::{becomes, within};
use crate::server_fixture::LOCK;

const LONG: Duration = Duration::from_secs(20);

#[tokio::test]
async fn the_end_of_the_session_ends_the_hold_and_the_next_waiter_gets_a_new_node_meanwhile() {
    let fixture = HandOffFixture::set(keep()).await;
    let held = fixture.mutex.acquire().await.unwrap();
    let first = Waiter::of(&fixture.mutex);
    let second = Waiter::of(&fixture.mutex);
    assert!(fixture.server_fixture.server.expire(fixture.session()));
    // The lost guard is still alive.
    let next = first.guard().await;
    assert!(!held.is_valid() && next.is_valid());
    assert!(next.fencing_token().as_u64() > held.fencing_token().as_u64());
    let lost = held.release().await.unwrap_err();
    assert!(matches!(lost, ReleaseError::Lost(_)), "{lost}");
    assert!(next.is_valid(), "the release of a lost guard ended the next hold");
    let node = next.path().to_owned();
    next.release().await.unwrap();
    let last = second.guard().await;
    assert_eq!(*last.path(), node);
    last.release().await.unwrap();
    fixture.server_fixture.queue_length_becomes(0).await.unwrap();
}

#[tokio::test]
async fn an_idle_node_that_is_lost_is_not_held_again() {
    let fixture = HandOffFixture::lingering().await;
    let held = fixture.mutex.acquire().await.unwrap();
    let (node, token) = (held.path().to_owned(), held.fencing_token());
    held.release().await.unwrap();
    fixture.wait_watched().await;
    assert!(fixture.server_fixture.server.expire(fixture.session()));
    let is_next = || fixture.actor.health().epoch.is_some_and(|epoch| epoch.as_u64() >= 2);
    becomes("the next session", is_next).await.unwrap();
    let again = fixture.mutex.acquire().await.unwrap();
    assert!(*again.path() != node && again.fencing_token() > token && again.is_valid());
}

#[tokio::test]
async fn a_lock_under_which_a_transaction_may_still_be_committed_is_not_handed_off() {
    let fixture = HandOffFixture::set(keep()).await;
    let held = fixture.mutex.acquire().await.unwrap();
    let node = held.path().to_owned();
    let waiter = Waiter::of(&fixture.mutex);
    let multi = When::op(Op::Multi).path("/written").session(fixture.session());
    let multi = fixture.server_fixture.server.fault(multi, Fault::HoldRequest);
    let mut commit = Box::pin(held.txn().create("/written", "late").commit());
    assert!((&mut commit).now_or_never().is_none());
    within("the transaction", multi.hit()).await.unwrap();
    drop(commit);
    drop(held);
    multi.release();
    let guard = waiter.guard().await;
    assert!(*guard.path() != node, "the transaction may be committed under the next guard");
    guard.release().await.unwrap();
}

#[tokio::test]
async fn a_lock_that_a_revoker_asked_for_is_not_handed_off() {
    let fixture = HandOffFixture::set(keep()).await;
    let held = fixture.mutex.acquire().await.unwrap();
    let node = held.path().to_owned();
    let waiter = Waiter::of(&fixture.mutex);
    let inspection = fixture.mutex.inspect().await.unwrap();
    Revoker::new(&fixture.server_fixture.rival).ask(inspection.contenders()).await.unwrap();
    within("a revoke request", held.revoke_requested()).await.unwrap().unwrap();
    held.release().await.unwrap();
    let guard = waiter.guard().await;
    assert!(*guard.path() != node);
    guard.release().await.unwrap();
}

#[tokio::test]
async fn a_shutdown_deletes_an_idle_node_without_waiting() {
    let fixture = HandOffFixture::lingering().await;
    fixture.mutex.acquire().await.unwrap().release().await.unwrap();
    let cut_off = within("an end in order", fixture.actor.shutdown_within(LONG)).await.unwrap().unwrap();
    assert_eq!(cut_off, 0);
    fixture.server_fixture.queue_length_becomes(0).await.unwrap();
    assert!(fixture.mutex.acquire().await.unwrap_err().is_closed());
}

#[tokio::test]
async fn a_shutdown_waits_for_the_holder_and_refuses_the_waiters() {
    let fixture = HandOffFixture::lingering().await;
    let held = fixture.mutex.acquire().await.unwrap();
    let waiter = Waiter::of(&fixture.mutex);
    let actor = fixture.actor.clone();
    let ending = tokio::spawn(async move { actor.shutdown_within(LONG).await });
    assert!(waiter.result().await.unwrap_err().is_closed());
    assert!(held.is_valid() && !ending.is_finished());
    held.release().await.unwrap();
    assert_eq!(within("an end in order", ending).await.unwrap().unwrap().unwrap(), 0);
    fixture.server_fixture.queue_length_becomes(0).await.unwrap();
}

#[tokio::test]
async fn after_the_beginning_of_a_shutdown_an_idle_node_is_not_held_again() {
    let fixture = HandOffFixture::lingering().await;
    let other = Mutex::new(&fixture.actor, "/locks/other").unwrap().acquire().await.unwrap();
    fixture.mutex.acquire().await.unwrap().release().await.unwrap();
    let actor = fixture.actor.clone();
    let ending = tokio::spawn(async move { actor.shutdown_within(LONG).await });
    fixture.let_all_run().await;
    assert!(fixture.mutex.acquire().await.unwrap_err().is_closed());
    assert!(other.is_valid());
    other.release().await.unwrap();
    assert_eq!(within("an end in order", ending).await.unwrap().unwrap().unwrap(), 0);
}

#[tokio::test]
async fn a_lock_whose_node_is_deleted_by_hand_is_not_handed_off() {
    let fixture = HandOffFixture::set(keep()).await;
    let held = fixture.mutex.acquire().await.unwrap();
    let (node, token) = (held.path().to_owned(), held.fencing_token());
    let one = Waiter::of(&fixture.mutex);
    held.release().await.unwrap();
    let held = one.guard().await;
    fixture.wait_watched().await;
    let waiter = Waiter::of(&fixture.mutex);
    let mut events = ZooKeeperLock::events(&fixture.mutex);
    assert!(fixture.server_fixture.server.delete_node(&node));
    assert_eq!(within("the loss", held.lost()).await.unwrap().reason, LossReason::NodeDeleted);
    assert!(matches!(events.next().await, Some(HoldEvent::Lost { .. })));
    let guard = waiter.guard().await;
    assert!(guard.fencing_token() > token && *guard.path() != node);
    assert!(held.release().await.unwrap_err().is_lost());
    guard.release().await.unwrap();
}

#[tokio::test]
async fn an_impossible_hand_off_policy_is_refused() {
    let fixture = HandOffFixture::set(keep()).await;
    let mutex = || Mutex::new(&fixture.actor, LOCK).unwrap();
    let minute = Duration::from_secs(60);
    for (keep, named) in [
        (HandOffPolicy::default().max_handoffs(0), "max_handoffs"),
        (HandOffPolicy::default().max_time(Duration::ZERO), "max_time"),
        (HandOffPolicy::default().max_time(minute), "max_time"),
        (HandOffPolicy::default().idle_time(minute), "idle_time"),
    ] {
        let Err(Error::Config(ConfigError::Setting { name, .. })) = mutex().with_handoff(keep) else {
            panic!("{keep:?} was accepted");
        };
        assert_eq!(name, named);
    }
    let in_layout = Mutex::in_semaphore_layout(&fixture.actor, LOCK).unwrap();
    assert!(matches!(in_layout.with_handoff(HandOffPolicy::default()), Err(Error::Config(_))));
}

/// No guard exists while the hand-off is in flight.
#[tokio::test]
async fn a_lock_that_is_lost_during_its_hand_off_is_not_held() {
    let fixture = HandOffFixture::set(keep()).await;
    let held = fixture.mutex.acquire().await.unwrap();
    let node = held.path().to_owned();
    let waiter = Waiter::of(&fixture.mutex);
    held.release().await.unwrap();
    assert!(fixture.server_fixture.server.expire(fixture.session()));
    let is_next = || fixture.actor.health().epoch.is_some_and(|epoch| epoch.as_u64() >= 2);
    becomes("the next session", is_next).await.unwrap();
    let guard = waiter.guard().await;
    assert!(guard.is_valid() && *guard.path() != node);
    guard.release().await.unwrap();
}

/// The transaction returns the loss before any other part of the process notices it.
#[tokio::test]
async fn the_release_of_a_lost_hold_returns_the_loss_even_if_its_node_could_be_kept() {
    let fixture = HandOffFixture::lingering().await;
    let held = fixture.mutex.acquire().await.unwrap();
    assert!(fixture.server_fixture.server.delete_node(held.path()));
    assert!(held.txn().create("/written", "").commit().await.is_err());
    assert!(held.release().await.unwrap_err().is_lost());
    let _ = fixture.mutex.acquire().await.unwrap();
}
