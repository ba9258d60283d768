//! What is never passed on.

use std::time::Duration;

use futures::FutureExt;
use lockkeeper::{
    ConfigError, Error, HandOffPolicy, HoldEvent, Lock, LossReason, Mutex, ReleaseError, Revoker,
};
use lockkeeper_testserver::{Fault, Op, When};

use super::fixture::{HandOffFixture, Waiter, keep};
use crate::limit::within;
use crate::server_fixture::LOCK;

const LONG: Duration = Duration::from_secs(20);

#[tokio::test]
async fn the_end_of_the_session_tells_the_holder_and_the_next_one_takes_a_new_place_meanwhile() {
    let fixture = HandOffFixture::set(keep()).await;
    let held = fixture.mutex.acquire().await.unwrap();
    let first = Waiter::of(&fixture.mutex);
    let second = Waiter::of(&fixture.mutex);
    assert!(fixture.server_fixture.server.expire(fixture.session()));
    // The lost guard is still there.
    let next = first.guard().await;
    assert!(!held.is_valid() && next.is_valid());
    assert!(next.fencing_token().as_u64() > held.fencing_token().as_u64());
    let lost = held.release().await.unwrap_err();
    assert!(matches!(lost, ReleaseError::Lost(_)), "{lost}");
    assert!(next.is_valid(), "ended by a guard that was lost");
    let node = next.path().to_owned();
    next.release().await.unwrap();
    let last = second.guard().await;
    assert_eq!(last.path(), node);
    last.release().await.unwrap();
    fixture.server_fixture.line_becomes(0).await.unwrap();
}

#[tokio::test]
async fn a_lingering_node_that_is_lost_is_not_held_again() {
    let fixture = HandOffFixture::lingering().await;
    let held = fixture.mutex.acquire().await.unwrap();
    let (node, token) = (held.path().to_owned(), held.fencing_token());
    held.release().await.unwrap();
    fixture.is_watched().await;
    assert!(fixture.server_fixture.server.expire(fixture.session()));
    within("the next session", async {
        while fixture.actor.health().epoch.is_none_or(|epoch| epoch.as_u64() < 2) {
            tokio::task::yield_now().await;
        }
    })
    .await
    .unwrap();
    let again = fixture.mutex.acquire().await.unwrap();
    assert!(again.path() != node && again.fencing_token() > token && again.is_valid());
}

#[tokio::test]
async fn a_lock_under_which_a_transaction_may_still_be_committed_is_not_passed_on() {
    let fixture = HandOffFixture::set(keep()).await;
    let held = fixture.mutex.acquire().await.unwrap();
    let node = held.path().to_owned();
    let waiter = Waiter::of(&fixture.mutex);
    let multi = When::op(Op::Multi).path("/written").session(fixture.session());
    let multi = fixture.server_fixture.server.fault(multi, Fault::HoldRequest);
    let written = "/written".parse().unwrap();
    let mut commit = Box::pin(held.txn().create(written, b"late".to_vec()).commit());
    assert!((&mut commit).now_or_never().is_none());
    within("the transaction", multi.hit()).await.unwrap();
    drop(commit);
    drop(held);
    multi.release();
    let guard = waiter.guard().await;
    assert!(guard.path() != node, "it may be committed in the time of the next guard");
    guard.release().await.unwrap();
}

#[tokio::test]
async fn a_lock_that_somebody_asked_for_is_not_passed_on() {
    let fixture = HandOffFixture::set(keep()).await;
    let held = fixture.mutex.acquire().await.unwrap();
    let node = held.path().to_owned();
    let waiter = Waiter::of(&fixture.mutex);
    let inspection = fixture.mutex.inspect().await.unwrap();
    Revoker::new(&fixture.server_fixture.rival).ask(inspection.contenders()).await.unwrap();
    within("to be asked", held.revoke_requested()).await.unwrap().unwrap();
    held.release().await.unwrap();
    let guard = waiter.guard().await;
    assert!(guard.path() != node);
    guard.release().await.unwrap();
}

#[tokio::test]
async fn a_shutdown_ends_a_linger_and_waits_for_nobody() {
    let fixture = HandOffFixture::lingering().await;
    fixture.mutex.acquire().await.unwrap().release().await.unwrap();
    let cut_off = within("an end in order", fixture.actor.shutdown_within(LONG)).await.unwrap().unwrap();
    assert_eq!(cut_off, 0);
    fixture.server_fixture.line_becomes(0).await.unwrap();
    assert!(fixture.mutex.acquire().await.unwrap_err().is_closed());
}

#[tokio::test]
async fn a_shutdown_lets_the_holder_finish_and_sends_who_waits_away() {
    let fixture = HandOffFixture::lingering().await;
    let held = fixture.mutex.acquire().await.unwrap();
    let waiter = Waiter::of(&fixture.mutex);
    let actor = fixture.actor.clone();
    let ending = tokio::spawn(async move { actor.shutdown_within(LONG).await });
    assert!(waiter.result().await.unwrap_err().is_closed());
    assert!(held.is_valid() && !ending.is_finished());
    held.release().await.unwrap();
    assert_eq!(within("an end in order", ending).await.unwrap().unwrap().unwrap(), 0);
    fixture.server_fixture.line_becomes(0).await.unwrap();
}

#[tokio::test]
async fn once_nobody_is_let_in_a_lingering_node_is_not_held_again() {
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
async fn a_lock_taken_from_its_holder_by_hand_is_not_passed_on() {
    let fixture = HandOffFixture::set(keep()).await;
    let held = fixture.mutex.acquire().await.unwrap();
    let (node, token) = (held.path().to_owned(), held.fencing_token());
    let one = Waiter::of(&fixture.mutex);
    held.release().await.unwrap();
    let held = one.guard().await;
    fixture.is_watched().await;
    let waiter = Waiter::of(&fixture.mutex);
    let mut events = Lock::events(&fixture.mutex);
    assert!(fixture.server_fixture.server.delete_node(&node));
    assert_eq!(within("the loss", held.lost()).await.unwrap().reason, LossReason::NodeDeleted);
    assert!(matches!(events.next().await, Some(HoldEvent::Lost(_))));
    let guard = waiter.guard().await;
    assert!(guard.fencing_token() > token && guard.path() != node);
    assert!(held.release().await.unwrap_err().is_lost());
    guard.release().await.unwrap();
}

#[tokio::test]
async fn what_cannot_be_kept_so_is_refused() {
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
            panic!("{keep:?} was taken");
        };
        assert_eq!(name, named);
    }
    let in_layout = Mutex::in_semaphore_layout(&fixture.actor, LOCK).unwrap();
    assert!(matches!(in_layout.with_handoff(HandOffPolicy::default()), Err(Error::Config(_))));
}

/// Nobody holds it while it is on its way from one to the other.
#[tokio::test]
async fn a_lock_that_is_lost_on_its_way_to_the_next_one_is_not_held() {
    let fixture = HandOffFixture::set(keep()).await;
    let held = fixture.mutex.acquire().await.unwrap();
    let node = held.path().to_owned();
    let waiter = Waiter::of(&fixture.mutex);
    held.release().await.unwrap();
    assert!(fixture.server_fixture.server.expire(fixture.session()));
    within("the next session", async {
        while fixture.actor.health().epoch.is_none_or(|epoch| epoch.as_u64() < 2) {
            tokio::task::yield_now().await;
        }
    })
    .await
    .unwrap();
    let guard = waiter.guard().await;
    assert!(guard.is_valid() && guard.path() != node);
    guard.release().await.unwrap();
}

/// Said by a transaction, before anybody else in the process knows.
#[tokio::test]
async fn a_release_of_what_is_lost_says_so_though_it_might_linger() {
    let fixture = HandOffFixture::lingering().await;
    let held = fixture.mutex.acquire().await.unwrap();
    assert!(fixture.server_fixture.server.delete_node(held.path()));
    let written = "/written".parse().unwrap();
    assert!(held.txn().create(written, Vec::new()).commit().await.is_err());
    assert!(held.release().await.unwrap_err().is_lost());
    let _ = fixture.mutex.acquire().await.unwrap();
}
