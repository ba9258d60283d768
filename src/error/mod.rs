//! The errors. An area's own are in that area; the ones here collect them, or belong to several areas.

mod connect;
mod loss;
mod refusal;
pub(crate) mod release;

use std::fmt::{self, Display, Formatter};
use std::time::Duration;

use thiserror::Error;

pub use self::connect::ConnectError;
pub use self::loss::{LossReason, Lost};
pub use self::refusal::{Operation, Refusal};
pub use crate::config::error::ConfigError;
use crate::znode::name::LabelError;
use crate::znode::path::PathError;

/// Why an operation did not do what was asked.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// An argument no server would take; nothing was sent.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Time was up. A place in a line is given up by the manager in the background, unless a ticket keeps it;
    /// a write may still be done ([`outcome`](Self::outcome)).
    #[error("gave up after {waited:.1?} while {phase} ({path})")]
    Timeout {
        /// What was being waited for.
        phase: Phase,
        /// The path of the lock or node.
        path: String,
        /// How long the caller had waited.
        waited: Duration,
    },
    /// The manager was shut down.
    #[error("the connection manager is shut down; connect a new one")]
    Closed,
    /// What the operation rested on is gone.
    #[error(transparent)]
    Lost(#[from] Lost),
    /// The server said no; nothing was changed.
    #[error("the server refused to {operation} {path}: {refusal}")]
    Refused {
        /// What was asked.
        operation: Operation,
        /// Of which node.
        path: String,
        /// What the server said.
        refusal: Refusal,
    },
    /// The link broke before the answer: the server may or may not have done it. Look before trying again.
    #[error("it is not known whether the server did {operation} {path}: {cause}; look before trying again")]
    Unknown {
        /// What was asked.
        operation: Operation,
        /// Of which node.
        path: String,
        /// How the link broke.
        cause: String,
    },
    /// The link broke before the answer to a read: there is nothing to undo, ask again.
    #[error("no answer to {operation} {path}: {cause}; ask again")]
    NoAnswer {
        /// What was asked.
        operation: Operation,
        /// Of which node.
        path: String,
        /// How the link broke.
        cause: String,
    },
    /// Waiting could never end, since the waiter itself holds what it waits for.
    #[error("{owner} holds {path} already and would wait for itself; {advice}")]
    WouldDeadlock {
        /// The lock.
        path: String,
        /// Who holds it.
        owner: String,
        /// What to do instead.
        advice: &'static str,
    },
    /// Another kind of lock uses this path; granting could give it to both.
    #[error("{path} is also used by another kind of lock (node {child}); give each lock a path of its own")]
    ConflictingKind {
        /// The lock.
        path: String,
        /// The node of the other kind.
        child: String,
    },
    /// The directory has given out all its numbers, and this kind of lock cannot go on without.
    #[error(
        "the numbers of {path} are used up; delete the lock's directory once nobody uses it, or take another path"
    )]
    SequenceExhausted {
        /// The lock, or one of its nodes.
        path: String,
    },
    /// More permits were asked for than there are in all: they would never be granted.
    #[error(
        "asked for {asked} permits of {path}, which has {limit} in all; ask for fewer, or raise the limit"
    )]
    TooManyPermits {
        /// The semaphore.
        path: String,
        /// How many were asked for.
        asked: usize,
        /// How many there are.
        limit: usize,
    },
    /// Those who use a semaphore do not agree on how many permits it has.
    #[error(
        "{path} is in use with a limit of {recorded}, and was asked for with {mine}; give everyone the same limit, \
         or keep it in a node that all read (SharedLimit)"
    )]
    LimitsDisagree {
        /// The semaphore.
        path: String,
        /// The limit it was asked for with.
        mine: usize,
        /// The limit of those who hold permits.
        recorded: usize,
    },
    /// The node that should keep a limit keeps none.
    #[error("no limit is kept at {path}: {found}; write one with SharedLimit::set()")]
    NoLimit {
        /// The node.
        path: String,
        /// What is there instead.
        found: String,
    },
}

impl Error {
    /// Whether time was up.
    #[must_use]
    pub fn is_timeout(&self) -> bool {
        matches!(self, Self::Timeout { .. })
    }

    /// Whether something held was lost.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        matches!(self, Self::Lost(_))
    }

    /// Whether the server may have done it all the same.
    #[must_use]
    pub fn outcome_unknown(&self) -> bool {
        self.outcome() == Outcome::Unknown
    }

    /// Whether trying again can help. After a write whose [`outcome`](Self::outcome) is unknown, look first.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Timeout { .. } | Self::Lost(_) | Self::Unknown { .. } | Self::NoAnswer { .. } => true,
            Self::Refused { refusal, .. } => refusal.is_transient(),
            _ => false,
        }
    }

    /// What is known of the write that was asked for.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        match self {
            Self::Unknown { .. }
            | Self::Lost(_)
            | Self::Closed
            | Self::Timeout { phase: Phase::Answer, .. } => Outcome::Unknown,
            _ => Outcome::NotApplied,
        }
    }

    /// Whether the manager was shut down.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        matches!(self, Self::Closed)
    }
}

/// Did it happen? What is known of a write after its answer, or without one.
///
/// Only a definite answer of the server is [`NotApplied`](Self::NotApplied); whatever else comes instead of a
/// result leaves it open, and whoever asked has to look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// It was done.
    Applied,
    /// It was certainly not done.
    NotApplied,
    /// It may have been done.
    Unknown,
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

/// What an operation was waiting for when its time was up.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Phase {
    /// For a connection to the ensemble.
    Connecting,
    /// For the server's answer to a request.
    Answer,
    /// In the queue, for contenders ahead to release.
    Queued {
        /// The name of the predecessor's node.
        predecessor: String,
        /// The data of that node, which says whose it is.
        predecessor_data: String,
        /// How many contenders were ahead when the queue was last read.
        ahead: usize,
    },
    /// For the ensemble to confirm the session after a gap.
    Confirmation,
    /// For another task of the same owner, which is acquiring the same lock.
    SameOwner,
    /// For other tasks of this process, which share one node and hand the lock to each other.
    InProcess {
        /// How many of them were ahead.
        ahead: usize,
    },
    /// First in line, for permits that others hold.
    Permits {
        /// How many were free at the last look.
        free: usize,
        /// How many were asked for.
        asked: usize,
    },
}

impl Display for Phase {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connecting => formatter.write_str("waiting for a connection"),
            Self::Answer => formatter.write_str("waiting for the server's answer"),
            Self::Queued { predecessor, predecessor_data, ahead } => {
                write!(
                    formatter,
                    "waiting in the queue behind {predecessor} [{predecessor_data}], {ahead} ahead"
                )
            }
            Self::Confirmation => formatter.write_str("waiting for the ensemble to confirm the session"),
            Self::SameOwner => formatter.write_str("waiting for another task of the same owner"),
            Self::InProcess { ahead } => {
                write!(formatter, "waiting for other tasks of this process, {ahead} ahead")
            }
            Self::Permits { free, asked } => {
                write!(formatter, "waiting first in line for {asked} permits, {free} of them free")
            }
        }
    }
}
