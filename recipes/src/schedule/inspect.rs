use std::fmt::{self, Display, Formatter};
use std::time::SystemTime;

use lockkeeper_core::Error;

use super::handle::Schedule;
use super::record::{self, SlotRecord};
use crate::inspection::{InspectedRecipe, Inspection};

const RECIPE: InspectedRecipe = InspectedRecipe { name: "schedule", counted: None };

/// A snapshot of a [`Schedule`]: the last slot that was done, the next one, and the processes.
///
/// `{}` prints it for a terminal, with the table of the processes: see [`Inspection`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduleInspection {
    last: Option<SlotRecord>,
    next: Option<SystemTime>,
    queue: Inspection,
}

impl Schedule {
    /// Returns the last slot that was done, the next one, and the processes that wait for it: a snapshot. It
    /// enters no queue, and needs only the right to read.
    ///
    /// # Errors
    ///
    /// As [`LockQueue::inspect`](lockkeeper_core::LockQueue::inspect): [`Error::Timeout`], [`Error::Refused`]
    /// (no right to read), [`Error::NoAnswer`] (the link broke: call again) and [`Error::Closed`].
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the call changes nothing.
    pub async fn inspect(&self) -> Result<ScheduleInspection, Error> {
        let (manager, path) = (self.manager(), self.path());
        let contenders = self.queue.inspect().await?;
        let queue = Inspection::of(RECIPE, manager, path, None, contenders);
        let names = manager.znodes().children(&self.records).await?.unwrap_or_default();
        let mut slots: Vec<u64> = names.iter().filter_map(|name| record::slot(name)).collect();
        slots.sort_unstable();
        let Some(slot) = slots.pop() else {
            return Ok(ScheduleInspection { last: None, next: None, queue });
        };
        let read = manager.znodes().read(self.records.child(&record::name(slot))?).await?;
        let last = read.and_then(|(data, stat)| SlotRecord::read(slot, &data, &stat));
        Ok(ScheduleInspection { last, next: Some(record::time(self.slots.next(slot))), queue })
    }
}

impl ScheduleInspection {
    /// The last slot that was done. `None` if none was done yet.
    #[must_use]
    pub fn last(&self) -> Option<&SlotRecord> {
        self.last.as_ref()
    }

    /// When the first slot after the last one begins, or began. `None` before the first
    /// [`due`](Schedule::due) of any process. A time in the past means that the slot is late, or is being
    /// done. With [`Missed::Skip`](super::Missed::Skip) a later slot may be due in its place.
    #[must_use]
    pub fn next(&self) -> Option<SystemTime> {
        self.next
    }

    /// The processes: the holder does the slot, or waits for its begin.
    #[must_use]
    pub fn queue(&self) -> &Inspection {
        &self.queue
    }
}

impl Display for ScheduleInspection {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let seconds =
            |time: SystemTime| time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        match &self.last {
            Some(last) => {
                let (slot, done_at, by) = (seconds(last.slot()), seconds(last.done_at()), last.by());
                write!(formatter, "last slot {slot:.3}, done at {done_at:.3} by {}", by.escape_debug())?;
            }
            None => formatter.write_str("no slot was done")?,
        }
        match self.next {
            Some(next) => writeln!(formatter, "; next slot {:.3} (seconds since 1970)", seconds(next))?,
            None => writeln!(formatter, "; not begun")?,
        }
        Display::fmt(&self.queue, formatter)
    }
}
