use std::future::Future;
use std::panic::Location;
use std::time::Duration;

use lockkeeper_core::{Deadline, Error, Ticket};

use super::guard::AcquiredAt;

/// A position in the queue of a lock, made by the lock's `enqueue`.
/// [`MutexTicket`](crate::mutex::MutexTicket),
/// [`ReentrantTicket`](crate::reentrant_mutex::ReentrantTicket),
/// [`ReadTicket`](crate::rw_lock::ReadTicket), [`WriteTicket`](crate::rw_lock::WriteTicket) and
/// [`SemaphoreTicket`](crate::semaphore::SemaphoreTicket) are tickets.
///
/// The ticket keeps its position until it is dropped: after a wait that timed out or was dropped, call `wait`
/// again. A drop of the ticket leaves the queue, and leaves no node behind. When no contender that excludes
/// it is ahead, a ticket that nobody waits on blocks the contenders behind it, as a guard does: wait soon, or
/// drop the ticket.
///
/// # Session loss
///
/// The position is lost with its session. A wait takes a new position in the next session, at the end of the
/// queue.
#[derive(Debug)]
#[must_use = "a ticket that is not kept leaves the queue at once"]
pub struct QueueTicket<Q>(Q);

/// The part of a ticket that belongs to its lock. Sealed. It is the bound of a function that takes the ticket
/// of any lock: see [`Guard`](crate::Guard).
pub trait Queued: QueueWait {}

impl<Q: QueueWait> Queued for Q {}

/// The crate-private side of [`Queued`].
pub trait QueueWait {
    /// The guard that a wait returns.
    type Guard: AcquiredAt;

    /// The number of contenders ahead at the last list.
    fn position(&self) -> Option<u32>;

    /// The position in the queue. `None` if the contender needs none now.
    fn ticket(&mut self) -> Option<&mut Ticket>;

    /// Waits for the lock.
    fn wait(&mut self, deadline: Deadline) -> impl Future<Output = Result<Self::Guard, Error>> + Send;
}

impl<Q: Queued> QueueTicket<Q> {
    pub(crate) fn of(queued: Q) -> Self {
        Self(queued)
    }

    /// The number of contenders ahead at the last list, for a reader the number of writers: 0 at the head of
    /// the queue, and for an owner that holds the lock. `None` if no list is known.
    #[must_use]
    pub fn position(&self) -> Option<u32> {
        self.0.position()
    }

    /// Lists the queue now, and returns the number of contenders ahead, for a reader the number of writers.
    /// One round trip. If the position is lost, the ticket takes a new one at the end of the queue.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`] if there was no connection or no answer within the manager's operation timeout.
    /// Otherwise as the lock's `acquire`. The ticket keeps its position.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the ticket keeps its position.
    pub async fn refresh(&mut self) -> Result<u32, Error> {
        let Some(ticket) = self.0.ticket() else { return Ok(0) };
        let limit = Deadline::after(ticket.manager().operation_timeout());
        ticket.refresh(limit).await
    }

    /// Waits for the lock, without a limit of time. After it has returned a guard, another call takes a new
    /// position.
    ///
    /// # Errors
    ///
    /// As the lock's `acquire`. A semaphore's contender that can never be granted
    /// ([`SemaphoreError::TooManyPermits`](crate::semaphore::SemaphoreError::TooManyPermits),
    /// [`SemaphoreError::LimitsDisagree`](crate::semaphore::SemaphoreError::LimitsDisagree)) has left the
    /// queue, so that it blocks no other.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the ticket keeps its position. There is one exception, for permits of a semaphore: if the
    /// future is dropped during the transaction that takes them, the position is lost. No node is left
    /// behind.
    #[track_caller]
    pub fn wait(&mut self) -> impl Future<Output = Result<Q::Guard, Error>> {
        let place = Location::caller();
        async move { Ok(self.0.wait(Deadline::never()).await?.acquired_at(place)) }
    }

    /// Waits for the lock, for at most `timeout`.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`], which names the predecessor, or the number of free permits; the ticket keeps its
    /// position, unless the time passes during the transaction that takes permits. Otherwise as
    /// [`wait`](Self::wait).
    ///
    /// # Cancel safety
    ///
    /// As [`wait`](Self::wait).
    #[track_caller]
    pub fn wait_timeout(&mut self, timeout: Duration) -> impl Future<Output = Result<Q::Guard, Error>> {
        let place = Location::caller();
        async move { Ok(self.0.wait(Deadline::after(timeout)).await?.acquired_at(place)) }
    }
}
