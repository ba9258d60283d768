//! The release of a hold, and its telemetry.

use std::sync::Arc;

use tracing::{Instrument, Span, debug_span};

use super::held::Hold;
use super::node::HeldNode;
use crate::error::release::ReleaseError;
use crate::hold::delete_nodes::{delete_all, delete_together};
use crate::hold::transaction::UnresolvedNodes;
use crate::manager::{ConnectionManager, HoldRegistration};
use crate::time::deadline::Deadline;

impl Hold {
    /// Releases the hold and waits until the server has deleted its nodes. One round trip.
    ///
    /// # Errors
    ///
    /// [`ReleaseError::Lost`] when the hold had been lost before: the work was not protected to its end.
    /// [`ReleaseError::Unconfirmed`] when no reply arrived in time: the lock counts as held until the node is
    /// deleted, and the manager retries the delete.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the release continues in the background.
    pub async fn release(self) -> Result<(), ReleaseError> {
        let (span, first, others, rest) = self.into_parts()?;
        let deadline = Deadline::after(rest.manager.operation_timeout());
        // Boxed, so that a task with a hold is not as large as its release.
        let released = Box::pin(delete_all(first, others, deadline).instrument(span)).await;
        rest.registration.timer().ends_by(ending(&released));
        released
    }

    /// Ends the hold, whose node a committed transaction of its own has deleted.
    pub(crate) fn end_deleted(mut self) {
        self.registration.timer().ends_by("released");
        self.first.node().set_given_up();
        self.first.node_guard.mark_deleted();
    }

    /// The span of a release, the nodes to delete, and the parts that live until then.
    fn into_parts(self) -> Result<(Span, HeldNode, Vec<HeldNode>, Rest), ReleaseError> {
        let span = debug_span!(
            "release",
            path = self.full_path(),
            recipe = self.registration.timer().recipe(),
            sequence = self.first.sequence(),
            token = %self.token,
            session = format_args!("{:#x}", self.session().id()),
            epoch = self.epoch().as_u64(),
        );
        // Nothing to wait for: the nodes of a lost hold are cleaned up in the background.
        span.in_scope(|| self.settle()).map_err(ReleaseError::Lost)?;
        let Self { first, others, unresolved, registration, manager, .. } = self;
        Ok((span, first, others, Rest { _unresolved: unresolved, registration, manager }))
    }

    /// Releases several holds in one transaction, and waits until the server has deleted their nodes. If the
    /// server refuses that, because one of the nodes does not exist, or if one request cannot name all nodes,
    /// each hold is released on its own.
    ///
    /// # Errors
    ///
    /// As [`release`](Self::release), one for each hold that was not released properly.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the release continues in the background.
    pub async fn release_all(holds: Vec<Self>) -> Vec<ReleaseError> {
        let mut errors = Vec::new();
        let mut held_nodes = Vec::new();
        // Keeps the managers alive until the end.
        let mut managers = Vec::new();
        let mut registrations = Vec::new();
        for hold in holds {
            if let Err(lost) = hold.settle() {
                errors.push(ReleaseError::Lost(lost));
                continue;
            }
            let Self { first, others, registration, manager, .. } = hold;
            registrations.push((registration, 1 + others.len()));
            held_nodes.push(first);
            held_nodes.extend(others);
            managers.push(manager);
        }
        if let Some(manager) = managers.first() {
            let deadline = Deadline::after(manager.operation_timeout());
            let mut released = delete_together(held_nodes, deadline).await.into_iter();
            for (registration, node_count) in registrations {
                let released: Vec<_> = released.by_ref().take(node_count).collect();
                let failed = released.iter().find(|released| released.is_err());
                registration.timer().ends_by(failed.map_or("released", ending));
                errors.extend(released.into_iter().filter_map(Result::err));
            }
        }
        errors
    }
}

/// The parts of a hold that live while its nodes are deleted.
struct Rest {
    _unresolved: UnresolvedNodes,
    registration: Arc<HoldRegistration>,
    manager: ConnectionManager,
}

/// The outcome of a release as metrics name it. A lost hold reports its outcome itself.
fn ending(released: &Result<(), ReleaseError>) -> &'static str {
    match released {
        Ok(()) => "released",
        Err(_) => "unconfirmed",
    }
}
