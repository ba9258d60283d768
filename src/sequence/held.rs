use std::fmt::{self, Debug, Formatter};
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use tracing::{debug, instrument};

use super::claim::Standing;
use super::place::Entry;
use crate::clock::BootInstant;
use crate::deadline::Deadline;
use crate::error::{LossReason, Lost};
use crate::manager::ConnectionManager;
use crate::release::ReleaseError;
use crate::session::{Epoch, OwnNode};
use crate::token::FencingToken;
use crate::txn::Txn;

/// A hold: the first place in a line, until it is released, dropped or lost.
///
/// It is *valid* as long as the server cannot have given the place to anyone else. Once lost it stays lost, also
/// when the connection comes back.
///
/// Dropping it gives the place up in the background; [`release`](Self::release) waits until the server has done it.
/// It keeps the manager alive. A hold that is leaked ([`std::mem::forget`]) blocks the line until the session ends.
#[must_use = "a hold that is not kept is released at once"]
#[clippy::has_significant_drop]
pub struct HeldNode {
    token: FencingToken,
    // Dropped in this order: struck out of the session's books, deleted, its watch given up, and last the manager.
    entry: Entry,
    standing: Standing,
    node: Arc<OwnNode>,
    manager: ConnectionManager,
}

impl HeldNode {
    pub(super) fn new(
        manager: ConnectionManager,
        node: Arc<OwnNode>,
        entry: Entry,
        standing: Standing,
        token: FencingToken,
    ) -> Self {
        Self { node, token, entry, standing, manager }
    }

    /// The token to fence writes with: greater than that of every earlier holder of this line.
    #[must_use]
    pub fn fencing_token(&self) -> FencingToken {
        self.token
    }

    /// Whether the server cannot have given the place to anyone else yet. Costs no request.
    ///
    /// Reads the clock at each call: false at the first look after a pause that was too long.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.check().is_ok()
    }

    /// As [`is_valid`](Self::is_valid), and says why not.
    ///
    /// # Errors
    ///
    /// [`Lost`] once the hold is lost.
    pub fn check(&self) -> Result<(), Lost> {
        self.node.check()
    }

    /// The instant until which the server cannot have given the place to anyone else by expiring the session, as far
    /// as is known now. It moves on while the ensemble confirms the session, and lies in the past once the hold is
    /// lost.
    #[must_use]
    pub fn valid_until(&self) -> BootInstant {
        self.node.valid_until()
    }

    /// Resolves when the hold is lost: in a running process, before the server can give the place to anyone else.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: a loss is told again to whoever asks later.
    pub async fn lost(&self) -> Lost {
        self.node.lost().await
    }

    /// Runs `work` for as long as the hold is valid.
    ///
    /// The hold is checked before each poll: once it is lost, `work` is not polled again and is dropped.
    ///
    /// # Errors
    ///
    /// [`Lost`] when the hold was lost before `work` was done. What `work` had done by then stays done: give its
    /// writes the [fencing token](Self::fencing_token), or make them by [`txn`](Self::txn).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops `work`; the hold stays.
    pub async fn run<F: Future>(&self, work: F) -> Result<F::Output, Lost> {
        let mut work = pin!(work);
        let mut lost = pin!(self.lost());
        std::future::poll_fn(|context| {
            if let Poll::Ready(lost) = lost.as_mut().poll(context) {
                return Poll::Ready(Err(lost));
            }
            if let Err(lost) = self.check() {
                return Poll::Ready(Err(lost));
            }
            work.as_mut().poll(context).map(Ok)
        })
        .await
    }

    /// Writes that are committed only if the hold's node still exists: exact, whatever the clocks do.
    pub fn txn(&self) -> Txn<'_> {
        Txn::under(&self.manager, &self.node)
    }

    /// The path of the hold's node, chroot included.
    #[must_use]
    pub fn path(&self) -> &str {
        self.node.path()
    }

    /// The epoch of the session the hold belongs to.
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        self.node.session().epoch()
    }

    /// The manager the hold belongs to.
    #[must_use]
    pub fn manager(&self) -> &ConnectionManager {
        &self.manager
    }

    /// Gives the place up and waits until the server has done so. One round trip.
    ///
    /// # Errors
    ///
    /// [`ReleaseError::Lost`] when the hold had been lost before: the work was not protected to its end.
    /// [`ReleaseError::Unconfirmed`] when no answer came in time: it counts as held until the node is gone, and the
    /// manager goes on deleting it.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the release goes on in the background.
    #[instrument(level = "debug", name = "release", skip_all, fields(node = self.path(), token = %self.token))]
    pub async fn release(self) -> Result<(), ReleaseError> {
        // Nothing to wait for: what is left of a lost hold is cleaned up in the background.
        self.check().map_err(ReleaseError::Lost)?;
        let Self { node, entry, standing, manager, .. } = self;
        // Out of the books first: a check that no longer finds the node must not take that for a loss.
        drop(entry);
        let deadline = Deadline::after(manager.operation_timeout());
        let deleted = standing.delete(deadline).await;
        match deleted {
            Ok(true) => {
                debug!(path = node.path(), "released");
                Ok(())
            }
            Ok(false) => Err(ReleaseError::Lost(node.loss_by(LossReason::NodeDeleted))),
            Err(_) if node.session().loss().is_some() => {
                let reason = node.session().loss().unwrap_or(LossReason::SessionExpired);
                Err(ReleaseError::Lost(node.loss_by(reason)))
            }
            Err(error) => {
                Err(ReleaseError::Unconfirmed { path: node.path().to_owned(), cause: error.to_string() })
            }
        }
    }
}

impl Debug for HeldNode {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("HeldNode")
            .field("path", &self.path())
            .field("token", &self.token)
            .field("valid", &self.is_valid())
            .finish_non_exhaustive()
    }
}
