//! The nodes of a session that wait or are held.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::{Origin, OwnedNode, Session};

impl Session {
    /// Enters a node of ours.
    pub(crate) fn register(&self, path: Arc<str>, data: Arc<[u8]>, origin: Origin) -> Arc<OwnedNode> {
        let number = self.0.next_owned_node.fetch_add(1, Ordering::Relaxed);
        let node = Arc::new(OwnedNode::new(number, path, self.clone(), origin, data));
        self.0.owned_nodes.lock().insert(number, Arc::clone(&node));
        self.0.renewal.notify();
        // The session may have ended meanwhile, and its end does not see what is entered later.
        if let Some(reason) = self.loss() {
            self.unregister(&node);
            node.lose(reason);
        }
        node
    }

    /// Strikes a node of ours out.
    pub(crate) fn unregister(&self, node: &OwnedNode) {
        self.0.owned_nodes.lock().remove(&node.number());
    }

    pub(super) fn is_registered(&self, node: &OwnedNode) -> bool {
        self.0.owned_nodes.lock().contains_key(&node.number())
    }

    pub(super) fn holds_something(&self) -> bool {
        self.0.owned_nodes.lock().values().any(|node| node.is_held())
    }

    pub(super) fn held_nodes(&self) -> Vec<Arc<OwnedNode>> {
        self.0.owned_nodes.lock().values().filter(|node| node.is_held()).cloned().collect()
    }
}
