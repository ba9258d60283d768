use std::time::{Duration, SystemTime};

use lockkeeper_core::{Error, IntoPath, ZnodePath};

use super::generic::Blocking;
use super::guard::Guard;
use super::manager::ConnectionManager;
use crate::{Missed, ScheduleInspection, Txn};

/// Work that is done once per interval over the whole fleet, for threads. Everything is as for the async
/// [`Schedule`](crate::Schedule).
///
/// # Examples
///
/// ```
/// # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
/// # let server = runtime.block_on(lockkeeper_testserver::TestServer::start())?;
/// # let manager = lockkeeper::blocking::ConnectionManager::connect(&server.connect_string())?;
/// use std::time::Duration;
/// use lockkeeper::blocking::Schedule;
///
/// let schedule = Schedule::new(&manager, "/schedules/clean-up", Duration::from_millis(50))?;
/// let slot = schedule.due()?;
/// slot.check()?; // between the steps of the work
/// slot.done("3 files")?;
/// assert_eq!(schedule.inspect()?.last().expect("a slot").result(), b"3 files");
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
pub type Schedule = Blocking<crate::Schedule>;

/// A slot of a [`Schedule`] that is due.
pub type Slot = Guard<crate::schedule::SlotHold>;

impl Slot {
    /// When the slot began, by the servers' clock.
    #[must_use]
    pub fn begins(&self) -> SystemTime {
        self.inner.begins()
    }

    /// The number of other slots that have begun and were not done: see
    /// [`Slot::missed`](crate::Slot::missed).
    #[must_use]
    pub fn missed(&self) -> u64 {
        self.inner.missed()
    }

    /// Ends the slot: records that this process has done it, with a `result` of any bytes.
    ///
    /// # Errors
    ///
    /// As [`done_with`](Self::done_with).
    pub fn done(self, result: impl Into<Vec<u8>>) -> Result<(), Error> {
        self.done_with(result, |txn| txn)
    }

    /// As [`done`](Self::done), and commits `writes` in the same transaction.
    ///
    /// # Errors
    ///
    /// [`CannotBlock`](super::CannotBlock) within an async task: the slot is given
    /// up. Otherwise as [`Slot::done_with`](crate::Slot::done_with).
    pub fn done_with(
        self,
        result: impl Into<Vec<u8>>,
        writes: impl for<'a> FnOnce(Txn<'a>) -> Txn<'a>,
    ) -> Result<(), Error> {
        let Self { inner, thread, .. } = self;
        thread.block_checked(inner.done_with(result, writes))?
    }
}

impl Schedule {
    /// Makes the schedule at `path`, below the manager's chroot, with one slot in each `interval`. Sends
    /// nothing.
    ///
    /// # Errors
    ///
    /// As [`Schedule::new`](crate::Schedule::new).
    pub fn new(manager: &ConnectionManager, path: impl IntoPath, interval: Duration) -> Result<Self, Error> {
        Ok(Self::on(manager, crate::Schedule::new(manager.as_async(), path, interval)?))
    }

    /// Sets when slots begin: `offset` after the whole intervals since 1970 in UTC. Default: zero. See
    /// [`Schedule::offset`](crate::Schedule::offset).
    #[must_use]
    pub fn offset(self, offset: Duration) -> Self {
        Self { inner: self.inner.offset(offset), ..self }
    }

    /// Sets what becomes of slots that were not done in time. Default: [`Missed::Skip`].
    #[must_use]
    pub fn missed(self, missed: Missed) -> Self {
        Self { inner: self.inner.missed(missed), ..self }
    }

    /// Sets the data that names this process in the queue and in the records. Default: the manager's node
    /// data, which has the host and the process id.
    #[must_use]
    pub fn node_data(self, data: impl Into<Vec<u8>>) -> Self {
        Self { inner: self.inner.node_data(data), ..self }
    }

    /// The path of the schedule, below the manager's chroot.
    #[must_use]
    pub fn path(&self) -> &ZnodePath {
        self.inner.path()
    }

    /// The time from the begin of one slot to the begin of the next.
    #[must_use]
    pub fn interval(&self) -> Duration {
        self.inner.interval()
    }

    /// Waits until a slot is due and no other process has it, without a limit of time.
    ///
    /// # Errors
    ///
    /// [`CannotBlock`](super::CannotBlock) within an async task. Otherwise as
    /// [`Schedule::due`](crate::Schedule::due).
    pub fn due(&self) -> Result<Slot, Error> {
        self.guard(self.inner.due())
    }

    /// Waits until a slot is due, for at most `timeout`.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`], which names the predecessor, or says when the next slot begins. Otherwise as
    /// [`due`](Self::due).
    pub fn due_timeout(&self, timeout: Duration) -> Result<Slot, Error> {
        self.guard(self.inner.due_timeout(timeout))
    }

    /// Returns a slot if one is due now, and no other process is ahead. Otherwise returns `None`.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`] if there was no connection or no answer within the manager's operation timeout.
    /// Otherwise as [`due`](Self::due).
    pub fn try_due(&self) -> Result<Option<Slot>, Error> {
        self.try_guard(self.inner.try_due())
    }

    /// Returns the last slot that was done, the next one, and the processes that wait for it.
    ///
    /// # Errors
    ///
    /// [`CannotBlock`](super::CannotBlock) within an async task. Otherwise as
    /// [`Schedule::inspect`](crate::Schedule::inspect).
    pub fn inspect(&self) -> Result<ScheduleInspection, Error> {
        self.block(self.inner.inspect())
    }
}
