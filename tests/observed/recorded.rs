//! A recorder for the thread of one test.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use lockkeeper_tests::{Timing, eventually};
use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};

/// The records since its creation: the samples of histograms, the sums of all others.
pub(crate) struct Recorded {
    snapshotter: Snapshotter,
    values: RefCell<BTreeMap<String, Vec<f64>>>,
}

/// Every task of the test must run on its thread.
pub(crate) fn recorder() -> (DebuggingRecorder, Recorded) {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    (recorder, Recorded { snapshotter, values: RefCell::default() })
}

impl Recorded {
    fn refresh(&self) {
        let mut values = self.values.borrow_mut();
        for (key, _, _, value) in self.snapshotter.snapshot().into_vec() {
            let labels: Vec<String> =
                key.key().labels().map(|label| format!("{}={}", label.key(), label.value())).collect();
            let name = format!("{} {}", key.key().name(), labels.join(" "));
            let series = values.entry(name.trim_end().to_owned()).or_default();
            // A snapshot removes all records.
            match value {
                DebugValue::Histogram(samples) => series.extend(samples.iter().map(|sample| sample.0)),
                DebugValue::Gauge(change) => add(series, change.0),
                DebugValue::Counter(count) => add(series, f64::from(u32::try_from(count).unwrap())),
            }
        }
    }

    /// `series` is a metric's name and its labels, as in `name a=b c=d`.
    pub(crate) fn samples(&self, series: &str) -> Vec<f64> {
        self.refresh();
        self.values.borrow().get(series).cloned().unwrap_or_default()
    }

    /// The durations of the waits for a mutex with this result.
    pub(crate) fn waits(&self, outcome: &str) -> Vec<f64> {
        self.samples(&format!("lockkeeper_wait_seconds recipe=mutex outcome={outcome}"))
    }

    /// The number of waits for a mutex by result: granted, busy, timeout, cancelled, error.
    pub(crate) fn waited(&self) -> [usize; 5] {
        ["granted", "busy", "timeout", "cancelled", "error"].map(|outcome| self.waits(outcome).len())
    }

    /// The number of holds of a mutex by their end: released, dropped, lost, unconfirmed.
    pub(crate) fn held(&self) -> [usize; 4] {
        ["released", "dropped", "lost", "unconfirmed"].map(|outcome| {
            self.samples(&format!("lockkeeper_hold_seconds recipe=mutex outcome={outcome}")).len()
        })
    }

    /// The value of a gauge or a counter; 0 when there is none.
    pub(crate) fn value(&self, series: &str) -> f64 {
        self.samples(series).last().copied().unwrap_or_default()
    }

    /// Every series there is.
    pub(crate) fn series(&self) -> Vec<String> {
        self.refresh();
        self.values.borrow().keys().cloned().collect()
    }

    /// The names that were described.
    pub(crate) fn described(&self) -> BTreeSet<String> {
        let snapshot = self.snapshotter.snapshot().into_vec();
        let described = snapshot.into_iter().filter(|(_, unit, text, _)| unit.is_some() && text.is_some());
        described.map(|(key, ..)| key.key().name().to_owned()).collect()
    }

    pub(crate) async fn becomes(&self, series: &str, value: f64) {
        let seen = async || (self.value(series) == value).then_some(());
        let became = eventually(format!("{series} is {value}"), Timing::settle(), seen).await;
        became.unwrap_or_else(|error| panic!("{error}; there are {:?}", self.values.borrow()));
    }
}

fn add(sum: &mut Vec<f64>, change: f64) {
    *sum = vec![sum.first().copied().unwrap_or_default() + change];
}
