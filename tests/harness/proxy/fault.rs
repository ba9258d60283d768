//! The test's handle on an armed fault.

use std::sync::Arc;

use super::rule::{Judgement, Rule};
use super::{Fate, Record};
use crate::error::HarnessError;
use crate::timing::{Timing, within};

/// A fault that has happened or will. It stays armed when this is dropped.
#[derive(Clone, Debug)]
pub struct Fault {
    rule: Arc<Rule>,
}

impl Fault {
    pub(crate) fn new(rule: Arc<Rule>) -> Self {
        Self { rule }
    }

    /// Waits until the fault has happened, connection cut and all, and yields the message it struck.
    ///
    /// # Errors
    ///
    /// [`HarnessError::Timeout`] if there is no such message.
    pub async fn triggered(&self) -> Result<Record, HarnessError> {
        self.seen(|_| true).await
    }

    /// Whether the fault has happened.
    #[must_use]
    pub fn has_triggered(&self) -> bool {
        self.rule.struck().borrow().is_some()
    }

    async fn seen(&self, fits: impl Fn(&Record) -> bool) -> Result<Record, HarnessError> {
        let mut struck = self.rule.struck();
        let seen = struck.wait_for(|record| record.as_ref().is_some_and(&fits));
        let record = within("an armed fault strikes", Timing::event(), seen).await?;
        record
            .ok()
            .and_then(|record| record.clone())
            .ok_or_else(|| HarnessError::malformed("a fault whose proxy was dropped"))
    }
}

/// A message that is held back, or will be. Dropping this releases it.
#[derive(Debug)]
#[must_use = "dropping it releases the message"]
pub struct Hold {
    fault: Fault,
}

impl Hold {
    pub(crate) fn new(rule: Arc<Rule>) -> Self {
        Self { fault: Fault::new(rule) }
    }

    /// Waits until the message is held back, and yields it.
    ///
    /// # Errors
    ///
    /// [`HarnessError::Timeout`] if there is no such message.
    pub async fn triggered(&self) -> Result<Record, HarnessError> {
        self.fault.triggered().await
    }

    /// Whether the message is or was held back.
    #[must_use]
    pub fn has_triggered(&self) -> bool {
        self.fault.has_triggered()
    }

    /// Passes the message on. If it has not come by yet, it will pass freely.
    pub fn release(self) {}

    /// Drops the message and cuts its connection, and returns when that is done. If it has not come by yet,
    /// waits for it.
    ///
    /// # Errors
    ///
    /// [`HarnessError::Timeout`] if there is no such message.
    pub async fn drop_and_cut(self) -> Result<Record, HarnessError> {
        self.fault.rule.judge(Judgement::Cut);
        self.fault.seen(|record| record.fate == Fate::Dropped).await
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.fault.rule.release_unless_judged();
    }
}
