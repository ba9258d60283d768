//! Faults between the release of a holder and the hand-off to the next contender of its process, whose node
//! is deleted by hand.

use std::future::Future;
use std::time::Duration;

use futures::poll;
use lockkeeper::{ConnectionManager, Error, Mutex, MutexGuard, RwLock};
use lockkeeper_testserver::{Fault, Op, When};

use super::cut_off;
use crate::limit::within;
use crate::server_fixture::{LOCK, ServerFixture, builder, queue_nodes};

/// A server, and a client whose session outlasts a break of its link.
struct HandOff {
    server_fixture: ServerFixture,
    actor: ConnectionManager,
}

impl HandOff {
    async fn start() -> Self {
        let server_fixture = ServerFixture::start().await.unwrap();
        let actor = builder(&server_fixture.server.connect_string()).session_timeout(Duration::from_secs(30));
        let actor = actor.connect().await.unwrap();
        Self { server_fixture, actor }
    }

    fn mutex(&self) -> Mutex {
        Mutex::new(&self.actor, LOCK).unwrap()
    }

    /// The only node in the directory besides that of the holder.
    fn waiter_behind(&self, holder: &str) -> String {
        let mut nodes = self.server_fixture.server.inspect(queue_nodes);
        nodes.retain(|path| path != holder);
        assert_eq!(nodes.len(), 1, "{nodes:?}");
        nodes.remove(0)
    }

    fn delete_both(&self, waiter: &str, holder: &str) {
        assert!(self.server_fixture.server.delete_node(waiter));
        // The delete of the holder's release may have been applied.
        self.server_fixture.server.delete_node(holder);
    }

    /// The waiter whose node was deleted is granted the lock with another node.
    async fn assert_granted_with_a_new_node(
        &self,
        waiting: impl Future<Output = Result<MutexGuard, Error>>,
        deleted: &str,
    ) {
        let guard = within("a grant with a new node", waiting).await.unwrap().unwrap();
        assert!(guard.path() != deleted, "granted without a node");
        assert!(guard.is_valid());
        guard.release().await.unwrap();
        self.server_fixture.queue_length_becomes(0).await.unwrap();
    }
}

#[tokio::test]
async fn without_a_connection_no_lock_is_handed_off_within_the_process() {
    let fixture = HandOff::start().await;
    let mutex = fixture.mutex();
    let held = mutex.acquire().await.unwrap();
    let holder = held.path().to_owned();
    let mut ticket = mutex.enqueue().await.unwrap();
    let waiter = fixture.waiter_behind(&holder);
    let mut waiting = Box::pin(ticket.wait());
    assert!(poll!(&mut waiting).is_pending(), "the lock is held");
    let away = cut_off(&fixture.server_fixture, &fixture.actor).await;
    fixture.delete_both(&waiter, &holder);
    drop(held);
    assert!(poll!(&mut waiting).is_pending(), "granted without a node");
    drop(away);
    fixture.assert_granted_with_a_new_node(waiting, &waiter).await;
}

#[tokio::test]
async fn without_a_connection_a_writer_hands_off_to_no_reader() {
    let fixture = HandOff::start().await;
    let lock = RwLock::new(&fixture.actor, LOCK).unwrap();
    let writing = lock.write().await.unwrap();
    let holder = writing.path().to_owned();
    let mut reading = Box::pin(lock.read());
    while fixture.server_fixture.server.inspect(queue_nodes).len() < 2 {
        assert!(poll!(&mut reading).is_pending(), "the writer holds the lock");
        tokio::task::yield_now().await;
    }
    // The answer to the reader's create arrives before the answer to this read.
    fixture.actor.znodes().read("/zookeeper").await.unwrap();
    assert!(poll!(&mut reading).is_pending(), "the writer holds the lock");
    let waiter = fixture.waiter_behind(&holder);
    let away = cut_off(&fixture.server_fixture, &fixture.actor).await;
    fixture.delete_both(&waiter, &holder);
    drop(writing);
    assert!(poll!(&mut reading).is_pending(), "granted without a node");
    drop(away);
    let guard = within("a grant with a new node", reading).await.unwrap().unwrap();
    assert!(*guard.path() != waiter && guard.is_valid());
    guard.release().await.unwrap();
    fixture.server_fixture.queue_length_becomes(0).await.unwrap();
}

#[tokio::test]
async fn a_sequence_number_behind_a_holder_that_releases_meanwhile_grants_only_by_a_list() {
    let fixture = HandOff::start().await;
    let mutex = fixture.mutex();
    // After so many acquires the client grants by sequence numbers.
    for _ in 0..8 {
        mutex.acquire().await.unwrap().release().await.unwrap();
    }
    let held = mutex.acquire().await.unwrap();
    let holder = held.path().to_owned();
    let session = fixture.server_fixture.sessions_of_actor()[0];
    let when = When::op(Op::Create2).path("/locks/lock/*").session(session);
    let create = fixture.server_fixture.server.fault(when, Fault::HoldReply);
    let mut waiting = Box::pin(mutex.acquire());
    assert!(poll!(&mut waiting).is_pending(), "the lock is held");
    within("the create", create.hit()).await.unwrap();
    let waiter = fixture.waiter_behind(&holder);
    assert!(fixture.server_fixture.server.delete_node(&waiter));
    drop(held);
    fixture.server_fixture.queue_length_becomes(0).await.unwrap();
    create.release();
    fixture.assert_granted_with_a_new_node(waiting, &waiter).await;
}

#[tokio::test]
async fn a_hand_off_whose_check_was_not_answered_grants_only_by_a_list() {
    let fixture = HandOff::start().await;
    let mutex = fixture.mutex();
    let held = mutex.acquire().await.unwrap();
    let holder = held.path().to_owned();
    let mut ticket = mutex.enqueue().await.unwrap();
    let waiter = fixture.waiter_behind(&holder);
    let mut waiting = Box::pin(ticket.wait());
    assert!(poll!(&mut waiting).is_pending(), "the lock is held");
    // The hand-off is sent, and its link breaks before the waiter is polled.
    drop(held);
    let away = cut_off(&fixture.server_fixture, &fixture.actor).await;
    fixture.delete_both(&waiter, &holder);
    assert!(poll!(&mut waiting).is_pending(), "granted without a node");
    drop(away);
    fixture.assert_granted_with_a_new_node(waiting, &waiter).await;
}
