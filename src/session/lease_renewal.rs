//! Confirms the lease while locks are in use.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use tracing::debug;

use super::Session;
use crate::config::lease_renewal::LeaseRenewal;
use crate::error::Refusal;
use crate::telemetry::metrics;
use crate::time::boot::BootInstant;
use crate::time::deadline::Deadline;
use crate::time::fractions;
use crate::wire::{Link, MultiError, WireError, WriteOp};

/// The paths that one request checks have at most this size in bytes, far below the server's request size.
const CHECKED_BYTES_MAX: usize = 256 * 1024;

impl Session {
    /// Records that locks are in use: the lease is kept confirmed for a while, so that the next acquire needs
    /// no confirmation.
    pub(crate) fn mark_used(&self) {
        *self.0.last_used.lock() = self.now();
        self.0.renewal.notify();
    }

    /// Whether the ensemble gives no answer although the link is up.
    pub(crate) fn quorum_silent(&self) -> bool {
        self.0.quorum_silent.load(Ordering::Acquire)
    }

    /// A request sent at `sent` on `connection` was processed by the quorum.
    pub(super) fn confirmed(&self, connection: u64, sent: BootInstant) {
        self.0.quorum_silent.store(false, Ordering::Release);
        // The request was sent on one connection and answered on another, so it proves nothing about either.
        if self.wire().is_ok_and(|wire| wire.connection_id() == connection) {
            let mut lease = self.0.lease.lock();
            // Read under the lock: no question may have seen an expiry that this instant does not show.
            let now = self.now();
            let before = lease.valid_until();
            lease.confirm(connection, sent, now);
            let is_renewed = lease.valid_until() > before;
            drop(lease);
            if is_renewed {
                metrics::lease_margin(|| self.holds_something().then(|| before.since(now)));
            }
            self.0.lease_moved.notify_waiters();
        }
    }

    pub(super) async fn confirm_while_needed(&self) {
        let mut last_sent = None;
        loop {
            let now = self.now();
            self.0.renewal.park();
            let due =
                self.needs_confirmation(now).then(|| self.0.lease.lock().next_confirmation(last_sent, now));
            if due.is_some() {
                self.0.renewal.unpark();
            }
            let poked = self.0.renewal.woken();
            match due {
                None => {
                    self.forget_idle();
                    let has_table = self.existing_table().is_some_and(|table| !table.is_empty());
                    tokio::select! {
                        biased;
                        () = poked => {}
                        () = tokio::time::sleep(self.timeout()), if has_table => {}
                    }
                }
                Some(due) if due > now => {
                    tokio::select! {
                        biased;
                        () = tokio::time::sleep(due.since(now)) => {}
                        () = poked => {}
                    }
                }
                // A request would only be queued. The task is woken when the link is up again.
                Some(_) if self.link() != Link::Up => poked.await,
                Some(_) => {
                    last_sent = Some(now);
                    self.forget_idle();
                    if let Err(error) = self.confirm().await {
                        debug!(%error, "the session could not be confirmed");
                        self.0.quorum_silent.fetch_or(error == WireError::Timeout, Ordering::AcqRel);
                        tokio::time::sleep(fractions::retry_pause(self.timeout())).await;
                    }
                }
            }
        }
    }

    fn forget_idle(&self) {
        if let Some(table) = self.existing_table() {
            table.forget_idle(self.now().before(self.timeout()));
        }
    }

    fn needs_confirmation(&self, now: BootInstant) -> bool {
        self.0.waiting_for_lease.load(Ordering::Acquire) > 0
            || now < self.0.last_used.lock().after(self.settings().lease_keep_alive)
            || !self.0.owned_nodes.read(BTreeMap::is_empty)
    }

    /// Confirms the session by the quorum, and checks that every held node still exists.
    async fn confirm(&self) -> Result<(), WireError> {
        let limit = Deadline::after(fractions::confirmation_limit(self.timeout()));
        if self.settings().lease_renewal == LeaseRenewal::Sync {
            let mut reply = self.write(|wire| wire.sync("/"));
            return self.await_reply(&mut reply, limit).await;
        }
        let held = self.held_nodes();
        if held.is_empty() {
            let mut reply = self.quorum_sync();
            return self.await_reply(&mut reply, limit).await;
        }
        let mut held = held.into_iter().peekable();
        while held.peek().is_some() {
            let mut bytes = 0;
            let mut nodes = Vec::new();
            while let Some(node) =
                held.next_if(|node| nodes.is_empty() || bytes + node.path().len() < CHECKED_BYTES_MAX)
            {
                bytes += node.path().len();
                nodes.push(node);
            }
            while !nodes.is_empty() {
                let checks: Vec<WriteOp> = nodes
                    .iter()
                    .map(|node| WriteOp::Check { path: node.path().to_owned(), version: None })
                    .collect();
                match self.multi(&checks, limit).await {
                    Ok(_) => break,
                    Err(MultiError::Operation { index, refusal }) if index < nodes.len() => {
                        let node = nodes.remove(index);
                        if refusal == Refusal::NoNode && self.is_registered(&node) {
                            node.on_missing();
                        }
                    }
                    Err(MultiError::Operation { .. }) => break,
                    Err(MultiError::Request(error)) => return Err(error),
                }
            }
        }
        Ok(())
    }
}
