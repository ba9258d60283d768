use std::time::Duration;

use backoff::ExponentialBackoffBuilder;
use backoff::backoff::Backoff;

/// The pauses between retries: of opening a new session, and of deleting nodes in the background.
///
/// The pause doubles from `initial` to `max`. Each pause is varied randomly by up to half of itself, so that
/// many processes do not retry at the same instants. The number of retries is not limited: a deadline or the
/// end of the session ends them.
///
/// This is the only file that names the `backoff` crate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    initial: Duration,
    max: Duration,
    /// Whether the pauses are varied randomly.
    varied: bool,
}

impl RetryPolicy {
    /// Pauses from `initial` up to `max`. Default: 50 ms up to 5 s. The least `initial` is 1 ms, and the
    /// least `max` is `initial`.
    #[must_use]
    pub fn exponential(initial: Duration, max: Duration) -> Self {
        let initial = initial.max(Duration::from_millis(1));
        Self { initial, max: max.max(initial), varied: true }
    }

    /// The same pauses without random variation.
    #[cfg(any(test, feature = "__simulation"))]
    pub(crate) fn in_step(self) -> Self {
        Self { varied: false, ..self }
    }

    pub(crate) fn start(&self) -> RetryPauses {
        let backoff = ExponentialBackoffBuilder::new()
            .with_initial_interval(self.initial)
            .with_max_interval(self.max)
            .with_multiplier(2.0)
            .with_randomization_factor(if self.varied { 0.5 } else { 0.0 })
            .with_max_elapsed_time(None)
            .build();
        RetryPauses { backoff, max: self.max }
    }
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self::exponential(Duration::from_millis(50), Duration::from_secs(5))
    }
}

/// The pauses of one sequence of retries.
#[derive(Debug)]
pub(crate) struct RetryPauses {
    backoff: backoff::ExponentialBackoff,
    max: Duration,
}

impl RetryPauses {
    pub(crate) fn next(&mut self) -> Duration {
        self.backoff.next_backoff().unwrap_or(self.max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_the_limit_and_never_end() {
        let (initial, max) = (Duration::from_millis(10), Duration::from_millis(200));
        let mut pauses = RetryPolicy::exponential(initial, max).start();
        let row: Vec<Duration> = (0..50).map(|_| pauses.next()).collect();
        assert!(row.iter().all(|pause| *pause >= initial / 2 && *pause <= max * 3 / 2));
        assert!(row.iter().skip(10).all(|pause| *pause >= max / 2));
    }

    #[test]
    fn too_short_pauses_are_raised() {
        assert_eq!(
            RetryPolicy::exponential(Duration::ZERO, Duration::ZERO),
            RetryPolicy::exponential(Duration::from_millis(1), Duration::from_millis(1))
        );
    }
}
