//! A message that waits in a proxy for the test's decision.

use super::record::Record;
use super::rule::{Judgement, Rule};
use super::tap::Tap;

/// Logs the message as dropped if its connection ends before the decision: then it is never delivered.
#[derive(Debug)]
pub(crate) struct Held<'a> {
    tap: &'a Tap,
    rule: &'a Rule,
    record: Option<Record>,
}

impl<'a> Held<'a> {
    pub(crate) fn new(tap: &'a Tap, rule: &'a Rule, record: Record) -> Self {
        rule.strike(record.clone());
        Self { tap, rule, record: Some(record) }
    }

    pub(crate) async fn judged(mut self) -> Judgement {
        let judgement = self.rule.judged().await;
        self.record = None;
        judgement
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        if let Some(record) = self.record.take() {
            self.rule.strike(self.tap.dropped(record));
        }
    }
}
