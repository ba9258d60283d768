//! Whether the present connection carries this session.

use tracing::warn;

use super::handle::Session;
use super::hang_ups::Suspect;
use super::owned_node::OwnedNode;
use crate::error::{LossReason, Refusal};
use crate::time::deadline::Deadline;
use crate::time::fractions;
use crate::wire::{Link, WireError};
use crate::znode::zxid::Zxid;

/// A node by which a connection is verified, as a read or a create has shown it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Witness {
    /// This session created it: the connection must list it.
    Ours,
    /// Another session owns it: the connection must not list it.
    Other {
        /// The transaction that created it.
        czxid: Zxid,
    },
}

/// What the list of a connection's nodes shows.
enum Carries {
    /// The connection carries this session.
    Ours,
    /// The node was deleted, so it shows nothing.
    NodeMissing,
    /// The servers do not have such a list.
    NotShown,
    Unknown,
}

impl Session {
    /// Verifies each connection by a node of this session. Runs as long as the session.
    ///
    /// An attempt is not cut short when the link changes: its failure counts against the request. After an
    /// attempt without a result there is a pause, whether the connection broke or not.
    pub(super) async fn verify_connections(&self) {
        while let Ok(wire) = self.wire() {
            // The listener is armed before the state is read, so no change is missed.
            let changed = wire.link_changed();
            let (link, connection) = (wire.link(), wire.connection_id());
            drop(wire);
            if link != Link::Up || self.lease().is_verified(connection) {
                changed.await;
            } else if !self.verify_connection(connection).await {
                // Without a node of this session, the next create verifies the connection.
                tokio::time::sleep(fractions::verify_interval(self.timeout())).await;
            }
        }
        std::future::pending().await
    }

    /// Returns whether the result is definite.
    async fn verify_connection(&self, connection: u64) -> bool {
        for node in self.some_nodes(4) {
            if self.verify_by_node(&node, connection).await {
                return true;
            }
            if self.connection() != Some(connection) {
                return false;
            }
        }
        false
    }

    /// Verifies the connection by this node. Returns whether the result is definite.
    async fn verify_by_node(&self, node: &OwnedNode, connection: u64) -> bool {
        // A node that this connection created belongs to the session that the connection carries, so its
        // owner is the proof.
        if node.created_on() == Some(connection) {
            if self.see_owner(node).await {
                self.verified(connection);
                return true;
            }
            return self.loss().is_some();
        }
        // A node that an earlier connection created may belong to another session, which the present
        // connection may carry as well.
        if !node.is_owner_seen() && !self.see_owner(node).await {
            return false;
        }
        match self.compare_list(node.path(), Witness::Ours, connection).await {
            Ok(Carries::Ours) => true,
            Ok(Carries::NotShown) => {
                warn!(
                    "this server cannot show which session a connection carries; a reconnect ends the session"
                );
                self.end(LossReason::SessionReplaced);
                true
            }
            Ok(Carries::NodeMissing) => {
                node.on_missing();
                false
            }
            Ok(Carries::Unknown) => false,
            Err(_) => self.loss().is_some(),
        }
    }

    /// Verifies that the present connection carries this session, by a node that no [`OwnedNode`] has. Ends
    /// the session if it does not. A server that cannot tell is believed.
    pub(crate) async fn verify_by(&self, path: &str, witness: Witness) -> Result<(), WireError> {
        let connection = self.wire()?.connection_id();
        if !self.is_connection_verified() {
            self.compare_list(path, witness, connection).await?;
        }
        Ok(())
    }

    /// Compares the list of this session's nodes below `path` with the node: only nodes that the connection's
    /// session owns are in the list. Ends the session if the connection does not carry it.
    async fn compare_list(
        &self,
        path: &str,
        witness: Witness,
        connection: u64,
    ) -> Result<Carries, WireError> {
        // Some servers close the connection on this list: it is not sent to them again.
        let list = || self.read(|wire| wire.own_ephemerals(path));
        let mut reply = self.send_suspect(Suspect::OwnEphemerals, Deadline::never(), list).await;
        let is_listed = match self.await_reply(&mut reply, Deadline::never()).await {
            Ok(listed) => listed.iter().any(|own| own == path),
            Err(error) if self.cannot_list_own(&error) => return Ok(Carries::NotShown),
            Err(error) => return Err(error),
        };
        match witness {
            Witness::Ours if is_listed => {
                self.verified(connection);
                return Ok(Carries::Ours);
            }
            Witness::Other { .. } if !is_listed => return Ok(Carries::Unknown),
            Witness::Ours | Witness::Other { .. } => {}
        }
        // The node existed before the list, and a read behind the list shows it: the list was about this
        // node, and no other.
        let mut reply = self.read(|wire| wire.exists(path));
        let stat = self.await_reply(&mut reply, Deadline::never()).await?;
        if self.connection() != Some(connection) {
            return Ok(Carries::Unknown);
        }
        let Some(stat) = stat else { return Ok(Carries::NodeMissing) };
        let is_ours = stat.ephemeral_owner == self.id();
        let is_replaced = match witness {
            Witness::Ours => is_ours,
            Witness::Other { czxid } => stat.czxid == czxid && !is_ours,
        };
        if is_replaced {
            warn!(path, "the server replaced our session on reconnect");
            self.end(LossReason::SessionReplaced);
            return Err(self.over());
        }
        Ok(Carries::Unknown)
    }

    /// Whether the servers do not know the list of a session's nodes, as far as this error shows.
    fn cannot_list_own(&self, error: &WireError) -> bool {
        *error == WireError::Refused(Refusal::Unimplemented) || self.hangs_up_on(Suspect::OwnEphemerals)
    }

    /// Compares the owner of a node with this session. Returns whether they are the same.
    async fn see_owner(&self, node: &OwnedNode) -> bool {
        let mut reply = self.read(|wire| wire.exists(node.path()));
        match self.await_reply(&mut reply, Deadline::never()).await {
            Ok(Some(stat)) => {
                let is_ours = self.verify_owner(node.path(), &stat).is_ok();
                if is_ours {
                    node.set_owner_seen();
                }
                is_ours
            }
            Ok(None) => {
                node.on_missing();
                false
            }
            Err(_) => false,
        }
    }
}
