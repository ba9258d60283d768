use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use serde_json::{Value, json};

/// Times of one kind, in microseconds.
#[derive(Debug)]
pub(crate) struct Times(Histogram<u64>);

impl Times {
    pub(crate) fn new() -> Self {
        // One minute is longer than anything measured here.
        let histogram = Histogram::new_with_max(60_000_000, 3);
        Self(histogram.unwrap_or_else(|_| unreachable!("the bounds are constants that fit")))
    }

    pub(crate) fn add(&mut self, time: Duration) {
        self.0.saturating_record(u64::try_from(time.as_micros()).unwrap_or(u64::MAX));
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        // The same bounds everywhere.
        let _ = self.0.add(&other.0);
    }

    pub(crate) fn count(&self) -> u64 {
        self.0.len()
    }

    pub(crate) fn report(&self) -> Value {
        json!({
            "count": self.0.len(),
            "p50": self.0.value_at_quantile(0.5),
            "p99": self.0.value_at_quantile(0.99),
            "max": self.0.max(),
        })
    }
}

/// The present instant. A plain stopwatch: nobody suspends a machine in the middle of a measurement.
#[expect(clippy::disallowed_methods, reason = "a measurement, on which nothing is built")]
pub(crate) fn now() -> Instant {
    Instant::now()
}
