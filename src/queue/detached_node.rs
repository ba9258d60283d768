use std::fmt::{self, Debug, Formatter};

use super::delete_nodes::delete_one;
use super::held_node::HeldNode;
use super::hold::Hold;
use crate::error::release::ReleaseError;
use crate::error::{LossReason, Lost};
use crate::manager::ConnectionManager;
use crate::time::deadline::Deadline;
use crate::znode::fencing_token::FencingToken;

/// A place at the head of a line that nobody holds at the moment: kept for the next one of this process, by [`Hold::detach`].
///
/// To everyone else it is held: its node stands, and its session is kept confirmed. Dropping it gives the place up in the
/// background. It keeps the manager alive.
#[must_use = "a place that is not kept is given up at once"]
#[clippy::has_significant_drop]
pub struct DetachedNode {
    // Dropped in this order: the node, and last the manager.
    first: HeldNode,
    /// The token of the next hold.
    token: FencingToken,
    recipe: &'static str,
    manager: ConnectionManager,
}

impl Hold {
    /// Gives the hold up and keeps its place, for the next one of this process: [`DetachedNode::attach`].
    ///
    /// # Errors
    ///
    /// The hold itself, to be released, when that must not be: it is lost; it rests on several nodes; a transaction under it
    /// was dropped or had no answer, and might be committed in the next one's time; somebody
    /// [asked for it](Self::revoke_requested); its numbers of hand-overs are used up; nobody is
    /// [let in any more](ConnectionManager::closing).
    pub fn detach(self) -> Result<DetachedNode, Box<Self>> {
        let node = self.node();
        let is_sole = self.others.is_empty() && self.unresolved.is_empty() && node.is_settled();
        let is_wanted_here = !node.is_revoke_requested() && !self.manager.is_closing();
        let next = self.token.handed_over().filter(|_| is_sole && is_wanted_here && self.check().is_ok());
        let Some(next) = next else {
            return Err(Box::new(self));
        };
        let Self { first, registration, manager, .. } = self;
        registration.timer().ends_by("released");
        Ok(DetachedNode::new(first, next, registration.timer().recipe(), manager))
    }
}

impl DetachedNode {
    pub(super) fn new(
        first: HeldNode,
        token: FencingToken,
        recipe: &'static str,
        manager: ConnectionManager,
    ) -> Self {
        Self { first, token, recipe, manager }
    }

    /// Holds again, with a [token](Hold::fencing_token) that is greater than the last hold's. Sends nothing. Tell the
    /// [call](super::AcquireSpan::granted) that got it.
    ///
    /// # Errors
    ///
    /// [`Lost`] when it was lost meanwhile: take a new place. So it is when nobody is
    /// [let in any more](ConnectionManager::closing).
    pub fn attach(self) -> Result<Hold, Lost> {
        let node = self.first.node();
        node.check()?;
        if self.manager.is_closing() {
            return Err(node.loss_by(LossReason::Closed));
        }
        let Self { first, token, recipe, manager } = self;
        let held = Hold::new(manager, first, Vec::new(), token, Some(recipe));
        // Looked at once it is counted: a shutdown that has not begun here waits for this hold.
        match held.manager().is_closing() {
            true => Err(held.node().loss_by(LossReason::Closed)),
            false => Ok(held),
        }
    }

    /// Gives the place up and waits until the server has done so. One round trip.
    ///
    /// # Errors
    ///
    /// As [`Hold::release`].
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the release goes on in the background.
    pub async fn release(self) -> Result<(), ReleaseError> {
        let Self { first, manager, .. } = self;
        first.node().check().map_err(ReleaseError::Lost)?;
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
