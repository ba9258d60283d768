//! What the lease of a session is kept for, and the requests that confirm it.

use super::handle::Session;
use super::lease_keeper::LeaseUser;
use crate::config::lease_renewal::LeaseRenewal;
use crate::error::Refusal;
use crate::time::deadline::Deadline;
use crate::wire::{Link, MultiError, WireError, WriteOp};

/// The paths that one request checks have at most this size in bytes, far below the server's request size.
const CHECKED_BYTES_MAX: usize = 256 * 1024;

impl LeaseUser for Session {
    fn has_nodes(&self) -> bool {
        !self.owned_nodes().is_empty()
    }

    fn holds_something(&self) -> bool {
        Self::holds_something(self)
    }

    fn is_connected(&self) -> bool {
        self.link() == Link::Up
    }

    fn forget_idle(&self) -> bool {
        let Some(table) = self.existing_table() else { return false };
        table.forget_idle(self.now().before(self.timeout()));
        !table.is_empty()
    }

    fn settle_holds(&self) {
        for node in self.held_nodes() {
            let _ = node.settle();
        }
    }

    /// Confirms the session by the quorum, and checks that every held node still exists.
    async fn confirm(&self, limit: Deadline) -> Result<(), WireError> {
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
