//! The end of the lease: every hold is lost at that instant.

use super::Session;
#[cfg(test)]
use super::lease::SessionLease;
use crate::time::boot::BootInstant;
use crate::time::fractions;

impl Session {
    pub(crate) fn lease_valid_until(&self) -> BootInstant {
        self.0.lease.lock().valid_until()
    }

    pub(crate) fn expirations(&self) -> u64 {
        let lease = self.0.lease.lock();
        lease.expirations(self.now())
    }

    /// As if no request had been confirmed for long. Returns the lease as it was.
    #[cfg(test)]
    pub(crate) fn run_lease_out(&self) -> SessionLease {
        let opened = self.now().before(self.timeout());
        let run_out = SessionLease::new(self.timeout(), self.settings().tick, opened);
        std::mem::replace(&mut *self.0.lease.lock(), run_out)
    }

    #[cfg(test)]
    pub(crate) fn restore_lease(&self, lease: SessionLease) {
        *self.0.lease.lock() = lease;
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
                    let _ = node.settle();
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
