//! Permits that are never handed off, and the end of their nodes.

use std::time::Duration;

use futures::FutureExt;
use lockkeeper::config::HandOffPolicy;
use lockkeeper::error::{ConfigError, LossReason};
use lockkeeper::{Error, ReleaseError, Revoker, Semaphore};
use lockkeeper_testserver::{Fault, Op, When};

use super::fixture::{LendingFixture, Waiter, bounds};
use crate::limit::{becomes, within};
use crate::server_fixture::LOCK;

const LONG: Duration = Duration::from_secs(20);

#[tokio::test]
async fn the_end_of_the_session_ends_the_leases_and_the_waiters_get_new_ones_meanwhile() {
    let fixture = LendingFixture::set(2, bounds()).await;
    let held = [fixture.semaphore.acquire().await.unwrap(), fixture.semaphore.acquire().await.unwrap()];
    let waiters = fixture.waiters(3).await;
    assert!(fixture.server_fixture.server.expire(fixture.session()));
    // The lost leases are still alive.
    let mut waiters = waiters.into_iter();
    let next = waiters.next().unwrap().lease().await;
    let other = waiters.next().unwrap().lease().await;
    for lost in &held {
        assert!(!lost.is_valid() && next.fencing_token().as_u64() > lost.fencing_token().as_u64());
    }
    for lost in held {
        let lost = lost.release().await.unwrap_err();
        assert!(matches!(lost, ReleaseError::Lost(_)), "{lost}");
    }
    assert!(next.is_valid() && other.is_valid(), "the release of a lost lease ended another one");
    let node = next.path().to_owned();
    next.release().await.unwrap();
    let last = waiters.next().unwrap().lease().await;
    assert_eq!(*last.path(), node);
    drop((last, other));
    fixture.server_fixture.queue_length_becomes(0).await.unwrap();
}

#[tokio::test]
async fn an_idle_permit_that_is_lost_is_not_held_again() {
    let fixture = LendingFixture::lingering(2).await;
    let held = fixture.semaphore.acquire().await.unwrap();
    let (node, token) = (held.path().to_owned(), held.fencing_token());
    held.release().await.unwrap();
    fixture.wait_watched().await;
    assert!(fixture.server_fixture.server.expire(fixture.session()));
    let is_next = || fixture.actor.health().epoch.is_some_and(|epoch| epoch.as_u64() >= 2);
    becomes("the next session", is_next).await.unwrap();
    let again = fixture.semaphore.acquire().await.unwrap();
    assert!(*again.path() != node && again.fencing_token() > token && again.is_valid());
    again.release().await.unwrap();
    // Permits of the next session are watched anew.
    fixture.wait_watched().await;
    let theirs = [fixture.theirs(2).acquire().await.unwrap(), fixture.theirs(2).acquire().await.unwrap()];
    fixture.leases_become(2).await;
    drop(theirs);
}

#[tokio::test]
async fn a_permit_under_which_a_transaction_may_still_be_committed_is_not_handed_off() {
    let fixture = LendingFixture::set(1, bounds()).await;
    let held = fixture.semaphore.acquire().await.unwrap();
    let node = held.path().to_owned();
    let waiter = Waiter::of(&fixture.semaphore);
    let multi = When::op(Op::Multi).path("/written").session(fixture.session());
    let multi = fixture.server_fixture.server.fault(multi, Fault::HoldRequest);
    let mut commit = Box::pin(held.txn().create("/written", "late").commit());
    assert!((&mut commit).now_or_never().is_none());
    within("the transaction", multi.hit()).await.unwrap();
    drop(commit);
    drop(held);
    multi.release();
    let lease = waiter.lease().await;
    assert!(*lease.path() != node, "the transaction may be committed under the next lease");
    lease.release().await.unwrap();
}

#[tokio::test]
async fn a_permit_that_a_revoker_asked_for_is_not_handed_off() {
    let fixture = LendingFixture::set(1, bounds()).await;
    let held = fixture.semaphore.acquire().await.unwrap();
    let node = held.path().to_owned();
    let waiter = Waiter::of(&fixture.semaphore);
    let inspection = fixture.semaphore.inspect().await.unwrap();
    let holders = inspection.contenders().iter().take(1);
    Revoker::new(&fixture.server_fixture.rival).ask(holders).await.unwrap();
    within("a revoke request", held.revoke_requested()).await.unwrap().unwrap();
    held.release().await.unwrap();
    let lease = waiter.lease().await;
    assert!(*lease.path() != node);
    lease.release().await.unwrap();
}

#[tokio::test]
async fn a_permit_whose_node_is_deleted_by_hand_is_not_handed_off() {
    let fixture = LendingFixture::set(1, bounds()).await;
    let held = fixture.semaphore.acquire().await.unwrap();
    let (node, token) = (held.path().to_owned(), held.fencing_token());
    let waiter = Waiter::of(&fixture.semaphore);
    assert!(fixture.server_fixture.server.delete_node(&node));
    let lease = waiter.lease().await;
    assert!(lease.fencing_token() > token && *lease.path() != node);
    let lost = held.release().await.unwrap_err();
    assert!(matches!(lost, ReleaseError::Lost(lost) if lost.reason == LossReason::NodeDeleted));
    lease.release().await.unwrap();
    fixture.server_fixture.queue_length_becomes(0).await.unwrap();
}

#[tokio::test]
async fn a_shutdown_deletes_idle_permits_without_waiting() {
    let fixture = LendingFixture::lingering(2).await;
    fixture.semaphore.acquire().await.unwrap().release().await.unwrap();
    let cut_off = within("an end in order", fixture.actor.shutdown_within(LONG)).await.unwrap().unwrap();
    assert_eq!(cut_off, 0);
    fixture.server_fixture.queue_length_becomes(0).await.unwrap();
    assert!(fixture.semaphore.acquire().await.unwrap_err().is_closed());
    assert!(fixture.semaphore.try_acquire().await.unwrap_err().is_closed());
}

#[tokio::test]
async fn a_shutdown_waits_for_the_leases_and_refuses_the_waiters() {
    let fixture = LendingFixture::lingering(1).await;
    let held = fixture.semaphore.acquire().await.unwrap();
    let waiter = Waiter::of(&fixture.semaphore);
    let actor = fixture.actor.clone();
    let ending = tokio::spawn(async move { actor.shutdown_within(LONG).await });
    assert!(waiter.result().await.unwrap_err().is_closed());
    assert!(held.is_valid() && !ending.is_finished());
    held.release().await.unwrap();
    assert_eq!(within("an end in order", ending).await.unwrap().unwrap().unwrap(), 0);
    fixture.server_fixture.queue_length_becomes(0).await.unwrap();
}

#[tokio::test]
async fn an_impossible_hand_off_policy_of_permits_is_refused() {
    let fixture = LendingFixture::set(1, bounds()).await;
    let minute = Duration::from_secs(60);
    for (policy, named) in [
        (HandOffPolicy::default().max_handoffs(0), "max_handoffs"),
        (HandOffPolicy::default().max_time(Duration::ZERO), "max_time"),
        (HandOffPolicy::default().max_time(minute), "max_time"),
        (HandOffPolicy::default().idle_time(minute), "idle_time"),
    ] {
        let semaphore = Semaphore::new(&fixture.actor, LOCK, 1).unwrap();
        let Err(Error::Config(ConfigError::Setting { name, .. })) = semaphore.with_handoff(policy) else {
            panic!("{policy:?} was accepted");
        };
        assert_eq!(name, named);
    }
}
