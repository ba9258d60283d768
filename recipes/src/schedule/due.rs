//! The head of the queue: it reads the records, waits until a slot is due, and returns it.

use lockkeeper_core::{
    ConnectionManager, Deadline, Error, Hold, HoldExt, LockQueue, Once, ReadResult, ZnodePath,
};
use tracing::debug;

use super::decide::{SlotDecision, sleep_for};
use super::error::waiting_for_slot;
use super::handle::Schedule;
use super::slot::SlotHold;
use super::{Slot, record};
use crate::lock::at_head::{AtHead, HeadLimit, NotTaken};

/// The number of records that are kept. Only the newest one decides; the others are for people.
const RECORDS_KEPT: usize = 10;

/// More records than this are deleted even if a slot is due. Otherwise a schedule that is always late would
/// keep all of them.
const RECORDS_MAX: usize = 2 * RECORDS_KEPT;

impl AtHead for Schedule {
    type Taken = Slot;

    fn manager(&self) -> &ConnectionManager {
        self.queue.manager()
    }

    fn path(&self) -> &ZnodePath {
        &self.path
    }

    fn queue(&self, _: Deadline) -> LockQueue {
        self.queue.clone()
    }

    /// Waits until a slot is due.
    async fn decide(&self, slot: &mut Option<Hold>, limit: HeadLimit) -> Result<Slot, NotTaken> {
        let hold = slot.take().ok_or(NotTaken::Restart)?;
        self.next_due(hold, limit).await
    }
}

impl Schedule {
    async fn next_due(&self, mut hold: Hold, limit: HeadLimit) -> Result<Slot, NotTaken> {
        let deadline = limit.deadline;
        loop {
            let names = match hold.read(deadline).await?.into_iter().next() {
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
            let now = hold.server_time(deadline).await?;
            match self.slots.decide(records.last().copied(), now.max(0).unsigned_abs(), self.missed) {
                SlotDecision::Begin { slot } => self.begin(&hold, slot).await?,
                SlotDecision::Due { slot, missed } => {
                    let (slots, by) = (self.records.clone(), self.queue.node_data().to_vec());
                    return Ok(Slot::new(SlotHold { hold, slot, missed, slots, by }));
                }
                SlotDecision::Wait { millis } if !limit.waits => return Err(waiting_for_slot(millis).into()),
                SlotDecision::Wait { millis } => {
                    self.delete_old(&records).await;
                    tokio::select! {
                        biased;
                        lost = hold.lost() => return Err(Error::Lost(lost).into()),
                        () = deadline.passed() => return Err(waiting_for_slot(millis).into()),
                        () = tokio::time::sleep(sleep_for(millis)) => {}
                    }
                }
            }
        }
    }

    /// Records that the schedule begins: the slot that has begun already is not due.
    async fn begin(&self, hold: &Hold, slot: u64) -> Result<(), NotTaken> {
        let path = self.records.child(&record::name(slot)).map_err(Error::from)?;
        let data = record::encode_begin(self.queue.node_data());
        match hold.txn().once(&path).with_data(data).commit().await {
            Ok(Once::Committed(_) | Once::Before) => Ok(()),
            // The next head lists what became of it.
            Err(error) if error.is_transient() || error.outcome_unknown() => Err(NotTaken::Restart),
            Err(error) => Err(NotTaken::Failed(error.into())),
        }
    }

    /// Deletes the oldest records. The newest one decides, so a delete that fails is left to the next head.
    async fn delete_old(&self, records: &[u64]) {
        let old = records.len().saturating_sub(RECORDS_KEPT);
        for slot in records.iter().take(old) {
            let Ok(path) = self.records.child(&record::name(*slot)) else { return };
            if let Err(error) = self.manager().znodes().delete(&path).await {
                debug!(path = %self.manager().whole_path(&path), %error, "an old record of a slot is left");
                return;
            }
        }
    }
}
