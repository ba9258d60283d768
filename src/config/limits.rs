//! What fits into one request, and what everyone counts or waits alike.

use std::time::Duration;

use super::error::ConfigError;

/// Most bytes of data and paths taken in one request.
///
/// The server closes the connection on a request larger than its `jute.maxbuffer`, 1 MiB by default, without
/// a word: trying again would go on for ever.
pub const REQUEST_BYTES_MAX: usize = 1_000_000;

/// After a wait of this time the log says so, and again each time that it has passed once more.
pub const LONG_WAIT: Duration = Duration::from_secs(30);

/// How often a directory is made again that the server reaped before a node was created in it.
pub(crate) const DIRECTORIES_MAX: usize = 8;

pub(crate) fn check(bytes: usize) -> Result<(), ConfigError> {
    if bytes > REQUEST_BYTES_MAX {
        return Err(ConfigError::DataTooLarge { bytes, max: REQUEST_BYTES_MAX });
    }
    Ok(())
}
