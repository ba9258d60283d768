//! The operation timeout limits calls that do not wait in the queue, and no single request of a call that
//! waits.

use std::time::Duration;

use lockkeeper_testserver::{Fault, Op, TestServer, When};

use super::{LockQueue, Rule};
use crate::manager::ConnectionManager;
use crate::time::deadline::Deadline;
use crate::znode::name::Label;

#[tokio::test]
async fn a_short_operation_timeout_ends_a_try_and_repeats_no_request_of_a_wait() {
    let server = TestServer::start().await.unwrap();
    let patient = ConnectionManager::builder(&server.connect_string()).connect().await.unwrap();
    let manager = patient.with_operation_timeout(Duration::from_millis(100)).unwrap();
    let queue = |manager, path: &str| LockQueue::new(manager, path, Label::LOCK, Rule::MUTEX).unwrap();
    // Makes the directories.
    for path in ["/waited", "/tried"] {
        queue(&patient, path).acquire(Deadline::never()).await.unwrap().release().await.unwrap();
    }
    let (waited, tried) = (queue(&manager, "/waited"), queue(&manager, "/tried"));
    let late = Fault::DelayReply(Duration::from_millis(1_000));
    let _slow = server.fault(When::create().always(), late);
    // A lookup of a create without an answer begins with a sync.
    let lookup = server.fault(When::op(Op::Sync).always(), Fault::DelayReply(Duration::ZERO));

    drop(waited.acquire(Deadline::never()).await.unwrap());
    assert_eq!(lookup.hits(), 0, "the node of a slow create was searched for");
    let limit = Deadline::after(manager.operation_timeout());
    assert!(tried.try_acquire(limit).await.unwrap_err().is_timeout());
}
