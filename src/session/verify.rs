//! Whether the present connection carries this session.

use tracing::warn;

use super::handle::Session;
use super::hang_ups::Suspect;
use super::owned_node::OwnedNode;
use crate::error::{LossReason, Refusal};
use crate::time::deadline::Deadline;
use crate::time::fractions;
use crate::wire::{Link, Reply, Stat, WireError};

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
            if self.verify_by(&node, connection).await {
                return true;
            }
            if self.connection() != Some(connection) {
                return false;
            }
        }
        false
    }

    /// Sends the list of this session's nodes below `path`: only such nodes as the connection's session owns
    /// are in it. Some servers close the connection on it.
    async fn list_own(&self, path: &str) -> Reply<Vec<String>> {
        let list = || self.read(|wire| wire.own_ephemerals(path));
        self.send_suspect(Suspect::OwnEphemerals, Deadline::never(), list).await
    }

    /// Whether the servers do not know the list of a session's nodes, as far as this error shows.
    fn cannot_list_own(&self, error: &WireError) -> bool {
        *error == WireError::Refused(Refusal::Unimplemented) || self.hangs_up_on(Suspect::OwnEphemerals)
    }

    fn end_without_proof(&self) {
        warn!("this server cannot show which session a connection carries; a reconnect ends the session");
        self.end(LossReason::SessionReplaced);
    }

    /// Verifies the connection by this node. Returns whether the result is definite.
    async fn verify_by(&self, node: &OwnedNode, connection: u64) -> bool {
        let path = node.path();
        let limit = Deadline::never();
        // A node that this connection created belongs to the session that the connection carries, so its
        // owner is the proof.
        if node.created_on() == Some(connection) {
            return self.verify_by_owner(node, connection).await;
        }
        // A node that an earlier connection created may belong to another session, which the present
        // connection may carry as well.
        if !node.is_owner_seen() && !self.see_owner(node).await {
            return false;
        }
        if self.hangs_up_on(Suspect::OwnEphemerals) {
            self.end_without_proof();
            return true;
        }
        match self.await_reply(&mut self.list_own(path).await, limit).await {
            Ok(mine) if mine.iter().any(|own| own == path) => {
                self.verified(connection);
                true
            }
            Ok(_) => {
                let mut reply = self.read(|wire| wire.exists(path));
                match self.await_reply(&mut reply, limit).await {
                    // The node exists, but not among this connection's nodes.
                    Ok(Some(stat)) if stat.ephemeral_owner == self.id() => {
                        warn!(path, "the server replaced our session on reconnect");
                        self.end(LossReason::SessionReplaced);
                        true
                    }
                    Ok(None) => {
                        node.on_missing();
                        false
                    }
                    _ => false,
                }
            }
            Err(error) if self.cannot_list_own(&error) => {
                self.end_without_proof();
                true
            }
            Err(_) => false,
        }
    }

    /// Verifies by the node at `path`, which this session created, that the present connection carries the
    /// session. Ends the session if it does not. A server that cannot tell is believed.
    pub(crate) async fn verify_by_path(&self, path: &str) -> Result<(), WireError> {
        let connection = self.wire()?.connection_id();
        if self.is_connection_verified() || self.hangs_up_on(Suspect::OwnEphemerals) {
            return Ok(());
        }
        match self.await_reply(&mut self.list_own(path).await, Deadline::never()).await {
            Ok(mine) if mine.iter().any(|own| own == path) => self.verified(connection),
            Ok(_) => {
                let mut reply = self.read(|wire| wire.exists(path));
                let stat = self.await_reply(&mut reply, Deadline::never()).await?;
                let is_same = self.connection() == Some(connection);
                if is_same && stat.is_some_and(|stat| stat.ephemeral_owner == self.id()) {
                    warn!(path, "the server replaced our session on reconnect");
                    self.end(LossReason::SessionReplaced);
                    return Err(self.over());
                }
            }
            Err(error) if self.cannot_list_own(&error) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Verifies by the node at `path`, which that transaction created for another session, that the present
    /// connection does not carry that session. Ends ours if it does. A server that cannot tell is believed.
    pub(crate) async fn verify_by_other(&self, path: &str, czxid: i64) -> Result<(), WireError> {
        let connection = self.wire()?.connection_id();
        if self.is_connection_verified() || self.hangs_up_on(Suspect::OwnEphemerals) {
            return Ok(());
        }
        let mut listed = self.list_own(path).await;
        let mut reply = self.read(|wire| wire.exists(path));
        match self.await_reply(&mut listed, Deadline::never()).await {
            Ok(theirs) if theirs.iter().any(|own| own == path) => {
                // It was there before the list and is there behind it: the list has this node, and no other.
                let stat = self.await_reply(&mut reply, Deadline::never()).await?;
                let is_other = |stat: Stat| stat.czxid == czxid && stat.ephemeral_owner != self.id();
                if self.connection() == Some(connection) && stat.is_some_and(is_other) {
                    warn!(path, "the server replaced our session on reconnect");
                    self.end(LossReason::SessionReplaced);
                    return Err(self.over());
                }
                Ok(())
            }
            Err(error) if !self.cannot_list_own(&error) => Err(error),
            _ => Ok(()),
        }
    }

    /// Verifies `connection` by the owner of a node that it created. Returns whether the result is definite.
    async fn verify_by_owner(&self, node: &OwnedNode, connection: u64) -> bool {
        if self.see_owner(node).await {
            self.verified(connection);
            return true;
        }
        self.loss().is_some()
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
