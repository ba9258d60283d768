use std::sync::Arc;

use super::create_guard::NodeGuard;
use super::registration::Registration;
use crate::session::OwnedNode;
use crate::znode::name::{Label, NodeName};

/// A node that a hold rests on.
pub(super) struct HeldNode {
    // Dropped in this order: removed from the session's register, then deleted.
    pub(super) registration: Registration,
    pub(super) node_guard: NodeGuard,
    pub(super) label: Label,
}

impl HeldNode {
    pub(super) fn node(&self) -> &Arc<OwnedNode> {
        &self.registration.0
    }

    /// The number that the server gave it.
    pub(super) fn sequence(&self) -> Option<i32> {
        NodeName::parse_with(self.node_guard.name(), &[self.label]).map(|name| name.sequence())
    }
}
