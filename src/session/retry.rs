//! The consequence of a failed request: the only place that decides it.

use std::time::Duration;

use tracing::debug;

use super::handle::Session;
use crate::error::{Error, LossReason, Operation, Phase};
use crate::time::deadline::Deadline;
use crate::time::fractions;
use crate::wire::WireError;

/// Why a request is not sent again.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The session is over, and another one may follow.
    SessionEnded(LossReason),
    /// The server refused the request for good, the deadline has passed, or the manager is shut down.
    Failed(Error),
}

impl From<LossReason> for Stop {
    fn from(reason: LossReason) -> Self {
        match reason {
            LossReason::Closed => Self::Failed(Error::Closed),
            reason => Self::SessionEnded(reason),
        }
    }
}

impl Stop {
    /// `Ok` if the caller continues in the next session.
    pub(crate) fn or_next_session(self) -> Result<(), Error> {
        match self {
            Self::SessionEnded(_) => Ok(()),
            Self::Failed(error) => Err(error),
        }
    }
}

impl Session {
    /// Decides about a failed request that does no harm if the server executes it twice. Pauses before `Ok`:
    /// then the caller sends it again.
    pub(crate) async fn retry_after(
        &self,
        error: &WireError,
        operation: Operation,
        path: &str,
        deadline: Deadline,
    ) -> Result<(), Stop> {
        match error {
            WireError::SessionEnded(reason) => return Err((*reason).into()),
            WireError::Refused(refusal) if !refusal.is_transient() => {
                return Err(Stop::Failed(Error::of_wire(operation, path, error, deadline)));
            }
            error => debug!(path, %operation, %error, "no answer; sending the request again"),
        }
        self.backoff(deadline).await;
        match deadline.has_passed() {
            true => Err(Stop::Failed(Error::Timeout {
                phase: Phase::Answer,
                path: path.into(),
                waited: deadline.waited(),
            })),
            false => Ok(()),
        }
    }

    /// Pauses before the next attempt.
    pub(crate) async fn backoff(&self, deadline: Deadline) {
        self.pause(fractions::retry_pause(self.timeout()), deadline).await;
    }

    /// Pauses for this long, until the session ends, or until the deadline.
    pub(crate) async fn pause(&self, pause: Duration, deadline: Deadline) {
        tokio::select! {
            biased;
            () = tokio::time::sleep(pause) => {}
            _ = self.ended() => {}
            () = deadline.passed() => {}
        }
    }
}
