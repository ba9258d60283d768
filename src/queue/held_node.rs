use std::sync::Arc;

use super::create_guard::NodeGuard;
use super::node_registration::NodeRegistration;
use crate::session::OwnedNode;
use crate::znode::name::{Label, NodeName};

/// A node that a hold rests on.
pub(super) struct HeldNode {
    // Drop order: the registration is removed first, then the node is deleted.
    pub(super) registration: NodeRegistration,
    pub(super) node_guard: NodeGuard,
    pub(super) label: Label,
}

impl HeldNode {
    pub(super) fn node(&self) -> &Arc<OwnedNode> {
        &self.registration.0
    }

    /// The sequence number of the node.
    pub(super) fn sequence(&self) -> Option<i32> {
        NodeName::parse_with(self.node_guard.name(), &[self.label]).map(|name| name.sequence())
    }
}
