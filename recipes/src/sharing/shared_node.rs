use lockkeeper_core::{DetachedNode, Hold};

use super::tenure::NodeTenure;

/// A node without a guard, and its tenure in this process.
pub(super) struct SharedNode {
    pub(super) node: NodeBetween,
    pub(super) tenure: NodeTenure,
}

/// A node between two guards.
pub(super) enum NodeBetween {
    /// It was granted, and had no guard yet.
    Granted(Box<Hold>),
    Detached(DetachedNode),
}

impl SharedNode {
    /// Holds the node again, if it still exists.
    pub(super) fn attach(self) -> Option<(Hold, NodeTenure)> {
        let hold = match self.node {
            NodeBetween::Granted(hold) => hold.is_valid().then_some(*hold)?,
            NodeBetween::Detached(node) => node.attach().ok()?,
        };
        Some((hold, self.tenure))
    }
}
