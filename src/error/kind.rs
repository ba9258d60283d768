use lockkeeper_lock::EngineError;
pub(super) use lockkeeper_lock::ErrorKind;

use super::{ConnectError, Error, Outcome, ReleaseError};

impl Error {
    /// The meaning of this error for its caller.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Config(_)
            | Self::ConflictingKind { .. }
            | Self::SequenceExhausted { .. }
            | Self::Connect(ConnectError::Config(_)) => ErrorKind::Misuse,
            Self::Timeout { .. } => ErrorKind::Timeout,
            Self::NoAnswer { .. } | Self::Connect(ConnectError::Timeout { .. }) => ErrorKind::Disconnected,
            Self::Refused { .. } | Self::Connect(_) => ErrorKind::Refused,
            Self::Closed | Self::RuntimeEnded { .. } => ErrorKind::Closed,
            Self::Unknown { .. } => ErrorKind::Unknown,
            Self::Lost(_) | Self::Release(ReleaseError::Lost(_)) => ErrorKind::Lost,
            Self::Release(ReleaseError::Unconfirmed { .. }) => ErrorKind::Unreleased,
            Self::NotCommitted(error) if error.is_lost() => ErrorKind::Lost,
            Self::NotCommitted(_) => ErrorKind::Refused,
            Self::Recipe(error) if error.outcome() == Outcome::Unknown => ErrorKind::Unknown,
            Self::Recipe(error) => error.kind(),
        }
    }
}

impl EngineError for Error {
    fn kind(&self) -> ErrorKind {
        self.kind()
    }
}
