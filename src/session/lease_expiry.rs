//! The end of the lease: what is held is lost at that instant.

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

    /// The lease ran out while a node was held: it is lost, and must not stand in anyone's way if the session
    /// lives on.
    pub(super) fn expire_hold(&self, node: &OwnedNode) {
        // What was given up before is being deleted.
        if node.lose(LossReason::LeaseRanOut) && !node.is_given_up() {
            self.janitor().delete(self, node.path());
        }
    }

    /// Tells holders the moment the lease runs out.
    ///
    /// Timers stand still while the machine sleeps, so the clock is read at least every quarter of the
    /// margin.
    pub(super) async fn expire_by_clock(&self) {
        let slice = fractions::clock_check(self.timeout());
        let mut lapses_seen = self.expirations();
        loop {
            self.0.clock_watcher.park();
            let expirations = self.expirations();
            if expirations != lapses_seen {
                lapses_seen = expirations;
                for node in self.held_nodes() {
                    // Asking is enough: a node finds out by the clock that it is lost.
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
