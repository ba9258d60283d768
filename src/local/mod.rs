//! The local queues of a session, and the execution of their effects.
//!
//! [`LocalQueue`] decides. Each local queue has a lock here. The requests whose order matters are sent while
//! the lock is held. The decisions of the queue are noted in the entries under the same lock, and their
//! contenders are woken after the lock is released.

mod create;
pub(crate) mod decide;
mod directory_watch;
mod entry;
mod exchange;
#[cfg(test)]
mod idle_test;
mod last_list;
mod local_node;
mod local_queues;
mod missing_czxid;
mod shared_queue;

pub(crate) use self::create::{JudgedCreate, PendingCreate};
pub(crate) use self::entry::{LocalWait, QueueEntry};
pub(crate) use self::exchange::ExchangeInFlight;
pub(crate) use self::local_node::{HandOffPayload, LocalNode, LocalWake};
pub(crate) use self::local_queues::LocalQueues;
