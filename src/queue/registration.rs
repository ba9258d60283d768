use std::sync::Arc;

use crate::session::OwnedNode;

/// The entry of a node in the register of its session. Its drop gives the node up and removes the entry. Only then
/// may the delete be sent.
pub(super) struct Registration(pub(super) Arc<OwnedNode>);

impl Drop for Registration {
    fn drop(&mut self) {
        self.0.set_given_up();
        self.0.session().unregister(&self.0);
    }
}
