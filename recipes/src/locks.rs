//! What belongs to the locks beside the locks and their guards: tickets, sides, permits, and the bounds of
//! functions that take any guard or ticket.
//!
//! A ticket is a position in the queue of a lock: take it now, and wait for the lock later.

#[doc(inline)]
pub use crate::lock::{HoldSet, QueueTicket, Queued, SingleHold, ZooKeeperLock};
#[doc(inline)]
pub use crate::multi_lock::MultiLockBuilder;
#[doc(inline)]
pub use crate::mutex::MutexTicket;
#[doc(inline)]
pub use crate::reentrant_mutex::ReentrantTicket;
#[doc(inline)]
pub use crate::rw_lock::{ReadTicket, RwLockSide, WriteTicket};
#[doc(inline)]
pub use crate::semaphore::{Permits, SemaphoreTicket, SharedLimit};
#[doc(inline)]
pub use lockkeeper_core::Deadline;
