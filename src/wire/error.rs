use thiserror::Error as ThisError;

use crate::error::{Error, LossReason, Operation, Outcome, Phase, Refusal};
use crate::time::deadline::Deadline;

/// Why a request has no result.
#[derive(Clone, Debug, PartialEq, Eq, ThisError)]
pub enum WireError {
    /// The server said no.
    #[error("{0}")]
    Refused(Refusal),
    /// The session is over, and its ephemeral nodes with it.
    #[error("{0}")]
    SessionEnded(LossReason),
    /// No session could be opened with these credentials.
    #[error("the servers refused our credentials")]
    AuthFailed,
    /// No answer within the time given to one request.
    #[error("no answer in time")]
    Timeout,
    /// Anything else. On a write: it may have been applied.
    #[error("{0}")]
    Broken(String),
}

impl WireError {
    /// Only a definite answer counts as one.
    pub(crate) fn outcome(&self) -> Outcome {
        match self {
            Self::Refused(_) => Outcome::NotApplied,
            Self::SessionEnded(_) | Self::AuthFailed | Self::Timeout | Self::Broken(_) => Outcome::Unknown,
        }
    }
}

/// Why a transaction was not committed.
#[derive(Clone, Debug)]
pub enum MultiError {
    /// The write at this place was refused, so none was done. The quorum said so.
    Operation {
        /// Which write, counted from 0.
        index: usize,
        /// What the quorum said.
        refusal: Refusal,
    },
    /// The request as a whole failed.
    Request(WireError),
}

impl MultiError {
    /// Whether it says that nothing was done, and nothing will be.
    pub(crate) fn is_definite(&self) -> bool {
        match self {
            Self::Operation { .. } => true,
            Self::Request(error) => error.outcome() == Outcome::NotApplied,
        }
    }
}

impl Error {
    /// The error of an operation on `path` that failed so.
    pub(crate) fn of_wire(operation: Operation, path: &str, error: &WireError, deadline: Deadline) -> Self {
        let path = path.to_owned();
        match error {
            WireError::Refused(refusal) => Self::Refused { operation, path, refusal: *refusal },
            WireError::Timeout => Self::Timeout { phase: Phase::Answer, path, waited: deadline.waited() },
            WireError::SessionEnded(LossReason::Closed) => Self::Closed,
            _ if operation.is_read() => Self::NoAnswer { operation, path, cause: error.to_string() },
            _ => Self::Unknown { operation, path, cause: error.to_string() },
        }
    }
}
