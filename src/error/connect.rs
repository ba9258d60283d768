use std::time::Duration;

use thiserror::Error;

use crate::config::error::ConfigError;

/// Why no connection was made.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// An argument that cannot be right; nothing was sent.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// No server gave us a session in time.
    #[error("no session within {waited:.1?} from {servers}: {cause}")]
    Timeout {
        /// The servers tried.
        servers: String,
        /// How long it was tried.
        waited: Duration,
        /// What the last try met.
        cause: String,
    },
    /// The servers do not accept who we are.
    #[error("{servers} refused our credentials; check the authentication settings")]
    AuthFailed {
        /// The servers tried.
        servers: String,
    },
    /// The system gave no thread to a blocking manager.
    #[error("no thread for the connection: {cause}; the process may be out of threads or files")]
    NoThread {
        /// What the system said.
        cause: String,
    },
}
