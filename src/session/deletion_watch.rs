//! Watches on held nodes: a holder learns at once that another client deleted its node.
//!
//! The confirmations detect a deleted node as well, within a sixth of the session timeout. A watch costs a
//! read, so only a node that is held for a while gets one.

use std::sync::{Arc, Weak};
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;

use super::handle::Session;
use super::known_node::KnownNode;
use super::own_watch::SharedWatch;
use super::owned_node::OwnedNode;
use super::watches::Reservation;
use crate::error::Refusal;
use crate::time::deadline::Deadline;
use crate::time::fractions;
use crate::wire::WireError;

impl Session {
    /// A node that is held for longer than this gets a watch.
    fn held_for_long(&self) -> Duration {
        fractions::held_for_long(self.timeout())
    }

    /// Reports deleted nodes to their holders. Runs as long as the session.
    pub(super) async fn watch_held_nodes(&self) {
        let mut watched = FuturesUnordered::new();
        let mut is_due = true;
        loop {
            self.owned_nodes().deletion_watcher().park();
            if is_due {
                for (node, room) in self.unwatched_nodes() {
                    watched.push(self.watch_node(Arc::downgrade(&node), node.path().to_owned(), room));
                }
            }
            let is_idle = watched.is_empty() && !self.holds_something();
            if !is_idle {
                self.owned_nodes().deletion_watcher().unpark();
            }
            tokio::select! {
                biased;
                // A watch that could not be set is tried again later: an immediate retry could fail again and
                // again.
                Some(has_fired) = watched.next(), if !watched.is_empty() => is_due = has_fired,
                () = self.owned_nodes().deletion_watcher().woken(), if is_idle => is_due = true,
                () = tokio::time::sleep(fractions::watch_scan_interval(self.timeout())), if !is_idle => {
                    is_due = true;
                }
            }
        }
    }

    /// The nodes that have been held for long and whose watch no task awaits, each with room for a watch
    /// unless it has one. From now on this task awaits their watches. A node without room for a watch stays
    /// unwatched until there is room.
    fn unwatched_nodes(&self) -> Vec<(Arc<KnownNode>, Option<Reservation>)> {
        let long_ago = self.now().before(self.held_for_long());
        let is_due = |node: &KnownNode| node.is_held_since(long_ago) && node.begin_deletion_watch();
        let with_room = |node: &Arc<KnownNode>| {
            let has_watch = node.watch().is_some();
            let room = if has_watch { None } else { self.watch_budget().reserve_spare(node.path()) };
            if room.is_none() && !has_watch {
                node.end_deletion_watch();
                return None;
            }
            Some((Arc::clone(node), room))
        };
        self.owned_nodes().take_while(is_due, with_room)
    }

    /// Resolves when the watch has fired. Returns whether a watch was set.
    async fn watch_node(&self, node: Weak<KnownNode>, path: String, room: Option<Reservation>) -> bool {
        let watch = match (node.upgrade().and_then(|node| node.watch()), room) {
            (Some(watch), _) => Some(watch),
            (None, Some(room)) => self.set_deletion_watch(&node, &path, room, Deadline::never()).await,
            (None, None) => None,
        };
        let is_set = watch.is_some();
        if let Some(watch) = watch {
            watch.await;
        }
        let Some(node) = self.upgraded(&node) else { return is_set };
        // A node that was given up is no longer registered. Its deletion is no loss.
        if self.is_registered(&node) {
            let _ = node.settle();
        }
        node.end_deletion_watch();
        is_set
    }

    /// Watches a node of this session that a waiter waits for. The task of that node may not watch it: its
    /// wait may have timed out while its ticket is kept. A held node is watched anyway.
    pub(crate) async fn watch_predecessor(
        &self,
        node: &OwnedNode,
        deadline: Deadline,
    ) -> Option<SharedWatch> {
        if node.is_held() || node.watch().is_some() {
            return node.watch();
        }
        let room = self.watch_budget().reserve_spare(node.path())?;
        self.set_deletion_watch(&node.downgrade(), node.path(), room, deadline).await
    }

    /// Applies the event of the watch on a node of this session. Returns whether the node still exists.
    pub(crate) fn settle_predecessor(&self, node: &OwnedNode) -> bool {
        // A node that is given up is unregistered before its delete is sent.
        self.is_registered(node) && node.settle().is_ok()
    }

    async fn set_deletion_watch(
        &self,
        node: &Weak<KnownNode>,
        path: &str,
        room: Reservation,
        deadline: Deadline,
    ) -> Option<SharedWatch> {
        let mut reply = self.watch_data(path, room);
        let answer = self.await_reply(&mut reply, deadline).await;
        let node = self.upgraded(node)?;
        match answer {
            Ok((_, _, watch)) => {
                node.set_watch(watch);
                node.watch()
            }
            Err(WireError::Refused(Refusal::NoNode)) => {
                if self.is_registered(&node) {
                    node.on_missing();
                }
                None
            }
            // The next confirmation checks the node.
            Err(_) => None,
        }
    }
}
