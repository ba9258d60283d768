//! Nodes of readers that no reader joins, and their end.

use std::time::Duration;

use futures::FutureExt;
use lockkeeper::config::HandOffPolicy;
use lockkeeper::error::ConfigError;
use lockkeeper::{Error, ReleaseError, Revoker, RwLock};

use super::fixture::{ReadingFixture, bounds};
use crate::limit::{becomes, within};
use crate::server_fixture::LOCK;

const LONG: Duration = Duration::from_secs(20);

#[tokio::test]
async fn the_end_of_the_session_ends_all_readers_and_the_next_ones_get_a_new_node_meanwhile() {
    let fixture = ReadingFixture::lingering().await;
    let held = [fixture.lock.read().await.unwrap(), fixture.lock.read().await.unwrap()];
    assert!(fixture.server_fixture.server.expire(fixture.session()));
    let is_next = || fixture.actor.health().epoch.is_some_and(|epoch| epoch.as_u64() >= 2);
    becomes("the next session", is_next).await.unwrap();
    // The lost guards are still alive.
    let next = within("a grant", fixture.lock.read()).await.unwrap().unwrap();
    let joined = fixture.lock.read().now_or_never().expect("no request").unwrap();
    assert!(next.is_valid() && joined.path() == next.path());
    for lost in held {
        assert!(!lost.is_valid() && lost.path() != next.path());
        let lost = lost.release().await.unwrap_err();
        assert!(matches!(lost, ReleaseError::Lost(_)), "{lost}");
    }
    assert!(next.is_valid() && joined.is_valid(), "the release of a lost guard ended the next hold");
    next.release().await.unwrap();
    joined.release().await.unwrap();
    fixture.nodes_become(1).await;
}

#[tokio::test]
async fn an_idle_node_of_readers_that_is_lost_is_not_held_again() {
    let fixture = ReadingFixture::lingering().await;
    let held = fixture.lock.read().await.unwrap();
    let node = held.path().to_owned();
    held.release().await.unwrap();
    fixture.wait_watched().await;
    assert!(fixture.server_fixture.server.delete_node(&node));
    let again = within("a grant", async {
        loop {
            let guard = fixture.lock.read().await.unwrap();
            if *guard.path() != node {
                return guard;
            }
            // The loss is not known yet.
            drop(guard);
            tokio::task::yield_now().await;
        }
    });
    assert!(again.await.unwrap().is_valid());
}

#[tokio::test]
async fn no_reader_joins_a_node_that_a_revoker_asked_for() {
    let fixture = ReadingFixture::lingering().await;
    let held = fixture.lock.read().await.unwrap();
    let joined = fixture.lock.read().await.unwrap();
    fixture.wait_watched().await;
    let inspection = fixture.theirs().inspect().await.unwrap();
    Revoker::new(&fixture.server_fixture.rival).ask(inspection.contenders()).await.unwrap();
    within("a revoke request", held.revoke_requested()).await.unwrap().unwrap();
    fixture.let_all_run().await;
    let other = within("a grant", fixture.lock.read()).await.unwrap().unwrap();
    assert_ne!(other.path(), held.path());
    drop((held, joined));
    fixture.nodes_become(1).await;
}

#[tokio::test]
async fn a_shutdown_deletes_an_idle_node_of_readers_and_refuses_readers() {
    let fixture = ReadingFixture::lingering().await;
    fixture.lock.read().await.unwrap().release().await.unwrap();
    let cut_off = within("an end in order", fixture.actor.shutdown_within(LONG)).await.unwrap().unwrap();
    assert_eq!(cut_off, 0);
    fixture.nodes_become(0).await;
    assert!(fixture.lock.read().await.unwrap_err().is_closed());
    assert!(fixture.lock.try_read().await.unwrap_err().is_closed());
}

#[tokio::test]
async fn a_shutdown_waits_for_the_readers_and_refuses_those_that_would_join() {
    let fixture = ReadingFixture::lingering().await;
    let held = fixture.lock.read().await.unwrap();
    let joined = fixture.lock.read().await.unwrap();
    let actor = fixture.actor.clone();
    let ending = tokio::spawn(async move { actor.shutdown_within(LONG).await });
    fixture.let_all_run().await;
    assert!(fixture.lock.read().await.unwrap_err().is_closed());
    assert!(held.is_valid() && !ending.is_finished());
    held.release().await.unwrap();
    fixture.let_all_run().await;
    assert!(joined.is_valid() && !ending.is_finished());
    joined.release().await.unwrap();
    assert_eq!(within("an end in order", ending).await.unwrap().unwrap().unwrap(), 0);
    fixture.nodes_become(0).await;
}

#[tokio::test]
async fn an_idle_node_of_readers_ends_with_its_time_and_keeps_no_session_alive() {
    let fixture = ReadingFixture::set(bounds().idle_time(Duration::from_millis(20))).await;
    for _ in 0..3 {
        fixture.lock.read().await.unwrap().release().await.unwrap();
        fixture.nodes_become(0).await;
    }
    let ReadingFixture { server_fixture, actor, lock: first } = fixture;
    let lock = RwLock::new(&actor, LOCK).unwrap().with_handoff(bounds().idle_time(LONG)).unwrap();
    lock.read().await.unwrap().release().await.unwrap();
    drop((first, actor, lock));
    let ended = server_fixture.server.wait_until(|machine| machine.sessions().len() == 1);
    within("the end of the session", ended).await.unwrap();
}

#[tokio::test]
async fn an_impossible_hand_off_policy_of_readers_is_refused() {
    let fixture = ReadingFixture::set(bounds()).await;
    let minute = Duration::from_secs(60);
    for (policy, named) in [
        (HandOffPolicy::default().max_handoffs(0), "max_handoffs"),
        (HandOffPolicy::default().max_time(minute), "max_time"),
        (HandOffPolicy::default().idle_time(minute), "idle_time"),
    ] {
        let lock = RwLock::new(&fixture.actor, LOCK).unwrap();
        let Err(Error::Config(ConfigError::Setting { name, .. })) = lock.with_handoff(policy) else {
            panic!("{policy:?} was accepted");
        };
        assert_eq!(name, named);
    }
}

#[tokio::test]
async fn no_reader_joins_a_node_whose_reader_knows_of_a_revoke_request() {
    let fixture = ReadingFixture::lingering().await;
    let first = fixture.lock.read().await.unwrap();
    let inspection = fixture.theirs().inspect().await.unwrap();
    Revoker::new(&fixture.server_fixture.rival).ask(inspection.contenders()).await.unwrap();
    within("a revoke request", first.revoke_requested()).await.unwrap().unwrap();
    let second = within("a read", fixture.lock.read()).await.unwrap().unwrap();
    assert_ne!(first.path(), second.path(), "a reader joined a node that another client asked for");
}
