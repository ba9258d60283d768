use std::io;

use thiserror::Error;

/// The server could not be started.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StartError {
    /// The port could not be opened.
    #[error("cannot listen on 127.0.0.1:{port}: {source}; choose another port, or 0 for any free one")]
    Listen {
        /// The port asked for.
        port: u16,
        /// Why not.
        source: io::Error,
    },
    /// The thread that serves all test servers of the process could not be started.
    #[error(
        "cannot start the thread that runs test servers: {0}; the process may be out of threads or files"
    )]
    Runtime(io::Error),
    /// The certificate of [`Builder::tls`](crate::Builder::tls) could not be made.
    #[cfg(feature = "tls")]
    #[error("cannot make a certificate for the server: {0}")]
    Certificate(String),
}
