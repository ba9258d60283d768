//! An unused local queue is removed, with its watch.

use std::pin::pin;

use futures::future::select;
use lockkeeper_testserver::{Fault, Op, TestServer, When};

use super::LocalQueues;
use crate::manager::ConnectionManager;
use crate::queue::{LockQueue, Rule};
use crate::session::SessionTable;
use crate::time::deadline::Deadline;
use crate::znode::name::Label;

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
