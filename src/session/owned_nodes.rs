//! The waiting and held nodes of a session.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::{Origin, OwnedNode, Session};

impl Session {
    /// Registers a node of this session.
    pub(crate) fn register(&self, path: Arc<str>, data: Arc<[u8]>, origin: Origin) -> Arc<OwnedNode> {
        let number = self.0.next_owned_node.fetch_add(1, Ordering::Relaxed);
        let node = Arc::new(OwnedNode::new(number, path, self.clone(), origin, data));
        match self.0.owned_nodes.insert(number, Arc::clone(&node)) {
            Ok(()) => self.0.renewal.notify(),
            Err(reason) => {
                node.lose(*reason);
            }
        }
        node
    }

    /// Removes a node of this session.
    pub(crate) fn unregister(&self, node: &OwnedNode) {
        self.0.owned_nodes.remove(node.number());
    }

    pub(super) fn is_registered(&self, node: &OwnedNode) -> bool {
        self.0.owned_nodes.read(|nodes| nodes.contains_key(&node.number()))
    }

    pub(super) fn holds_something(&self) -> bool {
        self.0.owned_nodes.read(|nodes| nodes.values().any(|node| node.is_held()))
    }

    pub(super) fn held_nodes(&self) -> Vec<Arc<OwnedNode>> {
        self.0.owned_nodes.read(|nodes| nodes.values().filter(|node| node.is_held()).cloned().collect())
    }
}
