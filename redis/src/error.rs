use std::fmt::{self, Display, Formatter};
use std::time::Duration;

use lockkeeper_lock::{EngineError, ErrorKind};
use thiserror::Error as ThisError;

use crate::recipe_error::{RateLimiterError, SemaphoreError};

/// Why an operation failed. [`kind`](Self::kind) says what the error means for the caller.
#[derive(Clone, Debug, ThisError)]
#[non_exhaustive]
pub enum Error {
    /// An argument is invalid. Nothing was sent.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The deadline passed. The manager leaves the queue in the background.
    #[error("gave up after {waited:.1?} while {phase} ({name})")]
    Timeout {
        /// What the operation was waiting for.
        phase: Phase,
        /// The name of the lock.
        name: String,
        /// How long the caller had waited.
        waited: Duration,
    },
    /// The manager was shut down.
    #[error("the connection manager is shut down; connect a new one")]
    Closed,
    /// The hold that the operation rested on is lost.
    #[error(transparent)]
    Lost(#[from] Lost),
    /// The server refused the request. Nothing was changed.
    #[error("the server refused a request for {name}: {cause}")]
    Refused {
        /// The name of the lock.
        name: String,
        /// The answer of the server.
        cause: String,
    },
    /// The wait could never end, because the waiter itself holds the lock.
    #[error("{owner} holds {name} already and would wait for itself; {advice}")]
    WouldDeadlock {
        /// The name of the lock.
        name: String,
        /// The owner that holds the lock.
        owner: String,
        /// Advice: a call that works instead.
        advice: &'static str,
    },
    /// The key is in use for another kind of lock, or for something else.
    #[error(
        "the key {name} is in use for something else than this kind of lock; give each lock a name of its own"
    )]
    ConflictingKind {
        /// The name of the lock.
        name: String,
    },
    /// A release is not confirmed as a release of a valid hold.
    #[error(transparent)]
    Release(#[from] ReleaseError),
    /// No connection was made.
    #[error(transparent)]
    Connect(ConnectError),
    /// No owner is named, and none is in scope.
    #[error("no owner is in scope here; run this within Owner::scope(), or name an owner")]
    NoOwner,
    /// An error of a semaphore.
    #[error(transparent)]
    Semaphore(#[from] SemaphoreError),
    /// An error of a rate limiter.
    #[error(transparent)]
    RateLimiter(#[from] RateLimiterError),
}

impl Error {
    /// The meaning of this error for its caller.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Config(_)
            | Self::WouldDeadlock { .. }
            | Self::ConflictingKind { .. }
            | Self::NoOwner
            | Self::Connect(ConnectError::Config(_)) => ErrorKind::Misuse,
            Self::Timeout { .. } => ErrorKind::Timeout,
            Self::Connect(ConnectError::Timeout { .. }) => ErrorKind::Disconnected,
            Self::Refused { .. } | Self::Connect(_) => ErrorKind::Refused,
            Self::Closed => ErrorKind::Closed,
            Self::Lost(_) | Self::Release(ReleaseError::Lost(_)) => ErrorKind::Lost,
            Self::Release(ReleaseError::Unconfirmed { .. }) => ErrorKind::Unreleased,
            Self::Semaphore(_) | Self::RateLimiter(_) => ErrorKind::Recipe,
        }
    }

    /// Whether the deadline passed.
    #[must_use]
    pub fn is_timeout(&self) -> bool {
        self.kind() == ErrorKind::Timeout
    }

    /// Whether a hold was lost.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.kind() == ErrorKind::Lost
    }

    /// Whether the same call may be made again, and can succeed then. Never after a lost hold: what the
    /// caller did under it may have happened, so read first.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        matches!(self.kind(), ErrorKind::Timeout | ErrorKind::Disconnected)
    }

    /// Whether the manager was shut down.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        matches!(self, Self::Closed)
    }
}

impl EngineError for Error {
    fn kind(&self) -> ErrorKind {
        self.kind()
    }
}

impl From<ConnectError> for Error {
    fn from(error: ConnectError) -> Self {
        match error {
            ConnectError::Config(error) => Self::Config(error),
            error => Self::Connect(error),
        }
    }
}

/// An argument or a setting that no server would accept, or that could not keep the promises.
#[derive(Clone, Debug, PartialEq, Eq, ThisError)]
#[error("{setting} is {value}: {advice}")]
pub struct ConfigError {
    /// The argument or the setting.
    pub setting: &'static str,
    /// Its value.
    pub value: String,
    /// Advice: a call that works instead.
    pub advice: &'static str,
}

/// Why `connect` made no connection.
#[derive(Clone, Debug, PartialEq, Eq, ThisError)]
#[non_exhaustive]
pub enum ConnectError {
    /// An argument is invalid. Nothing was sent.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// No server answered in time.
    #[error("no connection within {waited:.1?}: {cause}")]
    Timeout {
        /// How long the manager tried.
        waited: Duration,
        /// The result of the last attempt.
        cause: String,
    },
    /// The server does not accept the credentials, or is too old.
    #[error("the server refused the connection: {cause}")]
    Refused {
        /// The answer of the server.
        cause: String,
    },
}

/// The wait of an operation at the time when its deadline passed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Phase {
    /// A connection to the server.
    Connecting,
    /// The server's answer to a request.
    Answer,
    /// The contenders ahead, or the holder.
    Queued {
        /// How many waiters were ahead at the last answer.
        ahead: u32,
    },
    /// Permits that others hold, at the head of the queue.
    Permits {
        /// The number of permits asked for.
        asked: u32,
        /// The number of permits that were free at the last answer.
        free: u32,
    },
    /// Room in the window of a rate limiter.
    Starts {
        /// How long the starts would have had to wait.
        wait: Duration,
    },
    /// Another task of the same owner, which is acquiring the same lock.
    SameOwner,
}

impl Display for Phase {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connecting => formatter.write_str("waiting for a connection"),
            Self::Answer => formatter.write_str("waiting for the server's answer"),
            Self::Queued { ahead } => write!(formatter, "waiting in the queue, {ahead} waiters ahead"),
            Self::Permits { asked, free } => {
                write!(formatter, "waiting at the head of the queue for {asked} permits, {free} of them free")
            }
            Self::Starts { wait } => {
                write!(formatter, "waiting for room in the window for another {wait:.1?}")
            }
            Self::SameOwner => formatter.write_str("waiting for another task of the same owner"),
        }
    }
}

/// A hold that ended before it was released.
#[derive(Clone, Debug, PartialEq, Eq, ThisError)]
#[error("lost {name}: {reason}")]
pub struct Lost {
    /// The name of the lock.
    pub name: String,
    /// Why the hold is lost.
    pub reason: LossReason,
}

/// Why a hold is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, ThisError)]
#[non_exhaustive]
pub enum LossReason {
    /// The server may give the lock to another contender from now on: it has confirmed nothing for too long.
    #[error("the lease ran out: no confirmation from the server in time")]
    LeaseRanOut,
    /// The server does not know the hold any more: somebody deleted the key, its lease ended there, or the
    /// server lost its data.
    #[error("the server does not know the hold any more: deleted, expired, or lost with the server's data")]
    Gone,
    /// The manager was shut down.
    #[error("the connection manager was shut down")]
    Closed,
}

/// Why a release is not confirmed as a release of a valid hold.
#[derive(Clone, Debug, PartialEq, Eq, ThisError)]
#[non_exhaustive]
pub enum ReleaseError {
    /// The hold had been lost before its release. Another contender may have held the lock meanwhile.
    #[error("{0} before it was released; what was done under it may not have been protected")]
    Lost(Lost),
    /// No answer came, so the lock may still be held, until its lease ends. The manager keeps trying.
    #[error("the release of {name} is not confirmed yet ({cause}); the manager keeps trying")]
    Unconfirmed {
        /// The name of the lock.
        name: String,
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

    /// Whether the lock may still be held.
    #[must_use]
    pub fn outcome_unknown(&self) -> bool {
        matches!(self, Self::Unconfirmed { .. })
    }
}
