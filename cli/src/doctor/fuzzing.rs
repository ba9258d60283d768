use super::words::{Answers, Report};
use crate::escape::is_printable;

/// What a server answers to the five words, each behind a NUL character.
pub(crate) fn reports(text: &str) {
    let mut answers = text.split('\0').map(str::to_owned);
    let mut next = || answers.next().unwrap_or_default();
    let answers = Answers { srvr: next(), conf: next(), mntr: next(), dump: next(), cons: next() };
    let report = Report::of("zk1:2181", &answers);
    // What is printed does nothing to a terminal.
    let parts = report.failure.iter().chain(&report.mode).chain(report.clients.keys());
    for part in parts.chain(report.sessions.keys()) {
        assert!(part.chars().all(is_printable), "{part:?}");
    }
    let connections: u64 = report.clients.values().sum();
    assert!(connections <= answers.cons.lines().count() as u64);
    for key in report.metrics.keys().chain(report.configuration.keys()) {
        report.metric(key);
        report.configured(key);
    }
}
