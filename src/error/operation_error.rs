//! The error of every operation. That of a transaction is in it, and has it.

use std::sync::Arc;
use std::time::Duration;

use lockkeeper_lock::ErrorKind;
use thiserror::Error as ThisError;

use super::connect::ConnectError;
use super::loss::Lost;
use super::outcome::Outcome;
use super::phase::Phase;
use super::recipe::RecipeError;
use super::refusal::{Operation, Refusal};
use super::release::ReleaseError;
use crate::config::connect_string::ConnectStringError;
use crate::config::error::ConfigError;
use crate::time::deadline::Deadline;
use crate::znode::name::LabelError;
use crate::znode::path::PathError;
use crate::znode::whole_path::WholePath;
use crate::znode::zxid::Zxid;

/// Why an operation failed.
///
/// Every other error of this crate becomes one of these by `?`, so a function that connects, locks, commits
/// and releases returns `Result<_, Error>`. The one exception in `lockkeeper` is `InitError<E>`, which may be
/// any error of the caller's initialiser. [`kind`](Self::kind) says what the error means for the caller,
/// [`outcome`](Self::outcome) what is known about a write.
///
/// # Examples
///
/// ```
/// use lockkeeper_core::{ConnectionManager, Deadline, Error, Label, LockQueue, Rule};
///
/// async fn sell(servers: &str) -> Result<(), Error> {
///     let manager = ConnectionManager::connect(servers).await?;
///     let queue = LockQueue::new(&manager, "/locks/7", Label::LOCK, Rule::MUTEX)?;
///     let held = queue.acquire(Deadline::never()).await?;
///     held.txn().create("/sold", "seat 42").commit().await?;
///     held.release().await?;
///     manager.shutdown().await
/// }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = lockkeeper_testserver::TestServer::start().await?;
/// # Ok(sell(&server.connect_string()).await?)
/// # }
/// ```
#[derive(Clone, Debug, ThisError)]
#[non_exhaustive]
pub enum Error {
    /// An argument is invalid: no server would accept it. Nothing was sent.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The deadline passed, and the call did not do what it was asked for. The manager deletes the
    /// contender's node in the background, unless a ticket keeps it. A write without an answer is
    /// [`Unknown`](Self::Unknown). After [`Phase::Call`] the [outcome](Self::outcome) is unknown.
    #[error("gave up after {waited:.1?} while {phase} ({path})")]
    Timeout {
        /// What the operation was waiting for.
        phase: Phase,
        /// The path of the lock or node.
        path: WholePath,
        /// How long the caller had waited.
        waited: Duration,
    },
    /// The manager was shut down.
    #[error("the connection manager is shut down; connect a new one")]
    Closed,
    /// The runtime on which the manager was connected has ended, and the manager was not shut down.
    #[error("the runtime that served {path} has ended; connect a manager on a runtime that lasts")]
    RuntimeEnded {
        /// The path of the lock, the node, the view or the registration.
        path: WholePath,
    },
    /// The hold that the operation rested on is lost. What was done under it so far is not known from this
    /// error: a write may be applied.
    #[error(transparent)]
    Lost(#[from] Lost),
    /// The server refused the request, or this client did, because its session is
    /// [full](Refusal::SessionFull). Nothing was changed.
    #[error("{} refused to {operation} {path}: {refusal}", .refusal.by())]
    Refused {
        /// The operation.
        operation: Operation,
        /// The path of the node.
        path: WholePath,
        /// The answer of the server.
        refusal: Refusal,
    },
    /// The connection broke before the answer, so the server may have applied the write. Read the node before
    /// you repeat the write.
    #[error(
        "it is not known whether the server applied this: {operation} {path} ({cause}); read before you retry"
    )]
    Unknown {
        /// The operation.
        operation: Operation,
        /// The path of the node.
        path: WholePath,
        /// How the connection broke.
        cause: String,
    },
    /// The connection broke before the answer to a read. Repeat the read.
    #[error("no answer to {operation} {path}: {cause}; retry")]
    NoAnswer {
        /// The operation.
        operation: Operation,
        /// The path of the node.
        path: WholePath,
        /// How the connection broke.
        cause: String,
    },
    /// Nothing became of the request, several times in a row: the connection broke, or the server answered
    /// that it does not know. So the request itself is the likely cause, and it is not sent again. The call
    /// did not do what it was asked for. The manager searches for nodes that were created all the same, and
    /// deletes them in the background.
    #[error(
        "the servers did not {operation} {path}, {attempts} times in a row ({cause}); is the request larger \
         than their jute.maxbuffer, or do they not know it?"
    )]
    Unanswerable {
        /// The operation.
        operation: Operation,
        /// The path of the node.
        path: WholePath,
        /// How often the request was sent.
        attempts: u32,
        /// How the last one failed.
        cause: String,
    },
    /// Another kind of lock uses this path. A grant could go to both.
    #[error("{path} is also used by another kind of lock (node {child}); give each lock a path of its own")]
    ConflictingKind {
        /// The path of the lock.
        path: WholePath,
        /// The name of the node of the other kind.
        child: String,
    },
    /// The sequence counter of the directory is exhausted, and this kind of lock needs it.
    #[error(
        "the sequence numbers of {path} are exhausted; delete the lock's directory when it is unused, \
         or use another path"
    )]
    SequenceExhausted {
        /// The path of the lock, or of one of its nodes.
        path: WholePath,
    },
    /// The servers have gone back behind a transaction that this manager has seen: their data was lost, or
    /// was restored from a backup. Fencing tokens, revisions and ids would go back, too. So the manager
    /// grants nothing and changes no counter or shared value until its process is started again. Before that,
    /// raise [`token_generation`](crate::ConnectionManagerBuilder::token_generation) in every process.
    #[error(
        "{path}: the servers were at transaction {seen} before, and are at {now}, so their data was \
         lost or restored, and fencing tokens and ids would go back; stop the processes, raise \
         token_generation, and start them again (operations.md, After a restore)"
    )]
    ServersReset {
        /// The path of the lock or node.
        path: WholePath,
        /// The transaction that was seen.
        seen: Zxid,
        /// A later transaction, with a smaller zxid.
        now: Zxid,
    },
    /// A transaction was not committed: nothing was written.
    #[error(transparent)]
    NotCommitted(Box<TxnError>),
    /// A release is not confirmed as a release of a valid hold.
    #[error(transparent)]
    Release(#[from] ReleaseError),
    /// No connection was made.
    #[error(transparent)]
    Connect(ConnectError),
    /// An error of one recipe: [`recipe`](Self::recipe) has it by its own type.
    #[error(transparent)]
    Recipe(Arc<dyn RecipeError>),
}

impl Error {
    /// The deadline passed in this phase.
    pub(crate) fn timed_out(deadline: Deadline, path: &str, phase: Phase) -> Self {
        Self::Timeout { phase, path: path.into(), waited: deadline.waited() }
    }

    /// Whether the deadline passed.
    #[must_use]
    pub fn is_timeout(&self) -> bool {
        matches!(self, Self::Timeout { .. }) || self.kind() == ErrorKind::Timeout
    }

    /// Whether a hold was lost.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.kind() == ErrorKind::Lost
    }

    /// Whether the server may have applied the write in spite of this error.
    #[must_use]
    pub fn outcome_unknown(&self) -> bool {
        self.outcome() == Outcome::Unknown
    }

    /// Whether the same call may be made again, and can succeed then.
    ///
    /// Never if the [outcome](Self::outcome) is unknown: a second write would be applied as well. That is so
    /// after [`Unknown`](Self::Unknown), and after a [`Lost`](Self::Lost) hold, under which a write may have
    /// been on its way. Read first, or make the write one that is [found again](crate::Txn::once).
    #[must_use]
    pub fn is_transient(&self) -> bool {
        if self.outcome_unknown() {
            return false;
        }
        match self {
            Self::Timeout { .. } | Self::NoAnswer { .. } => true,
            Self::NotCommitted(error) => error.is_transient(),
            Self::Connect(error) => matches!(error, ConnectError::Timeout { .. }),
            Self::Refused { refusal, .. } => refusal.is_transient(),
            Self::Recipe(error) => error.is_transient(),
            _ => false,
        }
    }

    /// The outcome of the write, as far as it is known.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        match self {
            Self::Unknown { .. }
            | Self::Timeout { phase: Phase::Call(_), .. }
            | Self::Lost(_)
            | Self::Closed
            | Self::RuntimeEnded { .. }
            | Self::Release(_) => Outcome::Unknown,
            Self::Recipe(error) => error.outcome(),
            _ => Outcome::NotApplied,
        }
    }

    /// The error of a recipe, if it is of this type.
    #[must_use]
    pub fn recipe<E: RecipeError>(&self) -> Option<&E> {
        match self {
            Self::Recipe(error) => error.as_error().downcast_ref(),
            _ => None,
        }
    }

    /// A write was applied, and the server's answer to it cannot be read.
    pub(crate) fn bad_answer(operation: Operation, path: &str, cause: &PathError) -> Self {
        Self::Unknown { operation, path: path.into(), cause: cause.to_string() }
    }

    /// Whether the manager was shut down, or the runtime has ended that the call needs.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        matches!(self, Self::Closed | Self::RuntimeEnded { .. })
    }
}

impl<E: RecipeError> From<E> for Error {
    fn from(error: E) -> Self {
        Self::Recipe(Arc::new(error))
    }
}

/// Returns [`Error::Config`] for a setting.
impl From<ConnectError> for Error {
    fn from(error: ConnectError) -> Self {
        match error {
            ConnectError::Config(error) => Self::Config(error),
            error => Self::Connect(error),
        }
    }
}

/// Returns the error of the request itself, if it failed as a whole.
impl From<TxnError> for Error {
    fn from(error: TxnError) -> Self {
        match error {
            TxnError::Failed(error) => error,
            error => Self::NotCommitted(Box::new(error)),
        }
    }
}

impl From<ConnectStringError> for Error {
    fn from(error: ConnectStringError) -> Self {
        Self::Config(ConfigError::ConnectString(error))
    }
}

impl From<PathError> for Error {
    fn from(error: PathError) -> Self {
        Self::Config(ConfigError::Path(error))
    }
}

impl From<LabelError> for Error {
    fn from(error: LabelError) -> Self {
        Self::Config(ConfigError::Label(error))
    }
}

/// Why a transaction was not committed, or may not have been.
#[derive(Clone, Debug, ThisError)]
#[non_exhaustive]
pub enum TxnError {
    /// The hold is lost. Nothing was written.
    #[error("nothing was written: {0}")]
    Lost(Lost),
    /// The server refused one write. Nothing was written.
    #[error(
        "nothing was written: write {index}, {operation} {path}, was refused: {refusal}{}",
        missing_parent(*.operation, .path, *.refusal)
    )]
    Refused {
        /// The index of the write, from 0.
        index: usize,
        /// The kind of the write.
        operation: Operation,
        /// The path of the write.
        path: WholePath,
        /// The answer of the server.
        refusal: Refusal,
    },
    /// The request failed as a whole. [`TxnError::outcome`] tells whether the transaction may be committed.
    #[error(transparent)]
    Failed(#[from] Error),
}

/// Names the parent for want of which a create was refused.
fn missing_parent(operation: Operation, path: &WholePath, refusal: Refusal) -> String {
    match (operation, refusal, path.as_str().rsplit_once('/')) {
        (Operation::Create, Refusal::NoNode, Some((parent, _))) => {
            format!(
                "; its parent {} does not exist: create that first",
                if parent.is_empty() { "/" } else { parent }
            )
        }
        _ => String::new(),
    }
}

impl TxnError {
    /// Whether the hold was lost, and nothing written.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        matches!(self, Self::Lost(_))
    }

    /// Whether the same transaction may be committed again, and can succeed then; after a loss, under a new
    /// hold. Never after an [unknown outcome](Self::outcome_unknown): both might be applied.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Lost(_) => true,
            Self::Refused { refusal, .. } => refusal.is_transient(),
            Self::Failed(error) => error.is_transient(),
        }
    }

    /// Whether the transaction may be committed in spite of this error.
    #[must_use]
    pub fn outcome_unknown(&self) -> bool {
        self.outcome() == Outcome::Unknown
    }

    /// The outcome of the transaction, as far as it is known: [`NotApplied`](Outcome::NotApplied) or
    /// [`Unknown`](Outcome::Unknown).
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        match self {
            Self::Lost(_) | Self::Refused { .. } => Outcome::NotApplied,
            Self::Failed(error) => error.outcome(),
        }
    }
}
