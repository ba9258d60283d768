//! The head of the queue: it reads the records, waits until a slot is due, and returns it.

use lockkeeper_core::{Deadline, Error, Hold, Once, Phase, ReadResult};
use tracing::debug;

use super::error::waiting_for_slot;
use super::slot::SlotHold;
use super::slots::{SlotDecision, sleep_for};
use super::{RECORDS_KEPT, RECORDS_MAX, Schedule, Slot, record};

/// The reason why the head has no slot.
#[derive(Debug)]
pub(super) enum NotDue {
    /// The hold of the queue was lost: queue again, at the end.
    Restart,
    /// No slot is due before the deadline.
    NoSlot(Phase),
    /// The call fails.
    Failed(Error),
}

impl From<Error> for NotDue {
    fn from(error: Error) -> Self {
        match error.is_lost() {
            true => Self::Restart,
            false => Self::Failed(error),
        }
    }
}

impl Schedule {
    /// Waits at the head of the queue for a slot. Waits for its begin only if there is a deadline.
    pub(super) async fn until_due(&self, hold: Hold, wait: Option<Deadline>) -> Result<Slot, NotDue> {
        // Until there is a slot, the call queues again after a loss.
        hold.defer_loss_report();
        tokio::select! {
            biased;
            // Polled first at each step.
            () = self.manager().closing() => Err(Error::Closed.into()),
            due = self.next_due(hold, wait) => due,
        }
    }

    async fn next_due(&self, mut hold: Hold, wait: Option<Deadline>) -> Result<Slot, NotDue> {
        let limit = wait.unwrap_or_else(|| Deadline::after(self.manager().operation_timeout()));
        loop {
            let names = match hold.read(limit).await?.into_iter().next() {
                Some(ReadResult::Children { names, .. }) => names,
                _ => Vec::new(),
            };
            // No other contender adds records while this one is the head.
            let mut records: Vec<u64> = names.iter().filter_map(|name| record::slot(name)).collect();
            records.sort_unstable();
            if records.len() > RECORDS_MAX {
                self.delete_old(&records).await;
            }
            // A write to its own node shows the servers' time: no local clock decides.
            let now = hold.server_time(limit).await?;
            match self.slots.decide(records.last().copied(), now.max(0).unsigned_abs(), self.missed) {
                SlotDecision::Begin { slot } => self.begin(&hold, slot).await?,
                SlotDecision::Due { slot, missed } => {
                    let (slots, by) = (self.records.clone(), self.queue.node_data().to_vec());
                    return Ok(Slot::new(SlotHold { hold, slot, missed, slots, by }));
                }
                SlotDecision::Wait { millis } if wait.is_none() => {
                    return Err(NotDue::NoSlot(waiting_for_slot(millis)));
                }
                SlotDecision::Wait { millis } => {
                    self.delete_old(&records).await;
                    tokio::select! {
                        biased;
                        lost = hold.lost() => return Err(Error::Lost(lost).into()),
                        () = limit.passed() => return Err(NotDue::NoSlot(waiting_for_slot(millis))),
                        () = tokio::time::sleep(sleep_for(millis)) => {}
                    }
                }
            }
        }
    }

    /// Records that the schedule begins: the slot that has begun already is not due.
    async fn begin(&self, hold: &Hold, slot: u64) -> Result<(), NotDue> {
        let path = self.records.child(&record::name(slot)).map_err(Error::from)?;
        let data = record::encode_begin(self.queue.node_data());
        match hold.txn().once(&path).with_data(data).commit().await {
            Ok(Once::Committed(_) | Once::Before) => Ok(()),
            // The next head lists what became of it.
            Err(error) if error.is_transient() || error.outcome_unknown() => Err(NotDue::Restart),
            Err(error) => Err(NotDue::Failed(error.into())),
        }
    }

    /// Deletes the oldest records. The newest one decides, so a delete that fails is left to the next head.
    async fn delete_old(&self, records: &[u64]) {
        let old = records.len().saturating_sub(RECORDS_KEPT);
        for slot in records.iter().take(old) {
            let Ok(path) = self.records.child(&record::name(*slot)) else { return };
            if let Err(error) = self.manager().znodes().delete(&path).await {
                debug!(path = path.as_str(), %error, "an old record of a slot is left");
                return;
            }
        }
    }
}
