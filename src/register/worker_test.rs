//! The end of a task beside the beginning of the next one.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use lockkeeper_testserver::machine::Machine;
use lockkeeper_testserver::{ArmedFault, Fault, Op, TestServer, When};
use tokio::task::JoinHandle;

use super::worker::Worker;
use super::{Change, Current, Register};
use crate::ConnectionManager;
use crate::error::Error;
use crate::znode::zxid::Zxid;

#[tokio::test]
async fn a_task_that_ends_takes_no_change_from_the_next_one() {
    let server = TestServer::start().await.unwrap();
    let manager = ConnectionManager::connect(&server.connect_string()).await.unwrap();
    let register = Register::new(&manager, "/register").unwrap();
    let memory = register.inner.state.lock().memory.take().unwrap();
    let mut ending = Worker::new(&register.inner, memory);
    assert!(ending.next_batch().is_none(), "it gives the memory back");
    let mut next = Box::pin(register.update(|_| (Change::Write(b"1".to_vec()), ())));
    assert!(futures::poll!(next.as_mut()).is_pending(), "another task has the memory");
    drop(ending);
    next.await.unwrap();
}

#[tokio::test]
async fn a_change_that_waits_for_its_turn_until_its_deadline_is_never_applied() {
    let server = TestServer::start().await.unwrap();
    let manager = ConnectionManager::connect(&server.connect_string()).await.unwrap();
    let manager = manager.with_operation_timeout(Duration::from_millis(100)).unwrap();
    let register = Register::new(&manager, "/register").unwrap();
    // As if another task had the memory, and were at work.
    let _memory = register.inner.state.lock().memory.take().unwrap();
    let change = register.update(|_| (Change::Write(b"1".to_vec()), ()));
    let ended = tokio::time::timeout(Duration::from_secs(30), change).await.unwrap();
    assert!(ended.unwrap_err().is_timeout());
    assert!(register.inner.state.lock().queue.take(true).is_none());
}

#[tokio::test]
async fn a_read_is_decided_once_from_the_node_as_it_was_read() {
    let server = TestServer::start().await.unwrap();
    let manager = ConnectionManager::connect(&server.connect_string()).await.unwrap();
    let register = Register::new(&manager, "/register").unwrap();
    for _ in 0..3 {
        // The register knows what it has written.
        register.update(|_| (Change::Write(b"1".to_vec()), ())).await.unwrap();
    }
    let mut decisions = 0;
    let (decided, _) = register
        .read(move |_| {
            decisions += 1;
            decisions
        })
        .await
        .unwrap();
    assert_eq!(decided, 1);
}

#[tokio::test]
async fn a_change_that_panics_panics_in_its_own_call_and_in_no_other() {
    let server = TestServer::start().await.unwrap();
    let manager = ConnectionManager::connect(&server.connect_string()).await.unwrap();
    let register = Register::new(&manager, "/register").unwrap().combining();
    let append = |letter: &'static [u8]| {
        let letters = move |current: Current<'_>| {
            assert_ne!(letter, b"!", "a change that panics");
            (Change::Write([current.data().unwrap_or_default(), letter].concat()), ())
        };
        register.update(letters)
    };
    // Nothing else runs in this thread: the three are in one batch.
    let panicking = AssertUnwindSafe(append(b"!")).catch_unwind();
    let (first, panic, last) = tokio::join!(append(b"a"), panicking, append(b"b"));
    assert!(first.is_ok() && panic.is_err() && last.is_ok());
    let (data, _) = register.read(|current| current.data().map(<[u8]>::to_vec)).await.unwrap();
    assert_eq!(data.as_deref(), Some(&b"ab"[..]));
}

#[tokio::test]
async fn a_decision_that_panics_while_a_create_is_in_doubt_ends_its_call_alone() {
    for fault in [Fault::DropConnectionBefore, Fault::DropConnectionAfter] {
        let server = TestServer::start().await.unwrap();
        let register = register(&server).await;
        let fences = When::op(Op::SetData).path("/register-creation-*").always();
        let fences = server.fault(fences, Fault::DelayReply(Duration::ZERO));
        let lost = Arc::new(server.fault(attempts(), fault));
        assert!(ends_by_panic(panics_behind(&register, &lost)).await, "{fault:?}");
        assert_eq!((lost.hits(), fences.hits()), (1, 1), "{fault:?}");
        write(&register).await;
    }
}

/// Nothing is written for the call: also not by an attempt that still waits in a server.
#[tokio::test]
async fn a_decision_that_panics_while_a_write_is_in_doubt_ends_its_call_and_its_attempts() {
    let server = TestServer::start().await.unwrap();
    let register = register(&server).await;
    // The first one creates the node, and the second one the writer node.
    write(&register).await;
    write(&register).await;
    let late = Arc::new(server.fault(attempts(), Fault::HoldRequest));
    let call = panics_behind(&register, &late);
    within(late.hit()).await;
    server.drop_connections();
    assert!(ends_by_panic(call).await);
    let is_alone = |machine: &Machine| machine.tree().node(PATH).unwrap().children.is_empty();
    within(server.wait_until(is_alone)).await;
    late.release();
    within(server.wait_until(|machine| machine.late_writes() > 0)).await;
    let data = server.inspect(|machine| machine.tree().node(PATH).unwrap().data.clone());
    assert_eq!(data.as_deref(), Some(&b"1"[..]));
}

#[tokio::test]
async fn a_decision_that_panics_in_the_session_after_that_of_an_attempt_ends_its_call_alone() {
    let server = TestServer::start().await.unwrap();
    let register = register(&server).await;
    write(&register).await;
    write(&register).await;
    let held = Arc::new(server.fault(attempts(), Fault::HoldRequest));
    let call = panics_behind(&register, &held);
    within(held.hit()).await;
    assert!(server.expire(server.sessions()[0]));
    assert!(ends_by_panic(call).await);
    write(&register).await;
}

#[tokio::test]
async fn a_transaction_that_a_read_has_shown_counts_as_seen() {
    let server = TestServer::start().await.unwrap();
    let (writer, reader) = (register(&server).await, register(&server).await);
    write(&writer).await;
    let ((), shown) = reader.read(|_| ()).await.unwrap();
    let session = reader.manager().present_session().unwrap();
    let zxids = &session.settings().zxids;
    // As if servers that have lost their data gave its number to a write.
    assert!(zxids.wrote(zxids.before_write(), shown).is_some());
}

const PATH: &str = "/register";

async fn register(server: &TestServer) -> Register {
    let manager = ConnectionManager::connect(&server.connect_string()).await.unwrap();
    Register::new(&manager, PATH).unwrap()
}

async fn write(register: &Register) {
    register.update(|_| (Change::Write(b"1".to_vec()), ())).await.unwrap();
}

fn attempts() -> When {
    When::op(Op::Multi).path(PATH)
}

async fn within<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(30), work).await.unwrap()
}

/// A change whose decision panics once the fault has hit.
fn panics_behind(register: &Register, fault: &Arc<ArmedFault>) -> JoinHandle<Result<((), Zxid), Error>> {
    let (register, fault) = (register.clone(), Arc::clone(fault));
    let decide = move |_: Current<'_>| {
        assert_eq!(fault.hits(), 0, "a decision that panics");
        (Change::Write(b"lost".to_vec()), ())
    };
    tokio::spawn(async move { register.update(decide).await })
}

async fn ends_by_panic<T>(call: JoinHandle<T>) -> bool {
    within(call).await.is_err_and(|error| error.is_panic())
}
