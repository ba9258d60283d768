use std::sync::Arc;

use crate::queue::create_guard::NodeGuard;
use crate::queue::queued_node::Registration;
use crate::session::OwnedNode;

/// One node a hold rests on.
pub(in crate::queue) struct HeldNode {
    // Dropped in this order: struck out of the session's books, then deleted.
    pub(in crate::queue) registration: Registration,
    pub(in crate::queue) node_guard: NodeGuard,
}

impl HeldNode {
    pub(in crate::queue) fn node(&self) -> &Arc<OwnedNode> {
        &self.registration.0
    }
}
