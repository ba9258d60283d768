use thiserror::Error;

use super::Lost;
use crate::znode::whole_path::WholePath;

/// Why a release is not confirmed as a release of a valid hold.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ReleaseError {
    /// The hold had been lost before its release. Another contender may have held the lock meanwhile.
    #[error("{0} before it was released; what was done under it may not have been protected")]
    Lost(Lost),
    /// No answer came, so the node may still exist. The manager keeps trying to delete it.
    #[error("the release of {path} is not confirmed yet ({cause}); the manager keeps trying")]
    Unconfirmed {
        /// The path of the node.
        path: WholePath,
        /// Why there is no answer.
        cause: String,
    },
}

impl ReleaseError {
    /// Whether the hold had been lost before its release.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        matches!(self, Self::Lost(_))
    }

    /// Whether the node may still exist.
    #[must_use]
    pub fn outcome_unknown(&self) -> bool {
        matches!(self, Self::Unconfirmed { .. })
    }
}
