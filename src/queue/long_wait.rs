use tracing::field::display;
use tracing::info;

use super::lock_queue::LockQueue;
use crate::time::deadline::Deadline;

/// Logs a wait behind `predecessor` that takes long, and the manager's own hold of the lock, if it has one.
pub(super) fn log_long_wait(
    queue: &LockQueue,
    path: &str,
    predecessor: &str,
    owner: &str,
    deadline: Deadline,
) {
    let (held_here, waited) = (queue.held_here().map(display), deadline.waited());
    info!(path, predecessor, owner, held_here, ?waited, "still waiting in the queue");
}
