//! Between a holder and the next contender of its process, whose node is deleted by hand.

use std::time::Duration;

use futures::poll;
use lockkeeper::{ConnectionManager, Mutex, RwLock};
use lockkeeper_testserver::{Fault, Op, When};

use super::cut_off;
use crate::limit::within;
use crate::server_fixture::{LOCK, ServerFixture, builder, in_line};

/// A client whose session outlasts a break of its link.
async fn patient(server_fixture: &ServerFixture) -> ConnectionManager {
    let patient = builder(&server_fixture.server.connect_string()).session_timeout(Duration::from_secs(30));
    patient.connect().await.unwrap()
}

/// The only node in the directory that is none of these.
fn newest(server_fixture: &ServerFixture, others: &[&str]) -> String {
    let mut nodes = server_fixture.server.inspect(in_line);
    nodes.retain(|path| !others.contains(&path.as_str()));
    assert_eq!(nodes.len(), 1, "{nodes:?}");
    nodes.remove(0)
}

#[tokio::test]
async fn without_a_connection_no_lock_is_handed_over_within_the_process() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let actor = patient(&server_fixture).await;
    let mutex = Mutex::new(&actor, LOCK).unwrap();
    let held = mutex.acquire().await.unwrap();
    let front = held.path().to_owned();
    let mut next = mutex.enqueue().await.unwrap();
    let mine = newest(&server_fixture, &[&front]);
    let mut next = Box::pin(next.wait());
    assert!(poll!(&mut next).is_pending(), "it waits");
    let away = cut_off(&server_fixture, &actor).await;
    assert!(server_fixture.server.delete_node(&mine));
    assert!(server_fixture.server.delete_node(&front));
    drop(held);
    assert!(poll!(&mut next).is_pending(), "granted without a node");
    drop(away);
    let guard = within("a turn in a new place", next).await.unwrap().unwrap();
    assert!(guard.path() != mine && guard.is_valid());
    guard.release().await.unwrap();
    server_fixture.line_becomes(0).await.unwrap();
}

#[tokio::test]
async fn without_a_connection_no_reader_is_let_in_by_the_writer_in_front() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let actor = patient(&server_fixture).await;
    let lock = RwLock::new(&actor, LOCK).unwrap();
    let writing = lock.write().await.unwrap();
    let front = writing.path().to_owned();
    let mut reading = Box::pin(lock.read());
    while server_fixture.server.inspect(in_line).len() < 2 {
        assert!(poll!(&mut reading).is_pending(), "it waits");
        tokio::task::yield_now().await;
    }
    // Its answer comes before that to what is sent now.
    actor.znodes().read(&"/zookeeper".parse().unwrap()).await.unwrap();
    assert!(poll!(&mut reading).is_pending(), "it waits");
    let mine = newest(&server_fixture, &[&front]);
    let away = cut_off(&server_fixture, &actor).await;
    assert!(server_fixture.server.delete_node(&mine));
    assert!(server_fixture.server.delete_node(&front));
    drop(writing);
    assert!(poll!(&mut reading).is_pending(), "granted without a node");
    drop(away);
    let guard = within("a turn in a new place", reading).await.unwrap().unwrap();
    assert!(guard.path() != mine && guard.is_valid());
    guard.release().await.unwrap();
    server_fixture.line_becomes(0).await.unwrap();
}

#[tokio::test]
async fn a_number_behind_a_holder_that_leaves_meanwhile_grants_only_by_a_list() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let actor = patient(&server_fixture).await;
    let mutex = Mutex::new(&actor, LOCK).unwrap();
    // So often that numbers tell.
    for _ in 0..8 {
        mutex.acquire().await.unwrap().release().await.unwrap();
    }
    let held = mutex.acquire().await.unwrap();
    let front = held.path().to_owned();
    let session = server_fixture.sessions_of_actor()[0];
    let when = When::op(Op::Create2).path("/locks/lock/*").session(session);
    let create = server_fixture.server.fault(when, Fault::HoldReply);
    let mut next = Box::pin(mutex.acquire());
    assert!(poll!(&mut next).is_pending(), "it waits");
    within("the create", create.hit()).await.unwrap();
    let mine = newest(&server_fixture, &[&front]);
    assert!(server_fixture.server.delete_node(&mine));
    drop(held);
    server_fixture.line_becomes(0).await.unwrap();
    create.release();
    let guard = within("a turn in a new place", next).await.unwrap().unwrap();
    assert!(guard.path() != mine, "granted without a node");
    assert!(guard.is_valid());
    guard.release().await.unwrap();
    server_fixture.line_becomes(0).await.unwrap();
}

#[tokio::test]
async fn a_hand_off_whose_check_was_not_answered_grants_only_by_a_list() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let actor = patient(&server_fixture).await;
    let mutex = Mutex::new(&actor, LOCK).unwrap();
    let held = mutex.acquire().await.unwrap();
    let front = held.path().to_owned();
    let mut next = mutex.enqueue().await.unwrap();
    let mine = newest(&server_fixture, &[&front]);
    let mut next = Box::pin(next.wait());
    assert!(poll!(&mut next).is_pending(), "it waits");
    // The hand-off is sent, and its link breaks before the next contender runs.
    drop(held);
    let away = cut_off(&server_fixture, &actor).await;
    assert!(server_fixture.server.delete_node(&mine));
    server_fixture.server.delete_node(&front);
    assert!(poll!(&mut next).is_pending(), "granted without a node");
    drop(away);
    let guard = within("a turn with a new node", next).await.unwrap().unwrap();
    assert!(guard.path() != mine && guard.is_valid());
    guard.release().await.unwrap();
    server_fixture.line_becomes(0).await.unwrap();
}
