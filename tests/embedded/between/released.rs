//! Faults between the release of a mutex and the delete of its node, while a create of the same session is in
//! flight.

use std::pin::pin;
use std::time::Duration;

use futures::future::{join, select};
use futures::poll;
use lockkeeper::{ConnectionManager, Mutex, MutexGuard};
use lockkeeper_testserver::{ArmedFault, Fault, Op, When};

use crate::limit::within;
use crate::server_fixture::{LOCK, ServerFixture, builder, queue_nodes};

/// A holder, and the create of the next contender, whose answer is held.
struct Fixture {
    server_fixture: ServerFixture,
    actor: ConnectionManager,
    mutex: Mutex,
    held: MutexGuard,
    create: ArmedFault,
}

async fn fixture() -> Fixture {
    let server_fixture = ServerFixture::start().await.unwrap();
    // A release that waited for as long as its request may take would end no test in time.
    let actor = builder(&server_fixture.server.connect_string())
        .session_timeout(Duration::from_secs(30))
        .operation_timeout(Duration::from_secs(300));
    let actor = actor.connect().await.unwrap();
    let mutex = Mutex::new(&actor, LOCK).unwrap();
    // After so many acquires the client expects a create to follow a node of its own session, and lists
    // nothing.
    for _ in 0..8 {
        mutex.acquire().await.unwrap().release().await.unwrap();
    }
    let held = mutex.acquire().await.unwrap();
    let create = server_fixture.server.fault(When::op(Op::Create2).path("/locks/lock/*"), Fault::HoldReply);
    Fixture { server_fixture, actor, mutex, held, create }
}

/// Counts the requests.
fn counted(server_fixture: &ServerFixture, op: Op) -> ArmedFault {
    server_fixture.server.fault(When::op(op).always(), Fault::DelayReply(Duration::ZERO))
}

#[tokio::test]
async fn a_release_waits_for_a_create_in_flight_and_saves_its_contender_a_list() {
    let Fixture { server_fixture, actor, mutex, held, create } = fixture().await;
    let counts = [Op::GetChildren, Op::Delete, Op::Multi].map(|op| counted(&server_fixture, op));
    let mut next = Box::pin(mutex.acquire());
    assert!(poll!(&mut next).is_pending(), "the lock is held");
    within("the create", create.hit()).await.unwrap();
    let mut release = Box::pin(held.release());
    assert!(poll!(&mut release).is_pending(), "the release waits for the create");
    create.release();
    let (released, guard) = within("the hand-off", join(release, next)).await.unwrap();
    released.unwrap();
    let guard = guard.unwrap();
    assert!(guard.is_valid());
    let [lists, deletes, multis] = counts.map(|count| count.hits());
    assert_eq!((lists, deletes, multis), (0, 0, 1), "lists, deletes without a check, deletes with a check");
    guard.release().await.unwrap();
    server_fixture.queue_length_becomes(0).await.unwrap();
    actor.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_release_that_is_dropped_while_it_waits_for_a_create_sends_its_delete() {
    let Fixture { server_fixture, actor, mutex, held, create } = fixture().await;
    let mut next = Box::pin(mutex.acquire());
    assert!(poll!(&mut next).is_pending(), "the lock is held");
    within("the create", create.hit()).await.unwrap();
    let mut release = Box::pin(held.release());
    assert!(poll!(&mut release).is_pending(), "the release waits for the create");
    assert_eq!(server_fixture.server.inspect(queue_nodes).len(), 2);
    drop(release);
    server_fixture.queue_length_becomes(1).await.unwrap();
    create.release();
    let guard = within("the next grant", next).await.unwrap().unwrap();
    guard.release().await.unwrap();
    server_fixture.queue_length_becomes(0).await.unwrap();
    actor.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_create_that_nobody_polls_holds_up_a_release_for_a_short_time_only() {
    let Fixture { server_fixture, actor, mutex, held, create } = fixture().await;
    let mut next = Box::pin(mutex.acquire());
    assert!(poll!(&mut next).is_pending(), "the lock is held");
    within("the create", create.hit()).await.unwrap();
    // The answer has arrived, and the contender's task does not run.
    create.release();
    let release = pin!(held.release());
    let deleted = pin!(server_fixture.queue_length_becomes(1));
    within("the delete", select(release, deleted)).await.unwrap();
    drop(next);
    server_fixture.queue_length_becomes(0).await.unwrap();
    actor.shutdown().await.unwrap();
}
