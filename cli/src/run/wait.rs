//! The wait for a lock, and the exit code if it takes too long.

use std::time::Duration;

use lockkeeper::error::Phase;
use lockkeeper::locks::ZooKeeperLock;
use lockkeeper::{ConnectionManager, Error, Inspection, MultiLockGuard, ZnodePath};

use super::options::RunOptions;
use crate::exit::{Exit, Failure};
use crate::inspect::print::who;

/// How long the servers may take to say who holds a lock, or whether they answer at all.
pub(crate) const ANSWER: Duration = Duration::from_secs(1);

/// Waits for a lock, as long as the options say. `paths` are those of the lock.
pub(super) async fn wait(
    options: &RunOptions,
    manager: &ConnectionManager,
    lock: &dyn ZooKeeperLock,
    paths: &[ZnodePath],
) -> Result<MultiLockGuard, Failure> {
    let acquired = if options.attempt {
        match lock.try_acquire().await? {
            Some(guard) => return Ok(guard),
            None => return Err(not_free(options, manager, paths).await),
        }
    } else if let Some(timeout) = options.time_left() {
        lock.acquire_timeout(timeout).await
    } else {
        lock.acquire().await
    };
    match acquired {
        Ok(guard) => Ok(guard),
        Err(error) => Err(or_conflict(options, manager, lock.path(), error).await),
    }
}

/// The failure of a wait, with the chosen code if it was only too late. What the servers said of the
/// contenders ahead may be wrong once the link is dead: then no server is reached, and nobody is named.
pub(super) async fn or_conflict(
    options: &RunOptions,
    manager: &ConnectionManager,
    path: &ZnodePath,
    error: Error,
) -> Failure {
    let is_behind_others =
        matches!(&error, Error::Timeout { phase: Phase::Queued { .. } | Phase::Recipe(_), .. });
    if is_behind_others && !answers(manager, path).await {
        let waited = options.timeout.map_or_else(String::new, |timeout| format!(" within {timeout:.1?}"));
        let message = format!(
            "no server answers any more, so nobody knows who holds {path}; the lock was not got{waited}"
        );
        return Failure::new(Exit::UNAVAILABLE, message);
    }
    let failure = Failure::from(error);
    if failure.exit() == Exit::NOT_IN_TIME { not_in_time(options, failure.to_string()) } else { failure }
}

/// Whether a server answers now.
pub(crate) async fn answers(manager: &ConnectionManager, path: &ZnodePath) -> bool {
    // Whatever the answer is, it is one.
    let read = async { !matches!(manager.znodes().read(path).await, Err(error) if is_no_answer(&error)) };
    manager.health().can_read && tokio::time::timeout(ANSWER, read).await.unwrap_or(false)
}

fn is_no_answer(error: &Error) -> bool {
    matches!(error, Error::Timeout { .. } | Error::NoAnswer { .. } | Error::Closed)
}

/// The failure of an attempt, which names the holder.
async fn not_free(options: &RunOptions, manager: &ConnectionManager, paths: &[ZnodePath]) -> Failure {
    if options.quiet {
        return not_in_time(options, String::new());
    }
    let looks = async {
        for path in paths {
            if let Ok(Some(lock)) = Inspection::of_path(manager, path).await
                && let Some(who) = who(&lock)
            {
                return Some(format!("{path} is not free: {who}"));
            }
        }
        None
    };
    let named = tokio::time::timeout(ANSWER, looks).await.ok().flatten();
    let paths = || paths.iter().map(ZnodePath::as_str).collect::<Vec<_>>().join(", ");
    not_in_time(options, named.unwrap_or_else(|| format!("{} is not free", paths())))
}

/// With the code and the message that the options choose.
pub(super) fn not_in_time(options: &RunOptions, message: String) -> Failure {
    let message = if options.quiet { String::new() } else { message };
    Failure::new(Exit::of_program(options.conflict_exit_code), message)
}
