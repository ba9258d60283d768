use std::io;

use lockkeeper::{ConnectError, Error, MultiLockError, PathError, ReleaseError, ReleaseErrors, TxnError};
use thiserror::Error as ThisError;

use super::interrupt::Interrupted;
use super::patience::Passing;
use super::server::ServerError;

/// The exit code where the input is wrong; clap's, too.
pub const USAGE: u8 = 2;

/// The exit code of what could not be finished.
pub const TROUBLE: u8 = 3;

/// Why an example has nothing to say.
#[derive(Debug, ThisError)]
#[non_exhaustive]
#[expect(missing_docs, reason = "each is the error it holds")]
pub enum Failure {
    #[error(transparent)]
    Lock(#[from] Error),
    #[error(transparent)]
    Locks(#[from] MultiLockError),
    #[error(transparent)]
    Txn(#[from] TxnError),
    #[error(transparent)]
    Release(#[from] ReleaseError),
    #[error(transparent)]
    Releases(#[from] ReleaseErrors),
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error(transparent)]
    Path(#[from] PathError),
    #[error(transparent)]
    Server(#[from] ServerError),
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    #[error("process {0} has failed; what it said is above")]
    Process(u32),
    #[error("{0}")]
    Other(String),
}

impl Failure {
    /// What the process ends with.
    #[must_use]
    pub fn code(&self) -> u8 {
        match self {
            Self::Connect(ConnectError::Config(_)) => USAGE,
            Self::Interrupted(interrupted) => interrupted.code(),
            _ => TROUBLE,
        }
    }
}

impl Passing for Failure {
    fn is_passing(&self) -> bool {
        match self {
            Self::Lock(error) => error.is_transient(),
            Self::Locks(error) => error.is_transient(),
            Self::Txn(error) => error.is_transient(),
            // What was to be done was done; the manager goes on releasing.
            _ => false,
        }
    }
}
