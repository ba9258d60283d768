//! The gate of promise 1: the only place that decides that a node is held. And what else a session knows of
//! its lease.

use tracing::debug;

use super::handle::Session;
use super::known_node::KnownNode;
use super::zxid_history::ServersReset;
use crate::error::LossReason;
use crate::telemetry::metrics;
use crate::time::boot::BootInstant;
use crate::time::deadline::Deadline;

impl Session {
    /// Marks the node as held if the session is alive and the lease covers this instant. Returns whether it
    /// did.
    ///
    /// # Errors
    ///
    /// The servers went back behind what was seen: the fencing token may be smaller than one that was granted
    /// before.
    pub(crate) fn try_grant(&self, node: &KnownNode) -> Result<bool, ServersReset> {
        if let Some(reset) = self.servers_reset() {
            return Err(reset);
        }
        let is_alive = || self.loss().is_none();
        let is_granted =
            self.lease().grant_under(is_alive, |expirations, now| node.mark_held(expirations, now));
        if is_granted {
            self.owned_nodes().deletion_watcher().notify();
        }
        Ok(is_granted)
    }

    /// The proof that the servers went back behind what this manager has seen, if there is one.
    pub(crate) fn servers_reset(&self) -> Option<ServersReset> {
        self.settings().zxids.reset()
    }

    /// Whether the server cannot have expired the session yet.
    pub(crate) fn is_lease_valid(&self) -> bool {
        self.loss().is_none() && self.lease().is_valid()
    }

    /// Waits until the lease is valid. Returns `Ok(false)` if the deadline passes first.
    pub(crate) async fn until_lease_is_valid(&self, deadline: Deadline) -> Result<bool, LossReason> {
        if self.is_lease_valid() {
            return Ok(true);
        }
        debug!(epoch = self.epoch().as_u64(), "waiting for the ensemble to confirm the session");
        // The loss is recorded before the end is announced.
        let is_alive = || self.loss().is_none();
        self.lease().until_valid(is_alive, self.ended(), deadline).await
    }

    pub(crate) fn lease_valid_until(&self) -> BootInstant {
        self.lease().valid_until()
    }

    /// How often the lease has run out.
    pub(crate) fn expirations(&self) -> u64 {
        self.lease().expirations()
    }

    /// Records that locks are in use: the lease is kept confirmed for a while, so that the next acquire needs
    /// no confirmation.
    pub(crate) fn mark_used(&self) {
        self.lease().mark_used();
    }

    /// Whether the ensemble gives no answer although the link is up.
    pub(crate) fn quorum_silent(&self) -> bool {
        self.lease().is_quorum_silent()
    }

    /// Whether the present connection is verified to carry this session. If it is not, a node that does not
    /// exist may have ended with the session.
    pub(super) fn is_connection_verified(&self) -> bool {
        self.connection().is_some_and(|connection| self.lease().is_verified(connection))
    }

    /// Records that this connection carries this session.
    pub(super) fn verified(&self, connection: u64) {
        if self.connection() == Some(connection) {
            self.lease().verified(connection);
        }
    }

    /// A request sent at `sent` on `connection` was processed by the quorum.
    pub(super) fn confirmed(&self, connection: u64, sent: BootInstant) {
        self.lease().forget_silence();
        // The request was sent on one connection and answered on another, so it proves nothing about either.
        if self.connection() != Some(connection) {
            return;
        }
        if let Some(margin) = self.lease().confirmed(connection, sent) {
            metrics::lease_margin(|| self.holds_something().then_some(margin));
        }
    }

    /// As if no request had been confirmed for long. Returns the lease as it was.
    #[cfg(test)]
    pub(crate) fn run_lease_out(&self) -> super::lease_keeper::SessionLease {
        self.lease().run_out()
    }

    #[cfg(test)]
    pub(crate) fn restore_lease(&self, lease: super::lease_keeper::SessionLease) {
        let _ = self.lease().restore(lease);
    }
}
