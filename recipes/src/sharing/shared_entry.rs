//! The one contender that waits in the server's queue for all tasks of this process, and the watch of that
//! queue that is common to all of its nodes.

use std::sync::{Arc, Weak};

use futures::future::BoxFuture;
use lockkeeper_core::{ConnectionManager, Error, Hold, NodeMonitor};
use tokio::sync::Notify;

/// How a recipe enters the server's queue for all waiting tasks of this process, and watches it for all of
/// its nodes.
pub(crate) trait SharedEntry: Send + Sync {
    fn manager(&self) -> &ConnectionManager;

    /// Waits in the queue until one node is granted, and reports it to the slot.
    fn enter(&self, slot: EntrySlot) -> BoxFuture<'static, ()>;

    /// Watches for other contenders until the session of the monitored node ends.
    fn watch(&self, watch: CommonWatch, monitor: NodeMonitor) -> BoxFuture<'static, ()>;
}

/// What the contender and the common watch report.
pub(super) trait EntryReports: Send + Sync {
    /// Whether no task waits any more: then the contender with this slot is retired.
    fn retire(&self, slot: u64) -> bool;
    /// The contender with this slot has been granted a node.
    fn grant(self: Arc<Self>, slot: u64, hold: Hold);
    /// The contender with this slot has failed.
    fn fail(self: Arc<Self>, slot: u64, error: Error);
    /// The contender with this slot has ended with its runtime.
    fn abort(&self, slot: u64);
    /// A list showed no other contender (`true`), or that is no longer known (`false`).
    fn set_all_alone(&self, watch: u64, is_alone: bool);
    /// Another contender waits.
    fn mark_all_contended(self: Arc<Self>, watch: u64);
    /// More nodes are in use than there may be.
    fn mark_exceeded(self: Arc<Self>, watch: u64);
    /// The contenders are not watched any more.
    fn mark_all_blind(self: Arc<Self>, watch: u64);
}

/// The slot of the contender in the server's queue. Without a result its drop fails all waiting tasks: its
/// runtime has ended.
pub(crate) struct EntrySlot {
    pub(super) reports: Weak<dyn EntryReports>,
    pub(super) number: u64,
    pub(super) is_needless: Arc<Notify>,
}

/// The watch of the server's queue that is common to all nodes. Its drop, also that by the end of its
/// runtime, ends the idle nodes, which no task watches any more.
pub(crate) struct CommonWatch {
    pub(super) reports: Weak<dyn EntryReports>,
    pub(super) number: u64,
}

impl EntrySlot {
    /// Resolves once no task waits any more. The slot is retired then.
    pub(crate) async fn needless(&self) {
        while self.reports.upgrade().is_some_and(|reports| !reports.retire(self.number)) {
            self.is_needless.notified().await;
        }
    }

    /// Gives the node to the task that has waited longest.
    pub(crate) fn grant(self, hold: Hold) {
        if let Some(reports) = self.reports.upgrade() {
            reports.grant(self.number, hold);
        }
    }

    /// Fails the task that has waited longest. Another contender enters the queue for the others.
    pub(crate) fn fail(self, error: Error) {
        if let Some(reports) = self.reports.upgrade() {
            reports.fail(self.number, error);
        }
    }
}

impl Drop for EntrySlot {
    fn drop(&mut self) {
        if let Some(reports) = self.reports.upgrade() {
            reports.abort(self.number);
        }
    }
}

impl CommonWatch {
    /// A list showed no other contender (`true`), or that is no longer known (`false`).
    pub(crate) fn set_alone(&self, is_alone: bool) {
        if let Some(reports) = self.reports.upgrade() {
            reports.set_all_alone(self.number, is_alone);
        }
    }

    /// Another contender waits.
    pub(crate) fn mark_contended(&self) {
        if let Some(reports) = self.reports.upgrade() {
            reports.mark_all_contended(self.number);
        }
    }

    /// More nodes are in use than there may be.
    pub(crate) fn mark_exceeded(&self) {
        if let Some(reports) = self.reports.upgrade() {
            reports.mark_exceeded(self.number);
        }
    }
}

impl Drop for CommonWatch {
    fn drop(&mut self) {
        if let Some(reports) = self.reports.upgrade() {
            reports.mark_all_blind(self.number);
        }
    }
}
