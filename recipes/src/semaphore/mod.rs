//! Several holders at a time, up to a limit.
//!
//! # Protocol
//!
//! The contenders for permits wait in one queue, an inner mutex at `<path>/locks`. The head of the queue
//! lists `<path>/leases`, where each permit in use is a node, and waits until there is room. Then one
//! transaction creates its leases and deletes its node in the queue, so the next head lists a state that
//! includes them.
//!
//! The queue is listed *before* the leases. In the other order, the predecessor could take the last permit
//! and leave the queue between the two lists, and both contenders would be granted. A read behind the list of
//! the queue, in the same round trip, is a read by the head of the queue. After it, only releases change the
//! leases.
//!
//! There is one exception: Curator's client can make a lease without a node in the queue, after its session
//! has ended. The sequence numbers of the new leases show whether that happened (`continuity`). If it did,
//! or if the numbers prove nothing, the leases are listed once more behind the transaction.
//!
//! A head tells its successor, if that is of this process, an upper bound of the permits in use. The
//! successor lists only if this bound leaves no room: no other contender takes permits in between, and
//! releases make the number smaller.
//!
//! Source: Curator's `InterProcessSemaphoreV2`, which has the same layout. It takes `n` leases one by one, so
//! two callers can block each other; here one transaction takes all of them.

mod acquire;
mod continuity;
mod decide;
mod encoding;
mod error;
#[cfg(any(test, lockkeeper_fuzzing))]
pub(crate) mod fuzzing;
mod handle;
mod inspect;
mod lease;
mod lending;
mod limit;
mod own_contenders;
mod permit_acquire;
mod permit_entry;
mod permits;
mod shared_limit;
#[cfg(test)]
mod tests;
mod ticket;

pub use self::error::SemaphoreError;
pub use self::handle::Semaphore;
pub use self::lease::Lease;
pub(crate) use self::lease::PermitsHold;
pub use self::permits::Permits;
pub use self::shared_limit::SharedLimit;
pub(crate) use self::ticket::SemaphoreQueued;
pub use self::ticket::SemaphoreTicket;
