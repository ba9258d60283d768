//! The times that a setting may have.

use std::time::Duration;

use crate::error::ConfigError;

/// Also for a handle with a timeout of its own.
pub(super) fn check_operation_timeout(limit: Duration) -> Result<(), ConfigError> {
    within("operation_timeout", limit, Duration::from_millis(1), Duration::MAX)
}

pub(super) fn within(
    name: &'static str,
    value: Duration,
    min: Duration,
    max: Duration,
) -> Result<(), ConfigError> {
    if (min..=max).contains(&value) {
        return Ok(());
    }
    let (bound, advice) = match value < min {
        true => (format!("below {min:?}"), "give a longer time"),
        false => (format!("above {max:?}"), "give a shorter time"),
    };
    Err(ConfigError::Setting { name, value: format!("{value:?}, {bound}"), advice })
}
