use std::fmt::{self, Debug, Formatter};

use super::delete_nodes::delete_one;
use super::held::Hold;
use super::node::HeldNode;
use crate::error::release::ReleaseError;
use crate::error::{LossReason, Lost};
use crate::manager::ConnectionManager;
use crate::time::deadline::Deadline;
use crate::znode::fencing_token::FencingToken;

/// A node at the head of a queue that nothing holds at the moment. [`Hold::detach`] keeps it for the next
/// hold of this process.
///
/// To all other contenders the node is held: it exists, and its session is kept confirmed. Dropping the
/// detached node deletes it in the background. It keeps the manager alive.
#[must_use = "a detached node that is not kept is deleted at once"]
#[clippy::has_significant_drop]
pub struct DetachedNode {
    // Drop order: the node first, the manager last.
    first: HeldNode,
    /// The token of the next hold.
    token: FencingToken,
    recipe: &'static str,
    manager: ConnectionManager,
}

impl Hold {
    /// Gives the hold up and keeps its node for the next hold of this process: [`DetachedNode::attach`].
    ///
    /// # Errors
    ///
    /// The hold itself, to be released, when its node must not be kept: the hold is lost; it rests on several
    /// nodes; one of its transactions was dropped or had no reply, and might be committed under the next
    /// hold; a process [requested revocation](Self::revoke_requested); its hand-off numbers are exhausted;
    /// the manager [grants no more holds](ConnectionManager::closing).
    pub fn detach(self) -> Result<DetachedNode, Box<Self>> {
        let node = self.node();
        let is_sole = self.others.is_empty() && self.unresolved.is_empty() && node.is_settled();
        let is_wanted_here = !node.is_revoke_requested() && !self.manager.is_closing();
        let next = self.token.handed_over().filter(|_| is_sole && is_wanted_here && self.settle().is_ok());
        let Some(next) = next else {
            return Err(Box::new(self));
        };
        let Self { first, registration, manager, .. } = self;
        registration.timer().ends_by("released");
        Ok(DetachedNode::new(first, next, registration.timer().recipe(), manager))
    }
}

impl DetachedNode {
    pub(crate) fn new(
        first: HeldNode,
        token: FencingToken,
        recipe: &'static str,
        manager: ConnectionManager,
    ) -> Self {
        Self { first, token, recipe, manager }
    }

    /// Holds the node again, with a [token](Hold::fencing_token) greater than that of the last hold. Sends
    /// nothing. Report the hold to the [acquire call](crate::AcquireSpan::granted) that got it.
    ///
    /// # Errors
    ///
    /// [`Lost`] when the node was lost meanwhile: enter the queue again. Also when the manager
    /// [grants no more holds](ConnectionManager::closing).
    pub fn attach(self) -> Result<Hold, Lost> {
        let node = self.first.node();
        node.settle()?;
        if self.manager.is_closing() {
            return Err(node.loss_by(LossReason::Closed));
        }
        let Self { first, token, recipe, manager } = self;
        let held = Hold::new(manager, first, Vec::new(), token, Some(recipe));
        // Checked after the hold is counted: a shutdown that has not begun at this point waits for this hold.
        match held.manager().is_closing() {
            true => Err(held.node().loss_by(LossReason::Closed)),
            false => Ok(held),
        }
    }

    /// Deletes the node and waits until the server has done so. One round trip.
    ///
    /// # Errors
    ///
    /// As [`Hold::release`].
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the release continues in the background.
    pub async fn release(self) -> Result<(), ReleaseError> {
        let Self { first, manager, .. } = self;
        first.node().settle().map_err(ReleaseError::Lost)?;
        let deadline = Deadline::after(manager.operation_timeout());
        delete_one(first, deadline).await
    }
}

impl Debug for DetachedNode {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("DetachedNode")
            .field("path", &self.first.node().path())
            .field("token", &self.token)
            .finish_non_exhaustive()
    }
}
