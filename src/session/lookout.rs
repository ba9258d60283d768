//! Watches on what is held, so that a holder learns at once that someone else deleted its node.
//!
//! The confirmations find that out, too, within a sixth of the session timeout. A watch costs a read, so only what is
//! held for a while gets one.

use std::sync::{Arc, Weak};
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;

use super::{OwnNode, Session};
use crate::backend::WireError;
use crate::deadline::Deadline;
use crate::error::Refusal;

impl Session {
    /// What is held for longer gets a watch.
    fn held_for_long(&self) -> Duration {
        self.timeout() / 10
    }

    /// Tells holders whose nodes are deleted. Runs for as long as the session.
    pub(super) async fn look_out(&self) {
        let mut watched = FuturesUnordered::new();
        loop {
            self.0.lookout.lie_down();
            for node in self.without_lookout() {
                watched.push(self.look_out_for(Arc::downgrade(&node), node.path().to_owned()));
            }
            let is_idle = watched.is_empty() && !self.holds_something();
            if !is_idle {
                self.0.lookout.get_up();
            }
            tokio::select! {
                biased;
                Some(()) = watched.next(), if !watched.is_empty() => {}
                () = self.0.lookout.woken(), if is_idle => {}
                () = tokio::time::sleep(self.timeout() / 40), if !is_idle => {}
            }
        }
    }

    /// What has been held for long and is looked out for by nobody; by us, from now on.
    fn without_lookout(&self) -> Vec<Arc<OwnNode>> {
        let long_ago = self.now().before(self.held_for_long());
        let nodes = self.0.own_nodes.lock();
        nodes.values().filter(|node| node.is_held_since(long_ago) && node.begin_lookout()).cloned().collect()
    }

    /// Resolves when there is nothing more to see.
    async fn look_out_for(&self, node: Weak<OwnNode>, path: String) {
        let watch = match node.upgrade().and_then(|node| node.watch()) {
            Some(watch) => Some(watch),
            None => self.set_lookout(&node, &path).await,
        };
        if let Some(watch) = watch {
            watch.await;
        }
        let Some(node) = node.upgrade() else { return };
        // What is given up is out of the books: that it goes is no loss then.
        if self.is_in_books(&node) {
            let _ = node.check();
        }
        node.end_lookout();
    }

    async fn set_lookout(&self, node: &Weak<OwnNode>, path: &str) -> Option<super::own_node::SharedWatch> {
        let room = self.watch_budget().reserve_spare(path)?;
        let mut reply = self.read(|wire| wire.watch_data(path));
        let answer = self.answer(&mut reply, Deadline::never()).await;
        let node = node.upgrade()?;
        match answer {
            Ok((_, _, watch)) => {
                node.set_watch(watch, room);
                node.watch()
            }
            Err(WireError::Refused(Refusal::NoNode)) => {
                if self.is_in_books(&node) {
                    node.is_missing();
                }
                None
            }
            // The confirmations tell, in their time.
            Err(_) => None,
        }
    }

    fn is_in_books(&self, node: &OwnNode) -> bool {
        self.0.own_nodes.lock().contains_key(&node.number())
    }
}
