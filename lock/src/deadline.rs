use std::fmt::{self, Display, Formatter};
use std::future::{Future, pending};
use std::time::{Duration, SystemTime};

use futures::future::Either;
use tokio::time::Instant;

/// The instant until which a caller waits: one instant for all steps of an operation.
///
/// A deadline limits the wait, not a hold: it uses tokio's clock. The end of a hold follows the lease clock
/// ([`LockGuard::valid_until`](crate::LockGuard::valid_until)).
#[derive(Clone, Copy, Debug)]
pub struct Deadline {
    started: Instant,
    limit: WaitLimit,
}

/// How long to wait. As small as an optional instant, because every waiting future has one.
#[derive(Clone, Copy, Debug)]
enum WaitLimit {
    /// Wait for as long as it takes.
    Never,
    /// Do not wait for other contenders.
    Immediate,
    /// Wait until this instant.
    At(Instant),
}

impl Deadline {
    /// No deadline: wait for as long as it takes.
    #[must_use]
    pub fn never() -> Self {
        Self { started: Instant::now(), limit: WaitLimit::Never }
    }

    /// No time at all: a try, which waits for a connection and for answers, but for no other contender.
    #[must_use]
    pub fn immediate() -> Self {
        Self { started: Instant::now(), limit: WaitLimit::Immediate }
    }

    /// A deadline `timeout` from now. A timeout that is too long for the clock means no deadline; a timeout
    /// of zero makes a [try](Self::immediate).
    #[must_use]
    pub fn after(timeout: Duration) -> Self {
        let started = Instant::now();
        let limit = match started.checked_add(timeout) {
            _ if timeout.is_zero() => WaitLimit::Immediate,
            Some(at) => WaitLimit::At(at),
            None => WaitLimit::Never,
        };
        Self { started, limit }
    }

    /// The earlier of this deadline and `timeout` from now.
    #[must_use]
    pub fn or_after(self, timeout: Duration) -> Self {
        let limit = match (self.limit, Instant::now().checked_add(timeout)) {
            (WaitLimit::Never, Some(limit)) => WaitLimit::At(limit),
            (WaitLimit::At(own), Some(limit)) => WaitLimit::At(own.min(limit)),
            (own, _) => own,
        };
        Self { limit, ..self }
    }

    /// The one of both that passes first.
    #[must_use]
    pub fn earlier(self, other: Self) -> Self {
        match (self.at(), other.at()) {
            (Some(own), Some(at)) if at < own => other,
            (None, Some(_)) => other,
            _ => self,
        }
    }

    /// The time until the deadline: zero once it has passed, `None` without one.
    #[must_use]
    pub fn left(self) -> Option<Duration> {
        Some(self.at()?.saturating_duration_since(Instant::now()))
    }

    /// Whether it has passed.
    #[must_use]
    pub fn has_passed(self) -> bool {
        self.at().is_some_and(|at| Instant::now() >= at)
    }

    /// Whether this is a [try](Self::immediate). A deadline that has passed meanwhile is not.
    #[must_use]
    pub fn is_immediate(self) -> bool {
        matches!(self.limit, WaitLimit::Immediate)
    }

    /// The end by this machine's time of day, for people. `None` if there is no end.
    #[must_use]
    pub fn time_of_day(self) -> Option<SystemTime> {
        SystemTime::now().checked_add(self.at()?.saturating_duration_since(Instant::now()))
    }

    /// `None` without a deadline.
    fn at(self) -> Option<Instant> {
        match self.limit {
            WaitLimit::Never => None,
            WaitLimit::Immediate => Some(self.started),
            WaitLimit::At(at) => Some(at),
        }
    }

    /// The time since the wait began.
    #[must_use]
    pub fn waited(self) -> Duration {
        self.started.elapsed()
    }

    /// Resolves when the deadline passes. Never resolves without a deadline, or without a tokio runtime.
    pub fn passed(self) -> impl Future<Output = ()> + Send {
        match self.at() {
            Some(at) if tokio::runtime::Handle::try_current().is_ok() => {
                Either::Left(tokio::time::sleep_until(at))
            }
            _ => Either::Right(pending()),
        }
    }
}

impl Display for Deadline {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        match self.at() {
            Some(at) => write!(formatter, "{:?}", at.duration_since(self.started)),
            None => formatter.write_str("no deadline"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_earlier_limit_wins_and_huge_ones_never_pass() {
        let deadline = Deadline::after(Duration::from_secs(5));
        deadline.or_after(Duration::from_secs(1)).passed().await;
        assert!(!deadline.has_passed());
        deadline.passed().await;
        assert!(deadline.has_passed());
        assert!(!Deadline::after(Duration::MAX).has_passed());
        assert!(Deadline::after(Duration::ZERO).has_passed());
    }
    #[tokio::test(start_paused = true)]
    async fn only_a_deadline_without_any_time_is_a_try() {
        assert!(Deadline::after(Duration::ZERO).is_immediate());
        assert!(Deadline::after(Duration::ZERO).or_after(Duration::from_secs(1)).is_immediate());
        assert!(!Deadline::after(Duration::from_nanos(1)).is_immediate());
        // A limit that has ended at once is a wait that is over, not a try.
        assert!(!Deadline::never().or_after(Duration::ZERO).is_immediate());
    }
}
