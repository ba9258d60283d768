use lockkeeper_lock::{EngineError, ErrorKind};

use super::connect::ConnectError;
use super::operation_error::Error;
use super::outcome::Outcome;
use super::phase::Phase;
use super::release::ReleaseError;

impl Error {
    /// The meaning of this error for its caller.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Config(_)
            | Self::ConflictingKind { .. }
            | Self::SequenceExhausted { .. }
            | Self::ServersReset { .. }
            | Self::Connect(ConnectError::Config(_)) => ErrorKind::Misuse,
            Self::Timeout { phase: Phase::Call(_), .. } | Self::Unknown { .. } => ErrorKind::Unknown,
            Self::Timeout { .. } => ErrorKind::Timeout,
            Self::NoAnswer { .. } | Self::Connect(ConnectError::Timeout { .. }) => ErrorKind::Disconnected,
            Self::Refused { .. } | Self::Unanswerable { .. } | Self::Connect(_) => ErrorKind::Refused,
            Self::Closed | Self::RuntimeEnded { .. } => ErrorKind::Closed,
            Self::Lost(_) | Self::Release(ReleaseError::Lost(_)) => ErrorKind::Lost,
            Self::Release(ReleaseError::Unconfirmed { .. }) => ErrorKind::Unreleased,
            Self::NotCommitted(error) if error.is_lost() => ErrorKind::Lost,
            Self::NotCommitted(_) => ErrorKind::Refused,
            Self::Recipe(error) if error.outcome() == Outcome::Unknown => ErrorKind::Unknown,
            Self::Recipe(error) => error.kind(),
        }
    }
}

impl EngineError for Error {
    fn kind(&self) -> ErrorKind {
        self.kind()
    }
}

#[cfg(test)]
mod tests {
    use std::panic::Location;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_closure_that_did_not_end_in_time_may_have_written_and_a_wait_has_not() {
        let after = |phase| Error::Timeout { phase, path: "/".into(), waited: Duration::from_secs(1) };
        let call = after(Phase::Call(Location::caller()));
        assert!(call.is_timeout() && !call.is_transient(), "{call}");
        assert_eq!((call.kind(), call.outcome()), (ErrorKind::Unknown, Outcome::Unknown));
        let wait = after(Phase::Recipe("waiting for a turn".into()));
        assert!(wait.is_timeout() && wait.is_transient(), "{wait}");
        assert_eq!((wait.kind(), wait.outcome()), (ErrorKind::Timeout, Outcome::NotApplied));
    }
}
