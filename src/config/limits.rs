//! The largest request, and limits that several folders share.

use std::time::Duration;

use super::error::ConfigError;

/// The largest accepted size of a request: its data and paths, in bytes.
///
/// The server closes the connection without an answer when a request is larger than its `jute.maxbuffer`, 1
/// MiB by default. A retry would continue for ever.
pub const REQUEST_BYTES_MAX: usize = 1_000_000;

/// The default budget for the paths of the ephemeral nodes of one session, in bytes.
///
/// The servers write one record of all of them when the session ends. The smallest `jute.maxbuffer` in use, 1
/// MiB, has room for twice as much: also for nodes of requests that were lost and are applied late.
pub const NODE_BYTES_MAX: usize = 512 * 1024;

/// A wait that lasts this long is logged, and logged again after each further span of this length.
pub const LONG_WAIT: Duration = Duration::from_secs(30);

/// How often a contender creates a directory again that the server removed before the contender's node was
/// created in it.
pub(crate) const DIRECTORIES_MAX: usize = 8;

pub(crate) fn check(bytes: usize) -> Result<(), ConfigError> {
    if bytes > REQUEST_BYTES_MAX {
        return Err(ConfigError::DataTooLarge { bytes, max: REQUEST_BYTES_MAX });
    }
    Ok(())
}
