use std::sync::Arc;

use crate::queue::create_guard::NodeGuard;
use crate::queue::queued_node::Registration;
use crate::session::OwnedNode;
use crate::znode::name::{Label, NodeName};

/// One node a hold rests on.
pub(in crate::queue) struct HeldNode {
    // Dropped in this order: struck out of the session's books, then deleted.
    pub(in crate::queue) registration: Registration,
    pub(in crate::queue) node_guard: NodeGuard,
    pub(in crate::queue) label: Label,
}

impl HeldNode {
    pub(in crate::queue) fn node(&self) -> &Arc<OwnedNode> {
        &self.registration.0
    }

    /// The number that the server gave it.
    pub(in crate::queue) fn sequence(&self) -> Option<i32> {
        NodeName::parse_with(self.node_guard.name(), &[self.label]).map(|name| name.sequence())
    }
}
