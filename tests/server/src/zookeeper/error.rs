use std::io;
use std::path::PathBuf;
use std::time::Duration;

use thiserror::Error;

/// The real server could not be started, or could not be reached by a signal.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ZooKeeperError {
    /// There is no Java, or no ZooKeeper.
    #[error(
        "{missing} is missing. Install Debian's package `zookeeper` (apt-get install zookeeper \
         default-jre-headless), or set ZOOKEEPER_JARS to the folder `lib` of a release from \
         zookeeper.apache.org, with Java 11 or later in JAVA_HOME or PATH"
    )]
    NotInstalled {
        /// What was looked for.
        missing: String,
    },
    /// The process ended before it served.
    #[error("ZooKeeper ended with {status} before it served. The end of its log:\n{log}")]
    Ended {
        /// Its exit status.
        status: String,
        /// The last lines of its log.
        log: String,
    },
    /// The process runs, and does not serve.
    #[error("ZooKeeper does not serve after {waited:?}; its log is {}", log.display())]
    Silent {
        /// How long it was waited for.
        waited: Duration,
        /// Where the log is, as long as the server has its folder.
        log: PathBuf,
    },
    /// Its process is not there: it was killed or stopped before.
    #[error("ZooKeeper does not run; call restart()")]
    Down,
    /// An error of the operating system.
    #[error("cannot {attempt}: {source}")]
    Io {
        /// What was tried.
        attempt: &'static str,
        /// Why it failed.
        source: io::Error,
    },
}

impl ZooKeeperError {
    pub(super) fn io(attempt: &'static str) -> impl Fn(io::Error) -> Self {
        move |source| Self::Io { attempt, source }
    }
}
