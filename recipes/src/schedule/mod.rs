//! Work that is done once per interval, by one of many processes.
//!
//! # Protocol
//!
//! The processes wait in one queue, an inner mutex at `<path>/locks`. The head of the queue lists
//! `<path>/slots`, where each slot that was done has a persistent node. Then it asks the servers for the time
//! by a write to its own node: no local clock decides. If a slot is due, the head does the work under its
//! hold. One transaction checks the node of the hold, applies the writes of the work, and creates the record
//! of the slot. Then the head leaves the queue, and the next head waits for the next slot.
//!
//! # Why no slot is done twice
//!
//! The name of a record is the time of its slot, so the servers create it once. Its transaction is applied
//! only while the node of the hold exists. So it is applied before that node is deleted, and the next head
//! lists the records after that. No clock is part of the argument: a clock decides only when a slot begins.
//!
//! Sources: kazoo's `NonBlockingLease`, which trusts the clocks of its clients.

mod decide;
mod due;
mod error;
#[cfg(any(test, lockkeeper_fuzzing))]
pub(crate) mod fuzzing;
mod handle;
mod inspect;
mod record;
mod slot;

pub use self::decide::Missed;
pub use self::error::ScheduleError;
pub use self::handle::Schedule;
pub use self::inspect::ScheduleInspection;
pub use self::record::SlotRecord;
pub use self::slot::Slot;
