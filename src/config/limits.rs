//! What fits into one request.

use crate::error::ConfigError;

/// Most bytes of data taken in one request.
///
/// The server closes the connection on a request larger than its `jute.maxbuffer`, 1 MiB by default, without a word:
/// trying again would go on for ever.
const DATA_BYTES_MAX: usize = 1_000_000;

pub(crate) fn check(bytes: usize) -> Result<(), ConfigError> {
    if bytes > DATA_BYTES_MAX {
        return Err(ConfigError::DataTooLarge { bytes, max: DATA_BYTES_MAX });
    }
    Ok(())
}
