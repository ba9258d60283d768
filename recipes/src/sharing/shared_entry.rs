//! The contender that waits in the server's queue for all tasks of this process.

use std::sync::{Arc, Weak};

use futures::future::BoxFuture;
use lockkeeper_core::{ConnectionManager, Error, Hold, NodeMonitor};
use tokio::sync::Notify;

use super::acquire_slot::{NodeBetween, SharedNode};
use super::contention_watcher::start_watcher;
use super::node_sharing::{CommonWatch, NodeSharing};

/// How a recipe enters the server's queue for all waiting tasks of this process, and watches it for all of
/// its nodes.
pub(crate) trait SharedEntry: Send + Sync {
    fn manager(&self) -> &ConnectionManager;

    /// Waits in the queue until one node is granted, and reports it to the slot.
    fn enter(&self, slot: EntrySlot) -> BoxFuture<'static, ()>;

    /// Watches for other contenders until the session of the monitored node ends.
    fn watch(&self, watch: CommonWatch, monitor: NodeMonitor) -> BoxFuture<'static, ()>;
}

/// The slot of the contender in the server's queue. Without a result its drop fails all waiting tasks: its
/// runtime has ended.
pub(crate) struct EntrySlot {
    sharing: Weak<NodeSharing>,
    number: u64,
    is_needless: Arc<Notify>,
}

impl EntrySlot {
    pub(super) fn new(sharing: &Arc<NodeSharing>, number: u64, is_needless: &Arc<Notify>) -> Self {
        Self { sharing: Arc::downgrade(sharing), number, is_needless: Arc::clone(is_needless) }
    }

    /// Resolves once no task waits any more. The slot is retired then.
    pub(crate) async fn needless(&self) {
        while self.sharing.upgrade().is_some_and(|sharing| !sharing.retire_entry(self.number)) {
            self.is_needless.notified().await;
        }
    }

    /// Gives the node to the task that has waited longest.
    pub(crate) fn grant(self, hold: Hold) {
        if let Some(sharing) = self.sharing.upgrade() {
            let tenure = start_watcher(&sharing, self.number, &hold);
            let node = NodeBetween::Granted(Box::new(hold));
            sharing.end_slot(self.number, Some(SharedNode { node, tenure }));
        }
    }

    /// Fails the task that has waited longest. Another contender enters the queue for the others.
    pub(crate) fn fail(self, error: Error) {
        if let Some(sharing) = self.sharing.upgrade() {
            sharing.fail_entry(self.number, error);
        }
    }
}

impl Drop for EntrySlot {
    fn drop(&mut self) {
        if let Some(sharing) = self.sharing.upgrade() {
            sharing.abort_entry(self.number);
        }
    }
}
