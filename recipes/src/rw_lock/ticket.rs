use std::sync::Arc;
use std::time::Duration;

use lockkeeper_core::{Deadline, Error, Ticket};

use super::guard::{ReadGuard, WriteGuard};
use super::lock::RwLock;
use super::reservation::{OwnerReservation, Turn};
use super::side::Side;
use super::slot::SharedSideHold;

/// A reader's position in the queue of an [`RwLock`], made by [`RwLock::enqueue_read`].
///
/// The ticket keeps its position until it is dropped: after a wait that timed out or was dropped, call `wait`
/// again. A drop of the ticket leaves the queue, and leaves no node behind. When no writer is ahead, the
/// ticket blocks the writers behind it, as a guard does: wait soon, or drop the ticket. Meanwhile the other
/// tasks of a named owner wait for the ticket, for reads and for writes.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = lockkeeper_testserver::TestServer::start().await?;
/// # let manager = lockkeeper::ConnectionManager::connect(&server.connect_string()).await?;
/// use lockkeeper::RwLock;
///
/// let lock = RwLock::new(&manager, "/locks/price-list")?;
/// let write = lock.write().await?;
///
/// let mut reader = lock.enqueue_read().await?;
/// let mut writer = lock.enqueue_write().await?;
/// assert_eq!((reader.position(), writer.position()), (Some(1), Some(2)));
/// write.release().await?;
/// reader.wait().await?.release().await?;
/// writer.wait().await?.release().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "a ticket that is not kept leaves the line at once"]
pub struct ReadTicket(SideTicket);

/// A writer's position in the queue of an [`RwLock`], made by [`RwLock::enqueue_write`]. See [`ReadTicket`].
#[derive(Debug)]
#[must_use = "a ticket that is not kept leaves the line at once"]
pub struct WriteTicket(SideTicket);

#[derive(Debug)]
struct SideTicket {
    lock: RwLock,
    side: Side,
    /// `None` if a hold of the owner grants this side at once, or after the guard was returned.
    queued: Option<SideWait>,
}

#[derive(Debug)]
struct SideWait {
    // Dropped in this order: the owner's other tasks go on when the place is given up.
    ticket: Ticket,
    reservation: OwnerReservation,
}

impl RwLock {
    /// Queues as a reader, and does not wait for the grant. An owner that holds the lock needs no position:
    /// its ticket returns the guard at once.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    ///
    /// # Session loss
    ///
    /// The position is lost with its session. A wait takes a new position in the next session, at the end of
    /// the queue.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe at every await: no node is left behind.
    pub async fn enqueue_read(&self) -> Result<ReadTicket, Error> {
        Ok(ReadTicket(SideTicket::take(self, Side::Read).await?))
    }

    /// Queues as a writer, and does not wait for the grant. An owner that holds the lock for writing needs no
    /// position: its ticket returns the guard at once.
    ///
    /// # Errors
    ///
    /// As [`write`](Self::write).
    ///
    /// # Session loss
    ///
    /// As [`enqueue_read`](Self::enqueue_read).
    ///
    /// # Cancel safety
    ///
    /// As [`enqueue_read`](Self::enqueue_read).
    pub async fn enqueue_write(&self) -> Result<WriteTicket, Error> {
        Ok(WriteTicket(SideTicket::take(self, Side::Write).await?))
    }
}

impl ReadTicket {
    /// The number of writers ahead at the last list: 0 for a reader that does not have to wait. `None` if no
    /// list is known.
    #[must_use]
    pub fn position(&self) -> Option<usize> {
        self.0.position()
    }

    /// Lists the queue now, and returns the number of writers ahead. One round trip. If the position is lost,
    /// the ticket takes a new one at the end of the queue.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`] if there was no connection or no answer within the manager's operation timeout.
    /// Otherwise as [`RwLock::read`]. The ticket keeps its position.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the ticket keeps its position.
    pub async fn refresh(&mut self) -> Result<usize, Error> {
        self.0.refresh().await
    }

    /// Waits until no writer is ahead, without a limit of time. After it has returned a guard, another call
    /// takes a new position.
    ///
    /// # Errors
    ///
    /// As [`RwLock::read`].
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the ticket keeps its position.
    pub async fn wait(&mut self) -> Result<ReadGuard, Error> {
        self.0.wait(Deadline::never()).await.map(ReadGuard::on)
    }

    /// As [`wait`](Self::wait), for at most `timeout`.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`], which names the predecessor; the ticket keeps its position. Otherwise as
    /// [`RwLock::read`].
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the ticket keeps its position.
    pub async fn wait_timeout(&mut self, timeout: Duration) -> Result<ReadGuard, Error> {
        self.0.wait(Deadline::after(timeout)).await.map(ReadGuard::on)
    }
}

impl WriteTicket {
    /// The number of readers and writers ahead at the last list: 0 at the head of the queue. `None` if no
    /// list is known.
    #[must_use]
    pub fn position(&self) -> Option<usize> {
        self.0.position()
    }

    /// As [`ReadTicket::refresh`].
    ///
    /// # Errors
    ///
    /// As [`ReadTicket::refresh`].
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the ticket keeps its position.
    pub async fn refresh(&mut self) -> Result<usize, Error> {
        self.0.refresh().await
    }

    /// Waits until no contender is ahead, without a limit of time. After it has returned a guard, another
    /// call takes a new position.
    ///
    /// # Errors
    ///
    /// As [`RwLock::write`].
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the ticket keeps its position.
    pub async fn wait(&mut self) -> Result<WriteGuard, Error> {
        self.0.wait(Deadline::never()).await.map(WriteGuard::on)
    }

    /// As [`wait`](Self::wait), for at most `timeout`.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`], which names the predecessor; the ticket keeps its position. Otherwise as
    /// [`RwLock::write`].
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the ticket keeps its position.
    pub async fn wait_timeout(&mut self, timeout: Duration) -> Result<WriteGuard, Error> {
        self.0.wait(Deadline::after(timeout)).await.map(WriteGuard::on)
    }
}

impl SideTicket {
    async fn take(lock: &RwLock, side: Side) -> Result<Self, Error> {
        // Its owner, whatever is in scope where it is waited for.
        let owner = lock.owner();
        let lock = lock.for_owner(&owner);
        let reservation = OwnerReservation::of(&lock, &owner, Deadline::never()).await?;
        let queued = match reservation.turn(side)? {
            Turn::Queue => {
                let ticket = lock.queue_of(&owner, side).enqueue(Deadline::never()).await?;
                Some(SideWait { ticket, reservation })
            }
            Turn::Again(_) | Turn::Beside(_) => None,
        };
        Ok(Self { lock, side, queued })
    }

    fn position(&self) -> Option<usize> {
        match &self.queued {
            Some(queued) => queued.ticket.position(),
            None => Some(0),
        }
    }

    async fn refresh(&mut self) -> Result<usize, Error> {
        match &mut self.queued {
            Some(queued) => queued.ticket.refresh(self.lock.limit()).await,
            None => Ok(0),
        }
    }

    async fn wait(&mut self, deadline: Deadline) -> Result<Arc<SharedSideHold>, Error> {
        let held = match &mut self.queued {
            Some(queued) => Some(queued.ticket.wait(deadline).await?),
            None => None,
        };
        match (held, self.queued.take()) {
            (Some(held), Some(SideWait { reservation, .. })) => Ok(reservation.enter(self.side, held)),
            // The owner holds the lock already, or the ticket has given its guard.
            _ => self.lock.lock(self.side, deadline).await,
        }
    }
}
