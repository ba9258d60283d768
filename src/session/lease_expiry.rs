//! The end of the lease: every hold is lost at that instant.

use super::{OwnedNode, Session};
use crate::error::LossReason;
use crate::time::boot::BootInstant;
use crate::time::fractions;

impl Session {
    pub(crate) fn lease_valid_until(&self) -> BootInstant {
        self.0.lease.lock().valid_until()
    }

    pub(crate) fn expirations(&self) -> u64 {
        self.0.lease.lock().observe(self.now())
    }

    /// The lease ran out while the node was held. The hold is lost. If the session lives on, the node must
    /// not block other contenders, so the janitor deletes it.
    pub(super) fn expire_hold(&self, node: &OwnedNode) {
        // A node that was given up before is being deleted already.
        if node.lose(LossReason::LeaseRanOut) && !node.is_given_up() {
            self.janitor().delete(self, node.path());
        }
    }

    /// Reports the loss to holders at the moment the lease runs out.
    ///
    /// Timers stand still while the machine sleeps, so the clock is read at least every quarter of the
    /// margin.
    pub(super) async fn expire_by_clock(&self) {
        let slice = fractions::clock_check(self.timeout());
        let mut expirations_seen = self.expirations();
        loop {
            self.0.clock_watcher.park();
            let expirations = self.expirations();
            if expirations != expirations_seen {
                expirations_seen = expirations;
                for node in self.held_nodes() {
                    // The check itself reads the clock and marks the node as lost.
                    let _ = node.check();
                }
            }
            if !self.holds_something() {
                self.0.clock_watcher.woken().await;
                continue;
            }
            self.0.clock_watcher.unpark();
            let remaining = self.lease_valid_until().since(self.now());
            tokio::time::sleep(if remaining.is_zero() { slice } else { slice.min(remaining) }).await;
        }
    }
}
