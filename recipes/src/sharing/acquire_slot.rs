use std::sync::{Arc, Weak};

use lockkeeper_core::{DetachedNode, Error, Hold};
use tokio::sync::oneshot;

use super::node_sharing::NodeSharing;
use super::tenure::NodeTenure;

/// The right to hold, or to wait in the server's queue for all tasks of this process. Its drop gives the slot
/// to the next task.
pub(super) struct AcquireSlot {
    sharing: Weak<NodeSharing>,
    pub(super) number: u64,
    /// The node that comes with the slot.
    pub(super) node: Option<SharedNode>,
}

/// A node without a guard, and its tenure in this process.
pub(super) struct SharedNode {
    pub(super) node: NodeBetween,
    pub(super) tenure: NodeTenure,
}

/// A node between two guards.
pub(super) enum NodeBetween {
    /// It was granted, and had no guard yet.
    Granted(Box<Hold>),
    Detached(DetachedNode),
}

/// Wakes a task that waits for a slot: with the slot, or with the failure of the contender that waited in the
/// server's queue for it.
pub(super) type WakeTask = oneshot::Sender<Result<AcquireSlot, Error>>;

impl AcquireSlot {
    pub(super) fn new(sharing: &Arc<NodeSharing>, number: u64, node: Option<SharedNode>) -> Self {
        Self { sharing: Arc::downgrade(sharing), number, node }
    }

    /// `None` once the last clone of the lock is gone.
    pub(super) fn sharing(&self) -> Option<Arc<NodeSharing>> {
        self.sharing.upgrade()
    }
}

impl Drop for AcquireSlot {
    fn drop(&mut self) {
        if let Some(sharing) = self.sharing() {
            sharing.end_slot(self.number, self.node.take());
        }
    }
}

impl SharedNode {
    /// Holds the node again, if it still exists.
    pub(super) fn attach(self) -> Option<(Hold, NodeTenure)> {
        let hold = match self.node {
            NodeBetween::Granted(hold) => hold.is_valid().then_some(*hold)?,
            NodeBetween::Detached(node) => node.attach().ok()?,
        };
        Some((hold, self.tenure))
    }
}
