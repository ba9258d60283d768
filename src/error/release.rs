use thiserror::Error;

use super::Lost;

/// A release that did not read as released.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ReleaseError {
    /// The hold had been lost before: someone else may have held meanwhile.
    #[error("{0} before it was released; what was done under it may not have been protected")]
    Lost(Lost),
    /// No answer came: the node may still stand. The manager goes on deleting it.
    #[error("the release of {path} is not confirmed yet ({cause}); the manager keeps trying")]
    Unconfirmed {
        /// The node.
        path: String,
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

    /// Whether the node may still stand.
    #[must_use]
    pub fn outcome_unknown(&self) -> bool {
        matches!(self, Self::Unconfirmed { .. })
    }
}
