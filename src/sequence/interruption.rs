//! Why a step of a wait ends early.

use crate::deadline::Deadline;
use crate::error::{Error, Phase};
use crate::session::Session;

/// Why a step did not get to its end.
pub(super) enum Interruption {
    /// The session is over, or the node is gone: start over at the end of the line.
    StartOver,
    /// Tell the caller.
    Fail(Error),
}

impl From<Error> for Interruption {
    fn from(error: Error) -> Self {
        Self::Fail(error)
    }
}

/// A short rest before another try.
pub(super) async fn pause(session: &Session, deadline: Deadline) {
    tokio::select! {
        biased;
        () = tokio::time::sleep(session.timeout() / 40) => {}
        _ = session.ended() => {}
        () = deadline.passed() => {}
    }
}

/// Fails once the deadline has passed.
pub(super) fn time_left(deadline: Deadline, path: &str, phase: Phase) -> Result<(), Interruption> {
    if deadline.has_passed() { Err(time_over(deadline, path, phase).into()) } else { Ok(()) }
}

pub(super) fn time_over(deadline: Deadline, path: &str, phase: Phase) -> Error {
    Error::Timeout { phase, path: path.to_owned(), waited: deadline.waited() }
}
