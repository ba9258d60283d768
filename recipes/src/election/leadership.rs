use lockkeeper_core::{Hold, ReleaseError};

use super::state::Candidacy;
use crate::lock::{Guard, HoldAccess, HoldRelease};

/// The leadership of an [`Election`](super::Election).
///
/// A drop of the leadership resigns in the background.
///
/// # Methods
///
/// Those of every [`Guard`](crate::Guard), and [`resign`](Self::resign).
pub type Leadership = Guard<LeadershipHold>;

/// The hold of a leader.
#[derive(Debug)]
pub struct LeadershipHold {
    // Drop order: nothing is shown to lead while its node is deleted.
    candidacy: Candidacy,
    hold: Hold,
}

impl Leadership {
    pub(super) fn new(candidacy: Candidacy, hold: Hold) -> Self {
        candidacy.leads(&hold);
        Self::of(LeadershipHold { candidacy, hold })
    }

    /// Ends the leadership, and waits until the server has deleted the node: the next candidate leads. The
    /// same as [`release`](Self::release). The participant leads again by another
    /// [`campaign`](super::Election::campaign).
    ///
    /// # Errors
    ///
    /// As [`Hold::release`].
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the node is deleted in the background.
    pub async fn resign(self) -> Result<(), ReleaseError> {
        self.release().await
    }
}

impl HoldAccess for LeadershipHold {
    fn first(&self) -> &Hold {
        &self.hold
    }
}

impl HoldRelease for LeadershipHold {
    async fn into_hold(self) -> Result<Option<Box<Hold>>, ReleaseError> {
        let Self { candidacy, hold } = self;
        drop(candidacy);
        Ok(Some(Box::new(hold)))
    }
}
