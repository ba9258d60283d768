//! Watches on what is held, so that a holder learns at once that someone else deleted its node.
//!
//! The confirmations find that out, too, within a sixth of the session timeout. A watch costs a read, so only
//! what is held for a while gets one.

use std::sync::{Arc, Weak};
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;

use super::owned_node::SharedWatch;
use super::{OwnedNode, Reservation, Session};
use crate::error::Refusal;
use crate::time::deadline::Deadline;
use crate::time::fractions;
use crate::wire::WireError;

impl Session {
    /// What is held for longer gets a watch.
    fn held_for_long(&self) -> Duration {
        fractions::held_for_long(self.timeout())
    }

    /// Tells holders whose nodes are deleted. Runs for as long as the session.
    pub(super) async fn watch_held_nodes(&self) {
        let mut watched = FuturesUnordered::new();
        let mut is_due = true;
        loop {
            self.0.deletion_watcher.park();
            if is_due {
                for (node, room) in self.unwatched_nodes() {
                    watched.push(self.watch_node(Arc::downgrade(&node), node.path().to_owned(), room));
                }
            }
            let is_idle = watched.is_empty() && !self.holds_something();
            if !is_idle {
                self.0.deletion_watcher.unpark();
            }
            tokio::select! {
                biased;
                // What could not be set is tried again later: at once it might be in vain without end.
                Some(has_fired) = watched.next(), if !watched.is_empty() => is_due = has_fired,
                () = self.0.deletion_watcher.woken(), if is_idle => is_due = true,
                () = tokio::time::sleep(fractions::watch_scan_interval(self.timeout())), if !is_idle => is_due = true,
            }
        }
    }

    /// What has been held for long and is looked out for by nobody, with room for a watch where it has none;
    /// by us, from now on. What there is no room for waits until there is.
    fn unwatched_nodes(&self) -> Vec<(Arc<OwnedNode>, Option<Reservation>)> {
        let long_ago = self.now().before(self.held_for_long());
        let nodes = self.0.owned_nodes.lock();
        let mut found = Vec::new();
        for node in nodes.values().filter(|node| node.is_held_since(long_ago) && node.begin_deletion_watch())
        {
            let has_watch = node.watch().is_some();
            let room = if has_watch { None } else { self.watch_budget().reserve_spare(node.path()) };
            if room.is_none() && !has_watch {
                node.end_deletion_watch();
                break;
            }
            found.push((Arc::clone(node), room));
        }
        found
    }

    /// Resolves when there is nothing more to see: whether a watch told.
    async fn watch_node(&self, node: Weak<OwnedNode>, path: String, room: Option<Reservation>) -> bool {
        let watch = match (node.upgrade().and_then(|node| node.watch()), room) {
            (Some(watch), _) => Some(watch),
            (None, Some(room)) => self.set_deletion_watch(&node, &path, room, Deadline::never()).await,
            (None, None) => None,
        };
        let is_set = watch.is_some();
        if let Some(watch) = watch {
            watch.await;
        }
        let Some(node) = node.upgrade() else { return is_set };
        // What is given up is out of the books: that it goes is no loss then.
        if self.is_registered(&node) {
            let _ = node.check();
        }
        node.end_deletion_watch();
        is_set
    }

    /// Watches a place of ours that somebody waits for. Its own task may not look at it: one that was given
    /// up waiting for, and is kept. What is held is looked out for anyway.
    pub(crate) async fn watch_predecessor(
        &self,
        node: &Arc<OwnedNode>,
        deadline: Deadline,
    ) -> Option<SharedWatch> {
        if node.is_held() || node.watch().is_some() {
            return node.watch();
        }
        let room = self.watch_budget().reserve_spare(node.path())?;
        self.set_deletion_watch(&Arc::downgrade(node), node.path(), room, deadline).await
    }

    /// Takes in what a watch has told of a place of ours; whether that is still there.
    pub(crate) fn check_predecessor(&self, node: &OwnedNode) -> bool {
        // What is given up is out of the books before its delete is sent.
        self.is_registered(node) && node.check().is_ok()
    }

    async fn set_deletion_watch(
        &self,
        node: &Weak<OwnedNode>,
        path: &str,
        room: Reservation,
        deadline: Deadline,
    ) -> Option<SharedWatch> {
        let mut reply = self.read(|wire| wire.watch_data(path));
        let answer = self.await_reply(&mut reply, deadline).await;
        let node = node.upgrade()?;
        match answer {
            Ok((_, _, watch)) => {
                node.set_watch(watch, room);
                node.watch()
            }
            Err(WireError::Refused(Refusal::NoNode)) => {
                if self.is_registered(&node) {
                    node.on_missing();
                }
                None
            }
            // The confirmations tell, in their time.
            Err(_) => None,
        }
    }
}
