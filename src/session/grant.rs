//! The gate of promise 1: the only place that decides that a node is held.

use std::sync::atomic::{AtomicUsize, Ordering};

use tracing::debug;

use super::{OwnedNode, ServersReset, Session};
use crate::error::LossReason;
use crate::time::deadline::Deadline;

impl Session {
    /// Marks the node as held if the session is alive and the lease covers this instant. Returns whether it
    /// did.
    ///
    /// # Errors
    ///
    /// The servers went back behind what was seen: the fencing token may be smaller than one that was granted
    /// before.
    pub(crate) fn try_grant(&self, node: &OwnedNode) -> Result<bool, ServersReset> {
        if let Some(reset) = self.servers_reset() {
            return Err(reset);
        }
        let lease = self.0.lease.lock();
        let now = self.now();
        if self.loss().is_some() || !lease.covers(now) {
            return Ok(false);
        }
        node.mark_held(lease.expirations(now), now);
        drop(lease);
        self.0.clock_watcher.notify();
        self.0.deletion_watcher.notify();
        self.mark_used();
        Ok(true)
    }

    /// Whether the server cannot have expired the session yet.
    pub(crate) fn is_lease_valid(&self) -> bool {
        self.loss().is_none() && self.0.lease.lock().covers(self.now())
    }

    /// Waits until the lease is valid. Returns `Ok(false)` if the deadline passes first.
    pub(crate) async fn until_lease_is_valid(&self, deadline: Deadline) -> Result<bool, LossReason> {
        if self.is_lease_valid() {
            return Ok(true);
        }
        debug!(epoch = self.epoch().as_u64(), "waiting for the ensemble to confirm the session");
        self.0.waiting_for_lease.fetch_add(1, Ordering::AcqRel);
        let _waiting = Countdown(&self.0.waiting_for_lease);
        loop {
            let mut moved = std::pin::pin!(self.0.lease_moved.notified());
            moved.as_mut().enable();
            if self.is_lease_valid() {
                return Ok(true);
            }
            self.0.renewal.wake();
            tokio::select! {
                biased;
                () = moved => {}
                reason = self.ended() => return Err(reason),
                () = deadline.passed() => return Ok(false),
            }
        }
    }
}

/// Decrements a counter when it is dropped.
struct Countdown<'a>(&'a AtomicUsize);

impl Drop for Countdown<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}
