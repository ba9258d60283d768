use std::sync::Arc;
use std::time::Duration;

use lockkeeper_core::{Deadline, Error, Ticket};

use super::guard::{ReadGuard, WriteGuard};
use super::lock::RwLock;
use super::reservation::{OwnerReservation, Turn};
use super::side::Side;
use super::slot::SharedSideHold;

/// A place in the line of an [`RwLock`] to read, made by [`RwLock::enqueue_read`].
///
/// The place is kept as long as the ticket is: a wait that timed out or was dropped can be taken up again. Dropping the ticket
/// leaves the line, and no node behind. Once no writer is in front it keeps writers waiting, as a guard does: wait soon, or drop
/// it. Meanwhile the other tasks of a named owner wait for the ticket, with whatever they want of the lock.
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

/// A place in the line of an [`RwLock`] to write, made by [`RwLock::enqueue_write`]. See [`ReadTicket`].
#[derive(Debug)]
#[must_use = "a ticket that is not kept leaves the line at once"]
pub struct WriteTicket(SideTicket);

#[derive(Debug)]
struct SideTicket {
    lock: RwLock,
    side: Side,
    /// `None` where the owner holds what lets it in at once, or once the guard was given.
    queued: Option<SideWait>,
}

#[derive(Debug)]
struct SideWait {
    // Dropped in this order: the owner's other tasks go on when the place is given up.
    ticket: Ticket,
    reservation: OwnerReservation,
}

impl RwLock {
    /// Takes a place in the line to read, and does not wait in it. An owner that holds the lock needs none: its ticket gives
    /// the guard at once.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    ///
    /// # Session loss
    ///
    /// The place goes with its session. A wait takes a new one in the next session, at the end of the line.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe at every await: no node is left behind.
    pub async fn enqueue_read(&self) -> Result<ReadTicket, Error> {
        Ok(ReadTicket(SideTicket::take(self, Side::Read).await?))
    }

    /// Takes a place in the line to write, and does not wait in it. An owner that writes needs none: its ticket gives the guard
    /// at once.
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
    /// How many writers were in front at the last look: 0 for a reader that need not wait. `None` when nothing is known of the
    /// line.
    #[must_use]
    pub fn position(&self) -> Option<usize> {
        self.0.position()
    }

    /// Looks at the line now, and tells how many writers are in front. One round trip. A place that turns out to be lost is
    /// taken anew, at the end of the line.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`] when there was no connection or no answer within the manager's operation timeout; else as
    /// [`RwLock::read`]. The place is kept.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the place is kept.
    pub async fn refresh(&mut self) -> Result<usize, Error> {
        self.0.refresh().await
    }

    /// Waits until no earlier writer is left, for as long as it takes. A ticket that has given its guard takes a new place when
    /// waited for again.
    ///
    /// # Errors
    ///
    /// As [`RwLock::read`].
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the place is kept.
    pub async fn wait(&mut self) -> Result<ReadGuard, Error> {
        self.0.wait(Deadline::never()).await.map(ReadGuard::of)
    }

    /// As [`wait`](Self::wait), for at most `timeout`.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`], which names who was in front: the place is kept. Else as [`RwLock::read`].
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the place is kept.
    pub async fn wait_timeout(&mut self, timeout: Duration) -> Result<ReadGuard, Error> {
        self.0.wait(Deadline::after(timeout)).await.map(ReadGuard::of)
    }
}

impl WriteTicket {
    /// How many readers and writers were in front at the last look: 0 at the head of the line. `None` when nothing is known of
    /// the line.
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
    /// Cancel safe: the place is kept.
    pub async fn refresh(&mut self) -> Result<usize, Error> {
        self.0.refresh().await
    }

    /// Waits until nobody earlier is left, for as long as it takes. A ticket that has given its guard takes a new place when
    /// waited for again.
    ///
    /// # Errors
    ///
    /// As [`RwLock::write`].
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the place is kept.
    pub async fn wait(&mut self) -> Result<WriteGuard, Error> {
        self.0.wait(Deadline::never()).await.map(WriteGuard::of)
    }

    /// As [`wait`](Self::wait), for at most `timeout`.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`], which names who was in front: the place is kept. Else as [`RwLock::write`].
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the place is kept.
    pub async fn wait_timeout(&mut self, timeout: Duration) -> Result<WriteGuard, Error> {
        self.0.wait(Deadline::after(timeout)).await.map(WriteGuard::of)
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
        let Some(queued) = &mut self.queued else {
            return self.lock.lock(self.side, deadline).await;
        };
        let held = queued.ticket.wait(deadline).await?;
        match self.queued.take() {
            Some(SideWait { reservation, .. }) => Ok(reservation.enter(self.side, held)),
            None => Err(Error::Closed),
        }
    }
}
