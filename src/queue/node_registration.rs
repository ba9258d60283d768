use std::sync::Arc;

use crate::session::OwnedNode;

/// The entry of a node in the register of its session. Dropping it marks the node as given up and removes the
/// entry. The delete may be sent only after that.
pub(super) struct NodeRegistration(pub(super) Arc<OwnedNode>);

impl Drop for NodeRegistration {
    fn drop(&mut self) {
        self.0.set_given_up();
        self.0.session().unregister(&self.0);
    }
}
