use std::sync::Arc;
use std::time::Duration;

use lockkeeper_core::{Deadline, Error, Ticket};
use tokio::sync::OwnedMutexGuard as AsyncGuard;

use super::{OwnedReentrantMutexGuard, ReentrantMutex, ReentrantSlot, ReentrantSlotEntry};
use crate::owner::Owner;

/// A place in the line of a [`ReentrantMutex`], made by [`ReentrantMutex::enqueue`].
///
/// The place is kept as long as the ticket is: a wait that timed out or was dropped can be taken up again. Dropping the ticket
/// leaves the line, and no node behind. At the head of the line it keeps everyone else waiting, as a guard does: wait soon, or
/// drop it. Meanwhile the owner's other tasks wait for the ticket.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = lockkeeper_testserver::TestServer::start().await?;
/// # let manager = lockkeeper::ConnectionManager::connect(&server.connect_string()).await?;
/// use lockkeeper::{Owner, ReentrantMutex};
///
/// let mutex = ReentrantMutex::new(&manager, "/locks/order-4711")?;
/// let (checkout, refund) = (Owner::new("checkout"), Owner::new("refund"));
/// let guard = mutex.acquire(&checkout).await?;
///
/// let mut ticket = mutex.enqueue(&refund).await?;
/// assert_eq!(ticket.position(), Some(1));
/// guard.release().await?;
/// let guard = ticket.wait().await?;
/// assert_eq!(mutex.hold_count(&refund), 1);
/// # guard.release().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "a ticket that is not kept leaves the line at once"]
pub struct ReentrantTicket {
    mutex: ReentrantMutex,
    owner: Owner,
    /// `None` where the owner holds it already, or once the guard was given.
    queued: Option<ReentrantWait>,
}

#[derive(Debug)]
struct ReentrantWait {
    // Dropped in this order: the owner's other tasks go on when the place is given up.
    ticket: Ticket,
    acquiring: AsyncGuard<()>,
    slot: Arc<ReentrantSlot>,
    entry: ReentrantSlotEntry,
}

impl ReentrantMutex {
    /// Takes a place in the line on behalf of `owner`, and does not wait in it. An owner that holds the lock needs none: its
    /// ticket gives the guard at once.
    ///
    /// # Errors
    ///
    /// As [`acquire`](Self::acquire).
    ///
    /// # Session loss
    ///
    /// The place goes with its session. A wait takes a new one in the next session, at the end of the line.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe at every await: no node is left behind.
    pub async fn enqueue(&self, owner: &Owner) -> Result<ReentrantTicket, Error> {
        let queued = self.stand(owner).await?;
        Ok(ReentrantTicket { mutex: self.clone(), owner: owner.clone(), queued })
    }

    async fn stand(&self, owner: &Owner) -> Result<Option<ReentrantWait>, Error> {
        let (entry, slot) = self.slot(owner);
        if slot.again()?.is_some() {
            return Ok(None);
        }
        let acquiring = Arc::clone(&slot.acquiring).lock_owned().await;
        if slot.again()?.is_some() {
            return Ok(None);
        }
        self.holders.check(self.path(), owner)?;
        let ticket = self.queue_of(owner).enqueue(Deadline::never()).await?;
        Ok(Some(ReentrantWait { ticket, acquiring, slot, entry }))
    }
}

impl ReentrantTicket {
    /// How many were in front at the last look: 0 at the head of the line. `None` when nothing is known of the line.
    #[must_use]
    pub fn position(&self) -> Option<usize> {
        match &self.queued {
            Some(queued) => queued.ticket.position(),
            None => Some(0),
        }
    }

    /// Looks at the line now, and tells how many are in front. One round trip. A place that turns out to be lost is taken
    /// anew, at the end of the line.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`] when there was no connection or no answer within the manager's operation timeout; else as
    /// [`ReentrantMutex::acquire`]. The place is kept.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the place is kept.
    pub async fn refresh(&mut self) -> Result<usize, Error> {
        match &mut self.queued {
            Some(queued) => {
                let limit = Deadline::after(self.mutex.queue.manager().operation_timeout());
                queued.ticket.refresh(limit).await
            }
            None => Ok(0),
        }
    }

    /// Waits for the lock for as long as it takes. A ticket that has given its guard takes a new place when waited for again.
    ///
    /// # Errors
    ///
    /// As [`ReentrantMutex::acquire`].
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the place is kept.
    pub async fn wait(&mut self) -> Result<OwnedReentrantMutexGuard, Error> {
        self.wait_by(Deadline::never()).await
    }

    /// Waits for the lock for at most `timeout`.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`], which names who was in front: the place is kept. Else as [`ReentrantMutex::acquire`].
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the place is kept.
    pub async fn wait_timeout(&mut self, timeout: Duration) -> Result<OwnedReentrantMutexGuard, Error> {
        self.wait_by(Deadline::after(timeout)).await
    }

    async fn wait_by(&mut self, deadline: Deadline) -> Result<OwnedReentrantMutexGuard, Error> {
        let Some(queued) = &mut self.queued else {
            return self.mutex.lock(&self.owner, deadline).await;
        };
        let held = queued.ticket.wait(deadline).await?;
        match self.queued.take() {
            Some(ReentrantWait { acquiring, slot, entry, .. }) => {
                let guard = self.mutex.guard(&slot, held, &self.owner, entry);
                drop(acquiring);
                Ok(guard)
            }
            None => Err(Error::Closed),
        }
    }
}
