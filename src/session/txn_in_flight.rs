use std::sync::Arc;

use super::OwnedNode;

/// A transaction that rests on nodes. Dropped without a definite answer, it may be done at any time while
/// they stand.
pub(crate) struct TxnInFlight(Vec<Arc<OwnedNode>>);

impl TxnInFlight {
    pub(crate) fn on<'a>(nodes: impl IntoIterator<Item = &'a Arc<OwnedNode>>) -> Self {
        let nodes: Vec<Arc<OwnedNode>> = nodes.into_iter().cloned().collect();
        for node in &nodes {
            node.begin_txn();
        }
        Self(nodes)
    }

    /// It is known what became of it.
    pub(crate) fn settle(self) {
        for node in self.0 {
            node.settle_txn();
        }
    }
}
