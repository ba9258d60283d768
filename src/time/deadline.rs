use std::fmt::{self, Display, Formatter};
use std::future::{Future, pending};
use std::time::Duration;

use futures::future::Either;
use tokio::time::Instant;

/// Until when a caller is willing to wait: one point in time for all the steps of an operation.
///
/// This is patience, not safety: it runs on tokio's clock. What a holder may rely on is kept by the lease clock
/// ([`Hold::valid_until`](crate::Hold::valid_until)).
#[derive(Clone, Copy, Debug)]
pub struct Deadline {
    started: Instant,
    /// `None`: wait for as long as it takes.
    at: Option<Instant>,
}

impl Deadline {
    /// No deadline: wait for as long as it takes.
    #[must_use]
    pub fn never() -> Self {
        Self { started: Instant::now(), at: None }
    }

    /// A deadline `timeout` from now. One too far away to count is no deadline.
    #[must_use]
    pub fn after(timeout: Duration) -> Self {
        let started = Instant::now();
        Self { started, at: started.checked_add(timeout) }
    }

    /// The earlier of this deadline and `timeout` from now.
    #[must_use]
    pub fn or_after(self, timeout: Duration) -> Self {
        let limit = Instant::now().checked_add(timeout);
        let at = match (self.at, limit) {
            (Some(own), Some(limit)) => Some(own.min(limit)),
            (own, limit) => own.or(limit),
        };
        Self { started: self.started, at }
    }

    /// Whether it has passed.
    #[must_use]
    pub fn has_passed(self) -> bool {
        self.at.is_some_and(|at| Instant::now() >= at)
    }

    /// Whether no time was given at all: a try, which takes the time that answers take all the same.
    #[must_use]
    pub fn is_immediate(self) -> bool {
        self.at == Some(self.started)
    }

    /// How long ago the wait began.
    #[must_use]
    pub fn waited(self) -> Duration {
        self.started.elapsed()
    }

    /// Resolves when it passes; never, if there is none, or no tokio runtime to tell the time here.
    pub fn passed(self) -> impl Future<Output = ()> + Send {
        match self.at {
            Some(at) if tokio::runtime::Handle::try_current().is_ok() => {
                Either::Left(tokio::time::sleep_until(at))
            }
            _ => Either::Right(pending()),
        }
    }
}

impl Display for Deadline {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        match self.at {
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
}
