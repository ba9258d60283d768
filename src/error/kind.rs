use std::fmt::{self, Display, Formatter};

use super::{ConnectError, Error, Outcome, ReleaseError};

/// What an [`Error`](enum@Error) means for its caller: [`Error::kind`].
///
/// # Examples
///
/// ```
/// use lockkeeper_core::{Error, ErrorKind};
///
/// fn again(error: &Error) -> bool {
///     match error.kind() {
///         ErrorKind::Timeout | ErrorKind::Disconnected | ErrorKind::Lost => true,
///         // The write may be applied: read first.
///         ErrorKind::Unknown => false,
///         _ => false,
///     }
/// }
/// # let _ = again;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// An argument or a setting is wrong, or two uses do not fit together. Nothing was changed. Another try
    /// fails in the same way.
    Misuse,
    /// The time limit passed, and the lock was not taken, or the write was not sent. Try again.
    Timeout,
    /// No server was reached, or none answered a read. Try again.
    Disconnected,
    /// The hold was lost. Take the lock again, and then decide what is still to be done.
    Lost,
    /// The server refused the request. Nothing was changed.
    Refused,
    /// A write may be applied, or may still be. Read before you repeat it, or repeat it only if it is found
    /// again: [`Txn::once`](crate::Txn::once).
    Unknown,
    /// A release is not confirmed. The work was protected to its end. The manager continues the release, so
    /// there is nothing to repeat.
    Unreleased,
    /// The manager was shut down.
    Closed,
    /// An error of one recipe: see [`Error::recipe`].
    Recipe,
}

impl Error {
    /// What this error means for its caller.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Config(_)
            | Self::WouldDeadlock { .. }
            | Self::ConflictingKind { .. }
            | Self::SequenceExhausted { .. }
            | Self::Connect(ConnectError::Config(_)) => ErrorKind::Misuse,
            Self::Timeout { .. } => ErrorKind::Timeout,
            Self::NoAnswer { .. } | Self::Connect(ConnectError::Timeout { .. }) => ErrorKind::Disconnected,
            Self::Refused { .. } | Self::Connect(_) => ErrorKind::Refused,
            Self::Closed => ErrorKind::Closed,
            Self::Unknown { .. } => ErrorKind::Unknown,
            Self::Lost(_) | Self::Release(ReleaseError::Lost(_)) => ErrorKind::Lost,
            Self::Release(ReleaseError::Unconfirmed { .. }) => ErrorKind::Unreleased,
            Self::NotCommitted(error) if error.is_lost() => ErrorKind::Lost,
            Self::NotCommitted(_) => ErrorKind::Refused,
            Self::Recipe(error) if error.outcome() == Outcome::Unknown => ErrorKind::Unknown,
            Self::Recipe(_) => ErrorKind::Recipe,
        }
    }
}

impl Display for ErrorKind {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Misuse => "misuse",
            Self::Timeout => "timeout",
            Self::Disconnected => "disconnected",
            Self::Lost => "lost",
            Self::Refused => "refused",
            Self::Unknown => "unknown outcome",
            Self::Unreleased => "not yet released",
            Self::Closed => "closed",
            Self::Recipe => "refused by the recipe",
        })
    }
}
