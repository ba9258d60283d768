//! A barrier that is set and removed.

use std::time::Duration;

use lockkeeper::error::Refusal;
use lockkeeper::{Barrier, Error};
use lockkeeper_testserver::{ErrorCode, Fault, Op, When};

use super::client;
use crate::limit::within;
use crate::server_fixture::{SESSION, ServerFixture, builder};

const PATH: &str = "/barriers/migration";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiters_continue_when_the_barrier_is_removed_and_not_before() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let (here, there) = (client(&server_fixture).await, &server_fixture.rival);
    let (waiting, setting) = (Barrier::new(&here, PATH).unwrap(), Barrier::new(there, PATH).unwrap());
    within("no barrier", waiting.wait()).await.unwrap().unwrap();
    assert!(!waiting.inspect().await.unwrap().is_set());
    assert!(setting.set().await.unwrap() && !setting.set().await.unwrap());
    let seen = waiting.inspect().await.unwrap();
    assert!(seen.is_set() && seen.since().is_some());
    assert!(seen.set_by().unwrap().contains(&std::process::id().to_string()), "{seen}");
    assert!(waiting.wait_timeout(Duration::ZERO).await.unwrap_err().is_timeout());
    assert!(waiting.wait_timeout(Duration::from_millis(30)).await.unwrap_err().is_timeout());
    let watches =
        server_fixture.server.fault(When::op(Op::GetData).path(PATH), Fault::DelayReply(Duration::ZERO));
    let waiter = tokio::spawn(async move { waiting.wait().await });
    within("the watch", watches.hit()).await.unwrap();
    server_fixture.round_trip_of_rival().await.unwrap();
    assert!(!waiter.is_finished());
    assert!(setting.remove().await.unwrap() && !setting.remove().await.unwrap());
    within("the waiter", waiter).await.unwrap().unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_waiter_outlives_its_connection_and_its_session() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let actor =
        builder(&server_fixture.server.connect_string()).session_timeout(SESSION * 20).connect().await;
    let (actor, setting) = (actor.unwrap(), Barrier::new(&server_fixture.rival, PATH).unwrap());
    setting.set().await.unwrap();
    let watches = server_fixture
        .server
        .fault(When::op(Op::GetData).path(PATH).always(), Fault::DelayReply(Duration::ZERO));
    let barrier = Barrier::new(&actor, PATH).unwrap();
    let waiter = tokio::spawn(async move { barrier.wait().await });
    within("the watch", watches.hit()).await.unwrap();
    server_fixture.server.drop_connections();
    within("the watch again", watches.hit_times(2)).await.unwrap();
    let session = server_fixture.sessions_of_actor()[0];
    assert!(server_fixture.server.expire(session));
    within("the watch of the next session", watches.hit_times(3)).await.unwrap();
    assert!(!waiter.is_finished());
    setting.remove().await.unwrap();
    within("the waiter", waiter).await.unwrap().unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_barrier_whose_answer_was_lost_is_found_to_be_set_and_removed() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let barrier = Barrier::new(&client(&server_fixture).await, PATH).unwrap();
    server_fixture
        .rival
        .znodes()
        .create("/barriers", "", lockkeeper::znodes::CreateMode::Persistent)
        .await
        .unwrap();
    let lost = server_fixture.server.fault(When::create().path(PATH), Fault::DropConnectionAfter);
    assert!(within("the barrier", barrier.set()).await.unwrap().unwrap());
    let also_lost = server_fixture.server.fault(When::op(Op::Delete).path(PATH), Fault::DropConnectionAfter);
    assert!(within("no barrier", barrier.remove()).await.unwrap().unwrap());
    assert_eq!((lost.hits(), also_lost.hits()), (1, 1));
    for (bad, _) in [("", 0), ("/", 0), ("no path", 0)] {
        assert!(Barrier::new(&server_fixture.rival, bad).is_err(), "{bad:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_lost_answer_a_barrier_that_another_client_set_or_removed_counts() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let barrier = Barrier::new(&client(&server_fixture).await, PATH).unwrap();
    let other = Barrier::new(&server_fixture.rival, PATH).unwrap();
    assert!(other.set().await.unwrap());
    let lost = server_fixture.server.fault(When::create().path(PATH), Fault::DropConnectionBefore);
    assert!(within("the barrier", barrier.set()).await.unwrap().unwrap(), "the other client set it");
    assert!(other.remove().await.unwrap());
    let also_lost = server_fixture.server.fault(When::op(Op::Delete).path(PATH), Fault::DropConnectionBefore);
    assert!(within("no barrier", barrier.remove()).await.unwrap().unwrap(), "the other client removed it");
    assert_eq!((lost.hits(), also_lost.hits()), (1, 1));
    // With an answer both say that they changed nothing.
    assert!(!barrier.remove().await.unwrap() && other.set().await.unwrap() && !barrier.set().await.unwrap());
}

#[tokio::test]
async fn a_refused_set_or_remove_fails_also_where_the_barrier_is_as_it_was_to_be() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let barrier = Barrier::new(&client(&server_fixture).await, PATH).unwrap();
    let session = server_fixture.sessions_of_actor()[0];
    let refuse = |when: When| {
        server_fixture.server.fault(when.path(PATH).session(session), Fault::Refuse(ErrorCode::NoAuth))
    };
    let is_refused = |error: &Error| matches!(error, Error::Refused { refusal: Refusal::NoAuth, .. });
    let refused = refuse(When::op(Op::Delete));
    let error = within("an answer", barrier.remove()).await.unwrap().unwrap_err();
    assert!(is_refused(&error), "it was not set: {error}");
    assert!(Barrier::new(&server_fixture.rival, PATH).unwrap().set().await.unwrap());
    let also_refused = refuse(When::create());
    let error = within("an answer", barrier.set()).await.unwrap().unwrap_err();
    assert!(is_refused(&error), "another client has set it: {error}");
    assert_eq!((refused.hits(), also_refused.hits()), (1, 1));
}

#[tokio::test]
async fn after_a_shutdown_a_barrier_is_neither_set_nor_removed() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let manager = client(&server_fixture).await;
    let barrier = Barrier::new(&manager, PATH).unwrap();
    manager.shutdown().await.unwrap();
    assert!(within("the end", barrier.set()).await.unwrap().unwrap_err().is_closed());
    assert!(within("the end", barrier.remove()).await.unwrap().unwrap_err().is_closed());
}
