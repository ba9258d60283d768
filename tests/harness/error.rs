//! The errors of the harness itself, with advice for the reader.

use std::fmt;
use std::io;
use std::time::Duration;

use crate::jars::JarFolderError;
use crate::wire::OpCode;

/// A failure of the harness, not of the code under test.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum HarnessError {
    /// Java or ZooKeeper's jar is missing on this machine.
    #[error(
        "cannot start a real ZooKeeper: {missing} was not found. Install it with `apt-get install zookeeper` \
         (Debian 12), or set LOCKKEEPER_WITHOUT_ZOOKEEPER=1 to leave these tests out"
    )]
    NotInstalled {
        /// The missing file or command.
        missing: String,
    },

    /// The folder that the environment names has no ZooKeeper in it.
    #[error(transparent)]
    Jars(#[from] JarFolderError),

    /// An ensemble of another size.
    #[error("an ensemble has one server or three, not {asked}")]
    Servers {
        /// How many were asked for.
        asked: usize,
    },

    /// A condition was not seen in time.
    #[error(
        "waited {limit:?} in vain until {what}; on a slow machine set LOCKKEEPER_TEST_TIMING=3 to wait three \
         times as long"
    )]
    Timeout {
        /// The condition, in words that follow "until".
        what: String,
        /// How long it was waited for, scale included.
        limit: Duration,
    },

    /// A server's process ended before it served.
    #[error("ZooKeeper server {server} ended while starting ({status}). Its log ends:\n{log}")]
    EndedAtStart {
        /// Index of the server, from 0.
        server: usize,
        /// Exit status, as the system words it.
        status: String,
        /// Last lines of its log.
        log: String,
    },

    /// A verb was used on a server that has no process.
    #[error("ZooKeeper server {server} is down: `restart()` it first")]
    Down {
        /// Index of the server, from 0.
        server: usize,
    },

    /// The server answers, but serves no requests: it has no quorum (yet).
    #[error(
        "ZooKeeper at {address} serves no requests: it has no quorum, so wait with `Ensemble::settled()`"
    )]
    NotServing {
        /// Client address of the server.
        address: String,
    },

    /// The server refused to attach the session of a raw client.
    #[error("ZooKeeper refused session {session:#x}: it has expired, or the password is wrong")]
    SessionRefused {
        /// The session that was to be attached.
        session: i64,
    },

    /// A session that no proxy has seen.
    #[error("session {session:#x} did not come by these proxies: take one of `Proxies::sessions()`")]
    UnknownSession {
        /// The session that was asked for.
        session: i64,
    },

    /// The server answered a raw request with an error code.
    #[error("ZooKeeper answered {op:?} {path} with error {code}; see `KeeperException.Code` for its name")]
    Answered {
        /// The request.
        op: OpCode,
        /// Its path.
        path: String,
        /// ZooKeeper's error code.
        code: i32,
    },

    /// Bytes on the wire, or a report, did not have the shape they must have.
    #[error("cannot read {what}: the harness and this ZooKeeper version disagree about its format")]
    Malformed {
        /// The input that was being read.
        what: String,
    },

    /// The operating system said no.
    #[error("cannot {doing}: {source}")]
    Io {
        /// The failed operation, in words that follow "cannot".
        doing: String,
        /// The system's answer.
        source: io::Error,
    },
}

/// The message itself: a test that fails with an error shows its `Debug` form, and the reader must see what
/// to do.
impl fmt::Debug for HarnessError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

impl HarnessError {
    /// Whether a condition was not seen in time.
    #[must_use]
    pub fn is_timeout(&self) -> bool {
        matches!(self, Self::Timeout { .. })
    }

    /// Whether the server answered that a node does not exist (error −101).
    #[must_use]
    pub fn is_no_node(&self) -> bool {
        matches!(self, Self::Answered { code: -101, .. })
    }

    /// ZooKeeper's error code, if it answered with one.
    #[must_use]
    pub fn code(&self) -> Option<i32> {
        match self {
            Self::Answered { code, .. } => Some(*code),
            _ => None,
        }
    }

    pub(crate) fn io(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { doing: doing.into(), source }
    }

    pub(crate) fn malformed(what: impl Into<String>) -> Self {
        Self::Malformed { what: what.into() }
    }
}
