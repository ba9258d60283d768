//! An unused local queue is removed, with its watch.

use std::pin::pin;
use std::sync::Arc;

use futures::future::select;
use lockkeeper_testserver::{Fault, Op, TestServer, When};

use super::decide::ContenderKind;
use super::{LocalQueues, QueueEntry};
use crate::error::LossReason;
use crate::manager::ConnectionManager;
use crate::queue::{LockQueue, Rule};
use crate::session::{Origin, SessionTable};
use crate::time::deadline::Deadline;
use crate::znode::name::{Kind, Label};

#[tokio::test]
async fn a_queue_is_forgotten_only_when_its_request_for_a_watch_is_answered() {
    let server = TestServer::start().await.unwrap();
    let manager = ConnectionManager::connect(&server.connect_string()).await.unwrap();
    let queue = LockQueue::new(&manager, "/lock", Label::LOCK, Rule::MUTEX).unwrap();
    let requested = server.fault(When::op(Op::GetData).path("/lock"), Fault::HoldReply);
    // Repeats until a watch on the directory pays off.
    let used = async {
        loop {
            queue.acquire(Deadline::never()).await.unwrap().release().await.unwrap();
        }
    };
    select(pin!(used), pin!(requested.hit())).await;
    let session = manager.session(Deadline::never(), "/lock").await.unwrap();
    let queues = LocalQueues::of(&session);
    queues.forget_idle(session.now());
    assert!(!queues.is_empty(), "forgotten, and its watch stays on the server");

    requested.release();
    // The replies arrive in order.
    manager.znodes().read("/zookeeper").await.unwrap();
    queues.forget_idle(session.now());
    assert!(queues.is_empty());
    let unwatched = server.wait_until(|machine| machine.watch_count(0) == 0);
    unwatched.await;
}

#[tokio::test]
async fn a_queue_is_forgotten_only_without_a_node() {
    let server = TestServer::start().await.unwrap();
    let manager = ConnectionManager::connect(&server.connect_string()).await.unwrap();
    let session = manager.session(Deadline::never(), "/lock").await.unwrap();
    let node = session.register("/lock/a".into(), Arc::default(), Origin::FOUND);
    // As an exchange without an outcome leaves it: no contender waits for it any more.
    drop(QueueEntry::register(&node, "/lock", 7, ContenderKind::Lock(Kind::LOCK)));
    let queues = LocalQueues::of(&session);
    queues.forget_idle(session.now());
    assert!(!queues.is_empty(), "the next contender would not know of the node");

    node.lose(LossReason::NodeDeleted);
    queues.forget_idle(session.now());
    assert!(queues.is_empty());
}
