//! The line that a run prints.

use serde_json::{Map, Value};

use crate::arguments::Arguments;
use crate::counters::resident;
use crate::measurements::Measurements;

/// Name and value pairs, at last one line of JSON.
#[derive(Debug)]
pub(crate) struct Report(Map<String, Value>);

impl Report {
    /// Of what `measurements` holds, at a cost of `cost`.
    pub(crate) fn new(
        arguments: &Arguments,
        measurements: &Measurements,
        cost: Map<String, Value>,
        violations: u64,
        stuck: usize,
    ) -> Self {
        let mut report = Self(cost);
        let peer = match arguments.word("by") {
            _ if arguments.scenario() == "bare" => "bare",
            "" => "lockkeeper",
            by => by,
        };
        report.set("peer", peer);
        report.set("scenario", arguments.scenario());
        report.set("params", arguments.params());
        report.set("acq_p50_us", measurements.acquire.at(0.5));
        report.set("acq_p99_us", measurements.acquire.at(0.99));
        report.set("rel_p50_us", measurements.release.at(0.5));
        report.set("rel_p99_us", measurements.release.at(0.99));
        report.set("handover_p50_us", measurements.handover.at(0.5));
        report.set("handover_p99_us", measurements.handover.at(0.99));
        report.set("rss_kb", resident());
        report.set("violations", violations);
        report.set("stuck_workers", stuck);
        report
    }

    pub(crate) fn set(&mut self, name: &str, value: impl Into<Value>) {
        self.0.insert(name.to_owned(), value.into());
    }

    /// Whether exclusion or capacity was broken.
    pub(crate) fn is_broken(&self) -> bool {
        self.0.get("violations").and_then(Value::as_u64) != Some(0)
    }

    pub(crate) fn line(&self) -> String {
        Value::Object(self.0.clone()).to_string()
    }
}
