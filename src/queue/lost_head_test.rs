//! The release of a head while another thread records the loss of its node.

use futures::{FutureExt, poll};

use super::queued_node::QueuedNode;
use super::test_fixture::held_lock;
use crate::error::LossReason;
use crate::local::LocalWake;
use crate::time::deadline::Deadline;

#[tokio::test]
async fn a_head_whose_loss_is_recorded_during_its_release_hands_nothing_off() {
    let (_server, queue, held) = held_lock().await;
    let mut ticket = queue.enqueue(Deadline::never()).await.unwrap();
    assert_eq!(ticket.refresh(Deadline::never()).await.unwrap(), 1);
    let mut waiting = Box::pin(ticket.wait(Deadline::never()));
    assert!(poll!(&mut waiting).is_pending(), "the lock is held");
    drop(waiting);

    held.node().set_given_up();
    held.node().record_loss(LossReason::LeaseRanOut);
    let head = held.first.node_guard.entry().unwrap();
    head.release(|next| assert!(next.is_empty(), "a lost head hands off"));
    let waiter = ticket.queued_node().and_then(QueuedNode::entry).unwrap();
    assert_eq!(waiter.local_wake().now_or_never(), Some(Ok(LocalWake::Relist)));
}
