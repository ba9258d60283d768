//! [`Schedule`].

use std::time::{Duration, SystemTime};

use futures::future::BoxFuture;
use lockkeeper::schedule::{Missed, Slot};
use lockkeeper::{Error, Hold, ReleaseError, Schedule, Txn};

use crate::{AcquireMode, Adapter, DueSlot, Grant, Granted, Taking, Target};

/// Short, so that the queue decides more often than the clock.
const INTERVAL: Duration = Duration::from_millis(150);

/// The next slot begins, and the head of the queue reads the time then: some round trips.
const TIME_PER_SLOT: u64 = 1_500;

/// A slot that is done when it is released.
#[derive(Clone, Copy, Debug)]
pub struct DoSlot(pub Missed);

impl Adapter for DoSlot {
    fn take(&self, target: Target, mode: AcquireMode) -> Taking {
        let missed = self.0;
        Box::pin(async move {
            let schedule =
                Schedule::new(&target.manager, target.path.as_str(), INTERVAL)?.with_missed(missed);
            let slot = match mode {
                AcquireMode::Wait => Some(schedule.due().await?),
                AcquireMode::WaitAtMost(limit) => Some(schedule.due_timeout(limit).await?),
                AcquireMode::Try => schedule.try_due().await?,
            };
            Ok(slot.map(|slot| Box::new(Due { slot, path: target.path }) as Granted))
        })
    }

    fn time_per_grant(&self) -> u64 {
        TIME_PER_SLOT
    }
}

/// A slot that is due.
#[derive(Debug)]
struct Due {
    slot: Slot,
    path: String,
}

impl Grant for Due {
    fn holds(&self) -> Vec<&Hold> {
        vec![self.slot.hold()]
    }

    fn release(self: Box<Self>) -> BoxFuture<'static, Result<(), ReleaseError>> {
        Box::pin(async move {
            let (path, hold) = (self.slot.hold().whole_path(), self.slot.check());
            match self.slot.done("").await {
                Ok(()) => hold.map_err(ReleaseError::Lost),
                Err(Error::Lost(lost)) => Err(ReleaseError::Lost(lost)),
                Err(error) => Err(ReleaseError::Unconfirmed { path, cause: error.to_string() }),
            }
        })
    }

    /// The record is written even if the release of the queue is not confirmed.
    fn may_outlive_release(&self) -> bool {
        true
    }

    fn txn(&self) -> Option<Txn<'_>> {
        Some(self.slot.hold().txn())
    }

    fn due_slot(&self) -> Option<DueSlot> {
        let since = self.slot.begins().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Some(DueSlot {
            records: format!("{}/slots", self.path),
            slot: u64::try_from(since.as_millis()).unwrap_or(u64::MAX),
        })
    }
}
