//! The watch on a node of a session.

use std::future::{pending, poll_fn, ready};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::task::Poll;
use std::time::Duration;

use futures::FutureExt;
use lockkeeper_testserver::TestServer;

use super::watches::WatchBudget;
use super::{NodeWatch, Origin, OwnedNode};
use crate::manager::ConnectionManager;
use crate::time::deadline::Deadline;
use crate::wire::WatchEvent;

/// A watch with this event.
fn watch(event: impl Future<Output = WatchEvent> + Send + 'static) -> NodeWatch {
    NodeWatch::new(event.boxed(), WatchBudget::default().reserve("/node").unwrap())
}

#[tokio::test]
async fn a_watch_that_has_fired_with_its_event_unread_is_no_watch() {
    let server = TestServer::start().await.unwrap();
    let manager = ConnectionManager::connect(&server.connect_string()).await.unwrap();
    let session = manager.session(Deadline::never(), "/node").await.unwrap();
    let node = session.register("/node".into(), Arc::default(), Origin::FOUND);

    node.set_watch(watch(pending()));
    assert!(node.has_watch());
    node.set_watch(watch(ready(WatchEvent::Changed)));
    assert!(!node.has_watch(), "the next deletion of the node would not be noticed");
    session.unregister(&node);
}

#[tokio::test]
async fn a_deletion_that_a_question_has_seen_is_a_loss_whatever_becomes_of_the_watch() {
    let server = TestServer::start().await.unwrap();
    let manager = ConnectionManager::connect(&server.connect_string()).await.unwrap();
    let session = manager.session(Deadline::never(), "/node").await.unwrap();
    let changes: [&dyn Fn(&OwnedNode); 4] = [
        &|node| node.set_watch(watch(pending())),
        &OwnedNode::forget_watch,
        &OwnedNode::begin_replacing,
        &|node| assert!(node.settle().is_err()),
    ];
    for change in changes {
        let node = session.register("/node".into(), Arc::default(), Origin::FOUND);
        node.set_watch(watch(ready(WatchEvent::Deleted)));
        assert!(node.verdict().is_err() && node.recorded().is_ok());
        change(&node);
        assert!(node.verdict().is_err() && node.recorded().is_err());
    }
}

/// The time in which the waiter can poll while the question polls. With a lock it cannot, and the question
/// continues.
const WHILE_ASKED: Duration = Duration::from_millis(100);

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_deletion_that_arrives_while_another_task_reads_the_watch_wakes_the_waiter() {
    let server = TestServer::start().await.unwrap();
    let manager = ConnectionManager::connect(&server.connect_string()).await.unwrap();
    let session = manager.session(Deadline::never(), "/node").await.unwrap();
    let node = session.register("/node".into(), Arc::default(), Origin::FOUND);

    let (polled, waiter_polled) = channel();
    let waiter_polled = Arc::new(parking_lot::Mutex::new(waiter_polled));
    let next_poll = Arc::clone(&waiter_polled);
    let is_question = Arc::new(AtomicBool::new(false));
    let (asked, mut has_fired) = (Arc::clone(&is_question), false);
    // The event arrives when the poll of the question has looked for it, before that poll returns.
    let event = poll_fn(move |context| {
        if has_fired {
            return Poll::Ready(WatchEvent::Deleted);
        }
        if asked.swap(false, Ordering::AcqRel) {
            has_fired = true;
            context.waker().wake_by_ref();
            let _ = next_poll.lock().recv_timeout(WHILE_ASKED);
        }
        Poll::Pending
    });
    node.set_watch(watch(event));

    let waiting = Arc::clone(&node);
    let waiter = tokio::spawn(async move {
        let mut lost = pin!(waiting.lost());
        poll_fn(|context| {
            let lost = lost.as_mut().poll(context);
            let _ = polled.send(());
            lost
        })
        .await
    });
    tokio::task::block_in_place(|| waiter_polled.lock().recv()).unwrap();
    is_question.store(true, Ordering::Release);
    assert_eq!(node.verdict(), Ok(()), "the question was before the event");
    let lost = tokio::time::timeout(Duration::from_secs(10), waiter).await;
    lost.expect("a lost wake-up").unwrap();
}
