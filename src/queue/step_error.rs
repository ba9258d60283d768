//! Why a step of a wait ends early.

use crate::error::{Error, Phase};
use crate::session::Session;
use crate::time::deadline::Deadline;
use crate::time::fractions;

/// Why a step did not get to its end.
pub(super) enum StepError {
    /// The session is over, or the node is gone: start over at the end of the line.
    Restart,
    /// Tell the caller.
    Fail(Error),
}

impl From<Error> for StepError {
    fn from(error: Error) -> Self {
        Self::Fail(error)
    }
}

/// A short rest before another try.
pub(super) async fn backoff(session: &Session, deadline: Deadline) {
    tokio::select! {
        biased;
        () = tokio::time::sleep(fractions::retry_pause(session.timeout())) => {}
        _ = session.ended() => {}
        () = deadline.passed() => {}
    }
}

/// Fails once the deadline has passed.
pub(super) fn time_left(deadline: Deadline, path: &str, phase: Phase) -> Result<(), StepError> {
    if deadline.has_passed() { Err(timeout_error(deadline, path, phase).into()) } else { Ok(()) }
}

pub(super) fn timeout_error(deadline: Deadline, path: &str, phase: Phase) -> Error {
    Error::Timeout { phase, path: path.to_owned(), waited: deadline.waited() }
}

/// Numbers have come to their end in this directory, and nothing can be told by them any more.
pub(super) fn sequence_exhausted(path: &str) -> Error {
    Error::SequenceExhausted { path: path.to_owned() }
}
