use std::sync::Arc;

use super::owned_node::OwnedNode;

/// A transaction that rests on nodes. If it is dropped without a definite answer, the server may apply it at
/// any time while the nodes exist.
pub(crate) struct TxnInFlight(Vec<Arc<OwnedNode>>);

impl TxnInFlight {
    pub(crate) fn on<'a>(nodes: impl IntoIterator<Item = &'a Arc<OwnedNode>>) -> Self {
        let nodes: Vec<Arc<OwnedNode>> = nodes.into_iter().cloned().collect();
        for node in &nodes {
            node.begin_txn();
        }
        Self(nodes)
    }

    /// The outcome is known.
    pub(crate) fn settle(self) {
        for node in self.0 {
            node.settle_txn();
        }
    }
}
