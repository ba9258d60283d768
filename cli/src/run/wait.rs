//! The wait for a lock, and the exit code if it takes too long.

use lockkeeper::locks::ZooKeeperLock;
use lockkeeper::{Error, MultiLockGuard};

use super::options::RunOptions;
use crate::exit::{Exit, Failure};

/// Waits for a lock, as long as the options say.
pub(super) async fn wait(options: &RunOptions, lock: &dyn ZooKeeperLock) -> Result<MultiLockGuard, Failure> {
    let acquired = if options.attempt {
        let free = lock.try_acquire().await?;
        return free.ok_or_else(|| not_in_time(options, format!("{} is not free", lock.path())));
    } else if let Some(timeout) = options.time_left() {
        lock.acquire_timeout(timeout).await
    } else {
        lock.acquire().await
    };
    acquired.map_err(|error| or_conflict(options, error))
}

/// The failure of a wait, with the chosen code if it was only too late.
pub(super) fn or_conflict(options: &RunOptions, error: Error) -> Failure {
    let failure = Failure::from(error);
    if failure.exit() == Exit::NOT_IN_TIME { not_in_time(options, failure.to_string()) } else { failure }
}

/// With the code and the message that the options choose.
pub(super) fn not_in_time(options: &RunOptions, message: String) -> Failure {
    let message = if options.quiet { String::new() } else { message };
    Failure::new(Exit::of_program(options.conflict_exit_code), message)
}
