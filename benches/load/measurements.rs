//! Times, and what is said of them.

use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use parking_lot::Mutex;
use serde_json::Value;

/// Longer than anything that is measured here: two minutes.
const LONGEST_NANOSECONDS: u64 = 120_000_000_000;

/// Times of one kind. Written by all workers: one for all of them, so that it does not count as memory of
/// each.
#[derive(Debug)]
pub(crate) struct Times(Mutex<Histogram<u64>>);

impl Times {
    pub(crate) fn new() -> Self {
        let histogram = Histogram::new_with_max(LONGEST_NANOSECONDS, 3);
        Self(Mutex::new(histogram.unwrap_or_else(|_| unreachable!("the bounds are constants that fit"))))
    }

    pub(crate) fn add(&self, time: Duration) {
        self.0.lock().saturating_record(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    }

    /// The time within which `quantile` of all were, in microseconds; `null` where nothing was timed.
    #[expect(clippy::cast_precision_loss, reason = "microseconds with one decimal, for people to read")]
    pub(crate) fn at(&self, quantile: f64) -> Value {
        let times = self.0.lock();
        if times.is_empty() {
            return Value::Null;
        }
        ((times.value_at_quantile(quantile) as f64 / 100.0).round() / 10.0).into()
    }
}

/// The operations of all workers in the measured time.
#[derive(Debug)]
pub(crate) struct Measurements {
    pub(crate) acquire: Times,
    pub(crate) release: Times,
    /// From a holder's call of release to the next holder's grant.
    pub(crate) handover: Times,
}

impl Measurements {
    pub(crate) fn new() -> Self {
        Self { acquire: Times::new(), release: Times::new(), handover: Times::new() }
    }

    pub(crate) fn add(&self, lap: Lap) {
        self.acquire.add(lap.acquire);
        if let Some(release) = lap.release {
            self.release.add(release);
        }
        if let Some(handover) = lap.handover {
            self.handover.add(handover);
        }
    }
}

/// The times of one operation.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Lap {
    pub(crate) acquire: Duration,
    pub(crate) release: Option<Duration>,
    pub(crate) handover: Option<Duration>,
}

/// The present instant. A plain stopwatch: a machine is not suspended in the middle of a measurement.
#[expect(clippy::disallowed_methods, reason = "a measurement, on which nothing is built")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_in_microseconds_and_of_nothing_there_are_none() {
        let times = Times::new();
        assert_eq!(times.at(0.5), Value::Null);
        for microseconds in 1..=100 {
            times.add(Duration::from_micros(microseconds));
        }
        let near = |quantile, expected: f64| (times.at(quantile).as_f64().unwrap() - expected).abs() < 0.5;
        assert!(near(0.5, 50.0) && near(0.99, 99.0), "{} {}", times.at(0.5), times.at(0.99));
    }
}
