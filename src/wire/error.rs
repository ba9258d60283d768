use thiserror::Error as ThisError;

use crate::error::{Error, LossReason, Operation, Outcome, Phase, Refusal};
use crate::time::deadline::Deadline;

/// Why a request failed.
#[derive(Clone, Debug, PartialEq, Eq, ThisError)]
pub enum WireError {
    /// The server refused the request.
    #[error("{0}")]
    Refused(Refusal),
    /// The session ended, and its ephemeral nodes with it.
    #[error("{0}")]
    SessionEnded(LossReason),
    /// The servers open no session with these credentials.
    #[error("the servers refused the credentials")]
    AuthFailed,
    /// No answer within the time limit of one request.
    #[error("no answer in time")]
    Timeout,
    /// Any other failure. A write may be applied.
    #[error("{0}")]
    Broken(String),
}

impl WireError {
    /// Only a definite answer of the server means that nothing was applied.
    pub(crate) fn outcome(&self) -> Outcome {
        match self {
            Self::Refused(_) => Outcome::NotApplied,
            Self::SessionEnded(_) | Self::AuthFailed | Self::Timeout | Self::Broken(_) => Outcome::Unknown,
        }
    }
}

/// The answer to a read; `None` if the node does not exist.
pub(crate) fn existing<T>(answer: Result<T, WireError>) -> Result<Option<T>, WireError> {
    match answer {
        Ok(read) => Ok(Some(read)),
        Err(WireError::Refused(Refusal::NoNode)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Why a transaction was not committed.
#[derive(Clone, Debug)]
pub enum MultiError {
    /// The quorum refused one write, so none was applied.
    Operation {
        /// The index of the write, from 0.
        index: usize,
        /// The answer of the quorum.
        refusal: Refusal,
    },
    /// The request as a whole failed.
    Request(WireError),
}

impl Error {
    /// Converts the error of a request for `operation` on `path`.
    pub(crate) fn of_wire(operation: Operation, path: &str, error: &WireError, deadline: Deadline) -> Self {
        let path = path.into();
        match error {
            WireError::Refused(refusal) => Self::Refused { operation, path, refusal: *refusal },
            WireError::Timeout if operation.is_read() => {
                Self::Timeout { phase: Phase::Answer, path, waited: deadline.waited() }
            }
            // The server may still apply it.
            WireError::Timeout => {
                let cause = format!("no answer within {:.1?}", deadline.waited());
                Self::Unknown { operation, path, cause }
            }
            WireError::SessionEnded(LossReason::Closed) => Self::Closed,
            _ if operation.is_read() => Self::NoAnswer { operation, path, cause: error.to_string() },
            _ => Self::Unknown { operation, path, cause: error.to_string() },
        }
    }
}
