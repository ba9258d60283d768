use std::time::SystemTime;

use lockkeeper_core::{
    ConnectionManager, Error, Hold, HoldExt, Once, Operation, ReleaseError, Txn, ZnodePath,
};
use tracing::info;

use super::error::ScheduleError;
use super::record;
use crate::lock::{Guard, HoldAccess, HoldRelease};

/// A slot of a [`Schedule`](super::Schedule) that is due: nobody else has it while the slot is valid.
///
/// Do the work, and end it with [`done`](Self::done) or [`done_with`](Self::done_with). A slot that is
/// dropped, [released](Self::release) or lost before that is due again, for whichever process is next.
///
/// # Methods
///
/// Those of every [`Guard`](crate::Guard), and [`begins`](Self::begins), [`missed`](Self::missed),
/// [`done`](Self::done) and [`done_with`](Self::done_with).
pub type Slot = Guard<SlotHold>;

/// The hold of a slot.
#[derive(Debug)]
pub struct SlotHold {
    pub(super) hold: Hold,
    pub(super) slot: u64,
    pub(super) missed: u64,
    /// The directory of the records.
    pub(super) slots: ZnodePath,
    /// The process, for the record.
    pub(super) by: Vec<u8>,
}

impl Slot {
    pub(super) fn new(hold: SlotHold) -> Self {
        hold.hold.report_loss();
        Self::of(hold)
    }

    /// When the slot began, by the servers' clock: at the offset of the schedule and a number of whole
    /// intervals after 1970 in UTC.
    #[must_use]
    pub fn begins(&self) -> SystemTime {
        record::time(self.holds.slot)
    }

    /// The number of other slots that have begun and were not done. With
    /// [`Missed::Skip`](super::Missed::Skip) these are earlier ones, which are never due again. With
    /// [`Missed::CatchUp`](super::Missed::CatchUp) these are later ones, which are due next.
    #[must_use]
    pub fn missed(&self) -> u64 {
        self.holds.missed
    }

    /// Ends the slot: records that this process has done it, with a `result` of any bytes, and lets the next
    /// process wait for the next slot. The slot is never due again.
    ///
    /// Nothing is recorded if the slot was lost. Then it is due again for another process.
    ///
    /// # Errors
    ///
    /// As [`done_with`](Self::done_with).
    ///
    /// # Cancel safety
    ///
    /// As [`done_with`](Self::done_with).
    pub async fn done(self, result: impl Into<Vec<u8>>) -> Result<(), Error> {
        self.done_with(result, |txn| txn).await
    }

    /// As [`done`](Self::done), and commits `writes` in the same transaction: either the slot is recorded as
    /// done and all writes are applied, or nothing. So these writes are applied exactly once for the slot,
    /// whatever crashes.
    ///
    /// A request without an answer is sent again, within the manager's operation timeout: it cannot be
    /// applied twice.
    ///
    /// # Errors
    ///
    /// [`Error::NotCommitted`] if a write was refused, or the slot is lost: nothing was written, and the slot
    /// is due again. [`ScheduleError::DoneByAnother`] after nodes were deleted by hand. [`Error::Unknown`] if
    /// the answer never came, or if the record that it left cannot be read, and [`Error::Timeout`] if no
    /// request was sent: [`Schedule::due`](super::Schedule::due) returns the slot
    /// again if it was not recorded.
    ///
    /// # Cancel safety
    ///
    /// The transaction of a dropped call may be applied. The slot is given up in any case, and due again if
    /// it was not recorded.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = lockkeeper_testserver::TestServer::start().await?;
    /// # let manager = lockkeeper::ConnectionManager::connect(&server.connect_string()).await?;
    /// # manager.znodes().create("/report", b"", lockkeeper::znodes::CreateMode::Persistent).await?;
    /// use std::time::Duration;
    /// use lockkeeper::Schedule;
    /// use lockkeeper::znodes::Version;
    ///
    /// let schedule = Schedule::new(&manager, "/schedules/report", Duration::from_millis(50))?;
    /// let slot = schedule.due().await?;
    /// let report = slot.run(async { b"42 orders".to_vec() }).await?;
    /// slot.done_with("42", |txn| txn.set("/report", report, Version::Any)).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn done_with(
        self,
        result: impl Into<Vec<u8>>,
        writes: impl for<'a> FnOnce(Txn<'a>) -> Txn<'a>,
    ) -> Result<(), Error> {
        let SlotHold { hold, slot, slots, by, .. } = self.holds;
        let path = slots.child(&record::name(slot))?;
        let data = record::encode(hold.fencing_token(), &by, &result.into());
        let once = writes(hold.txn()).once(&path).with_data(data.clone());
        if once.commit().await? == Once::Before {
            require_own(hold.manager(), &path, &data).await?;
        }
        let path = hold.manager().whole_path(&path);
        if let Err(error) = hold.release().await {
            info!(%path, %error, "the slot is recorded; its release is not confirmed");
        }
        Ok(())
    }
}

/// The record exists already. It is an earlier try of ours if it has our token. Without its data nothing says
/// whose it is.
async fn require_own(manager: &ConnectionManager, path: &ZnodePath, data: &[u8]) -> Result<(), Error> {
    let unknown = |cause: String| {
        let (operation, path) = (Operation::Commit, manager.whole_path(path));
        Err(Error::Unknown { operation, path, cause: format!("the record exists, {cause}") })
    };
    match manager.znodes().read(path).await {
        Ok(Some((found, _))) if found == data => Ok(()),
        Ok(Some(_)) => Err(ScheduleError::DoneByAnother { path: manager.whole_path(path) }.into()),
        Ok(None) => unknown("and was deleted before it was read".to_owned()),
        Err(error) => unknown(format!("and cannot be read: {error}")),
    }
}

impl HoldAccess for SlotHold {
    fn first(&self) -> &Hold {
        &self.hold
    }
}

impl HoldRelease for SlotHold {
    async fn into_hold(self) -> Result<Option<Box<Hold>>, ReleaseError> {
        Ok(Some(Box::new(self.hold)))
    }
}
