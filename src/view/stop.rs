//! Why a view follows a connection no longer, and the pause behind that.

use std::time::Duration;

use super::bounds::Exceeded;
use super::snapshot::ViewState;
use crate::config::retry::{RetryPauses, RetryPolicy};
use crate::error::Refusal;
use crate::time::fractions;
use crate::wire::WireError;

/// Why a connection is not used any more.
pub(super) enum ViewStop {
    /// It broke, or its watch ended.
    Interrupted,
    /// A request failed in a way that may pass.
    Failed(WireError),
    Exceeded(Exceeded),
    /// The root may not be read.
    Refused(Refusal),
}

impl ViewStop {
    /// The state behind the latest one.
    pub(super) fn state_after(&self, latest: ViewState) -> ViewState {
        match (self, latest) {
            (Self::Exceeded(exceeded), _) => ViewState::TooLarge(*exceeded),
            (Self::Refused(refusal), _) => ViewState::Refused(*refusal),
            (Self::Interrupted | Self::Failed(_), ViewState::Live) => ViewState::Stale,
            (Self::Interrupted | Self::Failed(_), latest) => latest,
        }
    }

    /// Whether callers that ask for a sync wait for the next connection, or get the state.
    pub(super) fn may_be_waited_for(&self) -> bool {
        matches!(self, Self::Interrupted | Self::Failed(_))
    }
}

/// The pauses of a view before it follows the next connection.
pub(super) struct ViewPauses {
    retry: RetryPolicy,
    /// Of the attempts that failed since the view was live.
    failures: Option<RetryPauses>,
}

impl ViewPauses {
    pub(super) fn new(retry: RetryPolicy) -> Self {
        Self { retry, failures: None }
    }

    /// The pause behind this stop. `latest` is the state until then, `lives` whether the connection is still
    /// there.
    pub(super) fn pause_behind(
        &mut self,
        stop: &ViewStop,
        latest: ViewState,
        lives: bool,
        timeout: Duration,
    ) -> Duration {
        if latest == ViewState::Live {
            self.failures = None;
        }
        match stop {
            // The watch ended, and its connection did not.
            ViewStop::Interrupted if lives => fractions::retry_pause(timeout),
            ViewStop::Interrupted => Duration::ZERO,
            // Longer and longer while each attempt fails: the reads may be the cause.
            ViewStop::Failed(_) => {
                let next = self.failures.get_or_insert_with(|| self.retry.start()).next();
                next.max(fractions::retry_pause(timeout))
            }
            ViewStop::Exceeded(_) | ViewStop::Refused(_) => timeout,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(4);

    /// The shortest pause behind a failure.
    const SHORT: Duration = Duration::from_millis(100);

    fn pauses() -> ViewPauses {
        ViewPauses::new(RetryPolicy::exponential(SHORT * 2, SHORT * 16).in_step())
    }

    fn failed() -> ViewStop {
        ViewStop::Failed(WireError::Refused(Refusal::Throttled))
    }

    #[test]
    fn failures_in_a_row_pause_longer_and_longer() {
        let mut pauses = pauses();
        let mut next = |latest| pauses.pause_behind(&failed(), latest, true, TIMEOUT);
        assert_eq!([(); 4].map(|()| next(ViewState::Stale)), [2, 4, 8, 16].map(|times| SHORT * times));
        assert_eq!(next(ViewState::Loading), SHORT * 16);
        // The attempt before succeeded.
        assert_eq!([(); 2].map(|()| next(ViewState::Live)), [SHORT * 2; 2]);
    }

    #[test]
    fn a_pause_behind_a_failure_is_not_shorter_than_a_part_of_the_session_timeout() {
        let mut pauses = ViewPauses::new(RetryPolicy::exponential(Duration::from_millis(1), TIMEOUT));
        assert_eq!(pauses.pause_behind(&failed(), ViewState::Live, false, TIMEOUT), SHORT);
    }

    #[test]
    fn a_new_connection_is_followed_at_once_and_the_same_one_after_a_pause() {
        for (lives, pause) in [(true, SHORT), (false, Duration::ZERO)] {
            let after = pauses().pause_behind(&ViewStop::Interrupted, ViewState::Live, lives, TIMEOUT);
            assert_eq!(after, pause, "{lives}");
        }
    }

    #[test]
    fn what_only_its_users_can_mend_is_looked_at_again_after_a_session_timeout() {
        for stop in [ViewStop::Exceeded(Exceeded::Nodes), ViewStop::Refused(Refusal::NoAuth)] {
            assert_eq!(pauses().pause_behind(&stop, ViewState::Live, true, TIMEOUT), TIMEOUT);
            assert!(!stop.may_be_waited_for());
        }
    }

    #[test]
    fn a_view_that_was_never_live_is_loading_while_connections_break() {
        for stop in [ViewStop::Interrupted, failed()] {
            assert_eq!(stop.state_after(ViewState::Loading), ViewState::Loading);
            assert_eq!(stop.state_after(ViewState::Live), ViewState::Stale);
            assert!(stop.may_be_waited_for());
        }
    }
}
