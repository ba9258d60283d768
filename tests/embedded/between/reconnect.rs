//! Faults between two connections of one session: what the client learned over the first connection does not
//! hold on the second.

use std::sync::mpsc;
use std::time::Duration;

use lockkeeper::error::LossReason;
use lockkeeper::{Mutex, MutexGuard};
use lockkeeper_testserver::{ArmedFault, ErrorCode, Fault, Op, When};
use tokio::runtime::{Builder, Runtime};

use super::block_the_clients;
use super::own::used_again_and_again;
use crate::limit::within;
use crate::server_fixture::{LOCK, ServerFixture, builder};

/// How often the test tries to queue a create just when the link breaks. The client decides by chance
/// whether it still writes the create to the broken link.
const TRIES: usize = 40;

/// The server refuses to set the client's watches again, and the client does not report that.
fn refuse_watches(server_fixture: &ServerFixture, session: i64) -> ArmedFault {
    let again = When::ops([Op::SetWatches, Op::SetWatches2]).session(session).always();
    server_fixture.server.fault(again, Fault::Refuse(ErrorCode::Unimplemented))
}

fn number(guard: &MutexGuard) -> i32 {
    guard.path()[guard.path().len() - 10..].parse().unwrap()
}

/// Acquires and releases the mutex once, and returns the sequence number of that node.
async fn last_number(mutex: &Mutex) -> i32 {
    let guard = mutex.acquire().await.unwrap();
    let number = number(&guard);
    guard.release().await.unwrap();
    number
}

#[tokio::test]
async fn a_directory_watch_of_an_earlier_connection_does_not_show_that_the_directory_is_the_same() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let foreign = builder(&server_fixture.server.connect_string()).session_timeout(Duration::from_secs(30));
    let foreign = Mutex::new(&foreign.connect().await.unwrap(), LOCK).unwrap();
    let mutex = Mutex::new(&server_fixture.rival, LOCK).unwrap();
    used_again_and_again(&server_fixture, &mutex).await;
    let session = server_fixture.server.sessions()[0];
    let refused = refuse_watches(&server_fixture, session);
    server_fixture.server.drop_connections();
    within("the refusal of its watches", refused.hit()).await.unwrap();
    server_fixture.round_trip_of_rival().await.unwrap();
    used_again_and_again(&server_fixture, &mutex).await;
    let last = last_number(&mutex).await;

    assert!(server_fixture.server.delete_node(LOCK));
    last_number(&foreign).await;
    assert!(server_fixture.server.set_sequence(LOCK, last));
    let held = foreign.acquire().await.unwrap();
    assert_eq!(number(&held), last);
    assert!(mutex.try_acquire().await.unwrap().is_none(), "two holders");
    held.release().await.unwrap();
}

/// A runtime whose clients run while the thread of the test, and with it the other clients, is blocked.
struct Apart(Option<Runtime>);

impl Apart {
    fn new() -> Self {
        Self(Some(Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()))
    }

    /// Runs `work` while this thread is blocked.
    fn meanwhile<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> T {
        let (done, doing) = mpsc::channel();
        self.0.as_ref().unwrap().spawn(async move { done.send(work.await).unwrap() });
        doing.recv().unwrap()
    }
}

impl Drop for Apart {
    fn drop(&mut self) {
        self.0.take().unwrap().shutdown_background();
    }
}

#[tokio::test]
async fn a_create_carried_over_a_reconnect_is_judged_by_a_list() {
    for _ in 0..TRIES {
        if is_carried_over().await {
            return;
        }
    }
    panic!("no create was ever carried over to the next connection");
}

/// The client queues a create before it notices that its link is broken, and sends the create over the next
/// link. False when it wrote the create to the broken link.
async fn is_carried_over() -> bool {
    let (server_fixture, apart) = (ServerFixture::start().await.unwrap(), Apart::new());
    let foreign = builder(&server_fixture.server.connect_string()).session_timeout(Duration::from_secs(30));
    let foreign =
        apart.meanwhile(async move { Mutex::new(&foreign.connect().await.unwrap(), LOCK).unwrap() });
    let mutex = Mutex::new(&server_fixture.rival, LOCK).unwrap();
    used_again_and_again(&server_fixture, &mutex).await;
    let last = last_number(&mutex).await;
    let session = server_fixture.server.sessions()[0];
    let _refused = refuse_watches(&server_fixture, session);
    let syncs =
        server_fixture.server.fault(When::op(Op::Sync).session(session), Fault::DelayRequest(Duration::ZERO));
    // The client does not notice the break before this thread continues.
    server_fixture.server.drop_connections();
    block_the_clients();

    assert!(server_fixture.server.delete_node(LOCK));
    let (first, second) = (foreign.clone(), foreign);
    apart.meanwhile(async move { last_number(&first).await });
    assert!(server_fixture.server.set_sequence(LOCK, last));
    let held = apart.meanwhile(async move { second.acquire().await.unwrap() });
    assert_eq!(number(&held), last);
    let tried = within("an answer", mutex.try_acquire()).await.unwrap().unwrap();
    assert!(tried.is_none(), "two holders");
    syncs.hits() == 0
}

#[tokio::test]
async fn a_list_of_the_own_nodes_without_an_answer_ends_no_session() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let actor = server_fixture.actor().await.unwrap();
    let held = Mutex::new(&actor, LOCK).unwrap().acquire().await.unwrap();
    let session = server_fixture.sessions_of_actor()[0];
    let list = When::op(Op::GetEphemerals).session(session);
    let lost = server_fixture.server.fault(list.clone(), Fault::DropConnectionBefore);
    let again = server_fixture.server.fault(list.nth(2), Fault::DelayReply(Duration::ZERO));
    server_fixture.server.drop_connections();
    within("the list", lost.hit()).await.unwrap();
    within("another list in the same session", again.hit()).await.unwrap();
    actor.znodes().read("/").await.unwrap();
    assert!(held.is_valid());
    held.release().await.unwrap();
}

#[tokio::test]
async fn a_reconnect_ends_the_session_on_servers_that_cannot_list_its_nodes() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let actor = server_fixture.actor().await.unwrap();
    let held = Mutex::new(&actor, LOCK).unwrap().acquire().await.unwrap();
    let list = When::op(Op::GetEphemerals).session(server_fixture.sessions_of_actor()[0]).always();
    let _unknown = server_fixture.server.fault(list, Fault::Refuse(ErrorCode::Unimplemented));
    server_fixture.server.drop_connections();
    let lost = within("the end of the session", held.lost()).await.unwrap();
    assert_eq!(lost.reason, LossReason::SessionReplaced);
}
