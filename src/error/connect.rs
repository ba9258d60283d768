use std::time::Duration;

use thiserror::Error;

use crate::config::error::ConfigError;

/// Why [`connect`](crate::ConnectionManagerBuilder::connect) made no connection.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// An argument is invalid. Nothing was sent.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// No server granted a session in time.
    #[error("no session within {waited:.1?} from {servers}: {cause}")]
    Timeout {
        /// The servers that were tried.
        servers: String,
        /// How long the manager tried.
        waited: Duration,
        /// The result of the last attempt.
        cause: String,
    },
    /// The chroot does not exist, and
    /// [`existing_chroot`](crate::ConnectionManagerBuilder::existing_chroot) is set.
    #[error(
        "{servers} have no node {chroot}; check the chroot at the end of the connect string, or create it"
    )]
    NoChroot {
        /// The chroot.
        chroot: String,
        /// The servers that were asked.
        servers: String,
    },
    /// The servers do not accept the credentials.
    #[error("{servers} refused the credentials; check the authentication settings")]
    AuthFailed {
        /// The servers that were tried.
        servers: String,
    },
}
