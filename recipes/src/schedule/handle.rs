use std::time::Duration;

use lockkeeper_core::{
    ConfigError, ConnectionManager, Deadline, Error, IntoPath, Label, LockQueue, Read, Rule, ZnodePath,
};

use super::decide::{Missed, Slots};
use super::record;
use super::slot::Slot;
use crate::limits;
use crate::lock::at_head;

/// Work that is done once per interval over the whole fleet, whichever process does it.
///
/// Each process calls [`due`](Self::due) in a loop. It returns a [`Slot`] to one process at a time, when the
/// slot begins by the servers' clock. The process does the work, and calls [`Slot::done`]: this records the
/// slot, in one transaction with writes of the work. Use it for a nightly report, a clean-up each hour, a
/// heartbeat each second.
///
/// A clone is cheap. Clones, and other objects with the same path in any process, are the same schedule. The
/// path belongs to the schedule alone, and all its users give the same interval, offset and [`Missed`].
///
/// # What is once
///
/// * A slot is recorded as done at most once, and so are the writes that [`Slot::done_with`] commits with it,
///   whatever crashes, pauses or sets its clock.
/// * At most one process has a valid slot at a time.
/// * The work itself may begin again: if a process crashes or loses its session before `done`, the slot is
///   due for another process. For work that must not begin twice, call `done` before it.
///
/// # Ordering and fairness
///
/// Slots are due in the order of time. The processes wait in one queue, first in, first out, so they take
/// turns. While a process does a slot, the later ones wait. The first slot of a new schedule is the first
/// one that begins after the first `due` of any process.
///
/// # Conditions
///
/// A slot is due when the clock of the servers' leader has reached its begin, to within some round trips, or
/// later if every process was busy or gone. If that clock jumps forward, slots begin early; if it is set
/// back, the schedule waits for that much longer. Neither makes a slot due twice.
///
/// # Cost
///
/// A slot that is late costs four round trips: the queue, the time, the record, the release. After each sleep
/// the head of the queue reads the records and the time again: at least once an hour, and more often shortly
/// before the slot. Each other process costs one watch.
///
/// # Session loss
///
/// The slot of an expired session is lost, and due again for another process. Its
/// [`lost()`](crate::Guard::lost) resolves before the server can give the slot to another process. A waiter
/// queues again in the next session.
///
/// # Layout
///
/// `<path>/locks` is an inner mutex. `<path>/slots/<time>` is the record of a slot, persistent, named by the
/// begin of the slot in milliseconds since 1970. Its data is one line, which ends with the node data of the
/// process, and then the result. The ten newest records are kept: older ones are deleted while the head waits
/// for a slot, and whenever there are more than twenty.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = lockkeeper_testserver::TestServer::start().await?;
/// # let servers = server.connect_string();
/// use std::time::Duration;
/// use lockkeeper::{ConnectionManager, Schedule};
/// use lockkeeper::schedule::Missed;
///
/// let manager = ConnectionManager::connect(&servers).await?; // host:port,host:port,…
/// let day = Duration::from_secs(24 * 3600);
/// let two_o_clock = Duration::from_secs(2 * 3600); // UTC
/// let nightly = Schedule::new(&manager, "/schedules/nightly-report", day)?
///     .with_offset(two_o_clock)
///     .with_missed(Missed::CatchUp);
///
/// // `nightly.due().await?` waits for the slot.
/// if let Some(slot) = nightly.try_due().await? {
///     let orders = slot.run(async { 42 }).await?; // dropped if the slot is lost
///     slot.done(format!("{orders} orders")).await?;
/// }
/// println!("{}", nightly.inspect().await?);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Schedule {
    pub(super) queue: LockQueue,
    pub(super) path: ZnodePath,
    /// The directory of the records.
    pub(super) records: ZnodePath,
    pub(super) slots: Slots,
    pub(super) missed: Missed,
}

impl Schedule {
    /// Makes the schedule at `path`, below the manager's chroot, with one slot in each `interval`. Sends
    /// nothing.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] if the path is malformed, or is the root, or if the interval is zero or is no whole
    /// number of milliseconds.
    pub fn new(manager: &ConnectionManager, path: impl IntoPath, interval: Duration) -> Result<Self, Error> {
        let path = limits::own_path(path, "give it a path of its own, such as /schedules/a")?;
        let Some(slots) = Slots::every(interval) else {
            let (name, value, advice) =
                ("interval", format!("{interval:?}"), "take whole milliseconds, one or more");
            return Err(ConfigError::Setting { name, value, advice }.into());
        };
        let records = path.child("slots")?;
        // The name of the longest record.
        records.child(&record::name(u64::MAX))?;
        let queue = LockQueue::new(manager, path.child("locks")?, Label::LOCK, Rule::MUTEX)?
            .with_metric_name("schedule")
            .with_reads(&[Read::Children(records.clone())])?;
        Ok(Self { queue, path, records, slots, missed: Missed::default() })
    }

    /// Sets when slots begin: `offset` after the whole intervals since 1970 in UTC. So a day with an offset
    /// of two hours begins its slots at 02:00 UTC. A week begins on Thursday, as 1970 did. Default: zero. Of
    /// an offset that is longer than the interval, the rest counts.
    #[must_use]
    pub fn with_offset(self, offset: Duration) -> Self {
        Self { slots: self.slots.with_offset(offset), ..self }
    }

    /// Sets what becomes of slots that were not done in time. Default: [`Missed::Skip`].
    #[must_use]
    pub fn with_missed(self, missed: Missed) -> Self {
        Self { missed, ..self }
    }

    /// Sets the data that names this process in the queue and in the records. Default: the manager's node
    /// data, which has the host and the process id.
    #[must_use]
    pub fn with_node_data(self, data: impl Into<Vec<u8>>) -> Self {
        Self { queue: self.queue.with_node_data(data), ..self }
    }

    /// The path of the schedule, below the manager's chroot.
    #[must_use]
    pub fn path(&self) -> &ZnodePath {
        &self.path
    }

    /// The time from the begin of one slot to the begin of the next.
    #[must_use]
    pub fn interval(&self) -> Duration {
        Duration::from_millis(self.slots.interval())
    }

    pub(super) fn manager(&self) -> &ConnectionManager {
        self.queue.manager()
    }

    /// Waits until a slot is due and no other process has it, without a limit of time.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] if the server refuses a node (access list, quota). [`Error::ConflictingKind`] if
    /// another kind of lock uses `<path>/locks`. [`Error::Closed`] after a shutdown has begun.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the position in the queue is lost, and no slot is used up.
    pub async fn due(&self) -> Result<Slot, Error> {
        at_head::acquire(self, Deadline::never()).await
    }

    /// Waits until a slot is due, for at most `timeout`.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`], which names the predecessor, or says when the next slot begins. Otherwise as
    /// [`due`](Self::due).
    ///
    /// # Cancel safety
    ///
    /// As [`due`](Self::due).
    pub async fn due_timeout(&self, timeout: Duration) -> Result<Slot, Error> {
        at_head::acquire(self, Deadline::after(timeout)).await
    }

    /// Returns a slot if one is due now. Returns `None` if none is, and also if any other process is ahead in
    /// the queue, even if that only waits for the next slot.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`] if there was no connection or no answer within the manager's operation timeout.
    /// Otherwise as [`due`](Self::due).
    ///
    /// # Cancel safety
    ///
    /// As [`due`](Self::due).
    pub async fn try_due(&self) -> Result<Option<Slot>, Error> {
        Ok(at_head::try_acquire(self).await?.ok())
    }
}
