//! The errors of a peer.

use std::fmt::{self, Debug, Formatter};
use std::io;
use std::time::Duration;

use crate::jars::JarFolderError;

/// A failure of a peer, or of the machinery around it.
///
/// A test that returns an error shows its `Debug` form, which is the message here.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum PeerError {
    /// Curator or Python, or what it takes to run them, is missing on this machine.
    #[error(
        "cannot start a peer: {missing} was not found. Install it with `apt-get install \
         libcurator-recipes-java default-jdk-headless zookeeper python3-pip` (Debian 12), or set \
         LOCKKEEPER_WITHOUT_ZOOKEEPER=1 to leave these tests out"
    )]
    NotInstalled {
        /// The missing file or command.
        missing: String,
    },

    /// The folder that the environment names has no ZooKeeper in it.
    #[error(transparent)]
    Jars(#[from] JarFolderError),

    /// The driver does not compile against the Curator of this machine.
    #[error("javac refuses the driver of Java Curator; the harness knows Curator 5.4 and 5.9:\n{output}")]
    NotCompiled {
        /// The output of the compiler.
        output: String,
    },

    /// kazoo could not be fetched.
    #[error(
        "cannot fetch kazoo, for which a package index and `apt-get install python3-pip` are needed:\n\
         {output}"
    )]
    NotFetched {
        /// The description of the problem.
        output: String,
    },

    /// The peer's library threw an exception.
    #[error("the peer failed to {request}: {exception}")]
    Failed {
        /// The request.
        request: String,
        /// The exception.
        exception: String,
    },

    /// The process ended, or was killed, before it answered.
    #[error("the peer ended before it could {request}. It wrote at last:\n{error_output}")]
    Ended {
        /// The request.
        request: String,
        /// The last lines of its standard error.
        error_output: String,
    },

    /// No answer in time.
    #[error(
        "waited {limit:?} in vain until the peer could {request}; on a slow machine set \
         LOCKKEEPER_TEST_TIMING=3 to wait three times as long. It wrote at last:\n{error_output}"
    )]
    Timeout {
        /// The request.
        request: String,
        /// How long it was waited for.
        limit: Duration,
        /// The last lines of its standard error.
        error_output: String,
    },

    /// An answer that cannot be read.
    #[error("cannot read what the peer says: {line:?}; the harness and its driver do not belong together")]
    Malformed {
        /// Its output.
        line: String,
    },

    /// The operating system said no.
    #[error("cannot {doing}: {source}")]
    Io {
        /// The failed operation, in words that follow "cannot".
        doing: &'static str,
        /// The system's answer.
        source: io::Error,
    },
}

impl PeerError {
    pub(super) fn io(doing: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { doing, source }
    }

    pub(super) fn malformed(line: impl Into<String>) -> Self {
        Self::Malformed { line: line.into() }
    }
}

impl Debug for PeerError {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        write!(formatter, "{self}")
    }
}
