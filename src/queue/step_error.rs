//! Why a step of a wait ends early.

use super::lock_queue::LockQueue;
use crate::error::{Error, LossReason, Phase};
use crate::manager::ConnectionManager;
use crate::session::Stop;
use crate::time::deadline::Deadline;
use crate::time::fractions;

/// Why a step did not complete.
pub(crate) enum StepError {
    /// The session has ended, or the node was deleted: start over at the end of the queue.
    Restart,
    /// Return this error to the caller.
    Fail(Error),
}

/// The restarts of one call. The first is at once: a session ended, or a node was deleted. Each further one
/// follows after a pause, as the cause may be one that stays.
#[derive(Default)]
pub(crate) struct Restarts {
    has_restarted: bool,
}

impl Restarts {
    pub(crate) async fn pace(&mut self, manager: &ConnectionManager) {
        if std::mem::replace(&mut self.has_restarted, true) {
            tokio::time::sleep(fractions::retry_pause(manager.session_timeout())).await;
        }
    }
}

impl From<Error> for StepError {
    fn from(error: Error) -> Self {
        Self::Fail(error)
    }
}

impl From<LossReason> for StepError {
    fn from(reason: LossReason) -> Self {
        Stop::from(reason).into()
    }
}

impl From<Stop> for StepError {
    fn from(stop: Stop) -> Self {
        stop.or_next_session().map_or_else(Self::Fail, |()| Self::Restart)
    }
}

/// Fails once the deadline has passed.
pub(crate) fn time_left(deadline: Deadline, path: &str, phase: Phase) -> Result<(), StepError> {
    if deadline.has_passed() { Err(Error::timed_out(deadline, path, phase).into()) } else { Ok(()) }
}

/// The deadline passed behind this predecessor.
pub(crate) fn queued_timeout(
    deadline: Deadline,
    queue: &LockQueue,
    predecessor: &str,
    predecessor_data: String,
    ahead: u32,
) -> StepError {
    let (predecessor, held_here) = (predecessor.to_owned(), queue.held_here().map(Box::new));
    let phase = Phase::Queued { predecessor, predecessor_data, ahead, held_here };
    Error::timed_out(deadline, queue.full_directory().as_str(), phase).into()
}

/// The sequence numbers of this directory are exhausted, and determine no order any more.
pub(crate) fn sequence_exhausted(path: &str) -> Error {
    Error::SequenceExhausted { path: path.into() }
}
