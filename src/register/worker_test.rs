//! The end of a task beside the beginning of the next one.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use lockkeeper_testserver::{Fault, Op, TestServer, When};

use super::worker::Worker;
use super::{Change, Register};
use crate::ConnectionManager;

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
        let letters = move |current: super::Current<'_>| {
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
    let server = TestServer::start().await.unwrap();
    let manager = ConnectionManager::connect(&server.connect_string()).await.unwrap();
    let register = Register::new(&manager, "/register").unwrap();
    let lost = Arc::new(server.fault(When::op(Op::Multi), Fault::DropConnectionBefore));
    let in_doubt = Arc::clone(&lost);
    let change = register.update(move |_| {
        assert_eq!(in_doubt.hits(), 0, "a decision that panics");
        (Change::Write(b"1".to_vec()), ())
    });
    let ended = tokio::time::timeout(Duration::from_secs(30), AssertUnwindSafe(change).catch_unwind());
    let ended = ended.await.unwrap().is_err();
    assert_eq!((ended, lost.hits()), (true, 1));
    register.update(|_| (Change::Write(b"2".to_vec()), ())).await.unwrap();
}
