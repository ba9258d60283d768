use std::sync::Arc;
use std::time::Duration;

use lockkeeper_core::{Deadline, Error, Ticket};
use tokio::sync::OwnedMutexGuard as AsyncGuard;

use super::{ReentrantMutex, ReentrantMutexGuard, ReentrantSlot, ReentrantSlotEntry};
use crate::owner::Owner;

/// A position in the queue of a [`ReentrantMutex`], made by [`ReentrantMutex::enqueue`].
///
/// The ticket keeps its position until it is dropped: after a wait that timed out or was dropped, call `wait`
/// again. A drop of the ticket leaves the queue, and leaves no node behind. At the head of the queue, a
/// ticket blocks all other contenders, as a guard does: wait soon, or drop the ticket. Meanwhile the owner's
/// other tasks wait for the ticket.
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
    /// `None` if the owner holds the lock already, or after the guard was returned.
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
    /// Queues for `owner`, and does not wait for the grant. An owner that holds the lock needs no position:
    /// its ticket returns the guard at once.
    ///
    /// # Errors
    ///
    /// As [`acquire`](Self::acquire).
    ///
    /// # Session loss
    ///
    /// The position is lost with its session. A wait takes a new position in the next session, at the end of
    /// the queue.
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
    /// The number of contenders ahead at the last list: 0 at the head of the queue. `None` if no list is
    /// known.
    #[must_use]
    pub fn position(&self) -> Option<usize> {
        match &self.queued {
            Some(queued) => queued.ticket.position(),
            None => Some(0),
        }
    }

    /// Lists the queue now, and returns the number of contenders ahead. One round trip. If the position is
    /// lost, the ticket takes a new one at the end of the queue.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`] if there was no connection or no answer within the manager's operation timeout.
    /// Otherwise as [`ReentrantMutex::acquire`]. The ticket keeps its position.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the ticket keeps its position.
    pub async fn refresh(&mut self) -> Result<usize, Error> {
        match &mut self.queued {
            Some(queued) => {
                let limit = Deadline::after(self.mutex.queue.manager().operation_timeout());
                queued.ticket.refresh(limit).await
            }
            None => Ok(0),
        }
    }

    /// Waits for the lock, without a limit of time. After it has returned a guard, another call takes a new
    /// position.
    ///
    /// # Errors
    ///
    /// As [`ReentrantMutex::acquire`].
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the ticket keeps its position.
    pub async fn wait(&mut self) -> Result<ReentrantMutexGuard, Error> {
        self.wait_by(Deadline::never()).await
    }

    /// Waits for the lock, for at most `timeout`.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`], which names the predecessor; the ticket keeps its position. Otherwise as
    /// [`ReentrantMutex::acquire`].
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the ticket keeps its position.
    pub async fn wait_timeout(&mut self, timeout: Duration) -> Result<ReentrantMutexGuard, Error> {
        self.wait_by(Deadline::after(timeout)).await
    }

    async fn wait_by(&mut self, deadline: Deadline) -> Result<ReentrantMutexGuard, Error> {
        let held = match &mut self.queued {
            Some(queued) => Some(queued.ticket.wait(deadline).await?),
            None => None,
        };
        match (held, self.queued.take()) {
            (Some(held), Some(ReentrantWait { acquiring, slot, entry, .. })) => {
                let guard = self.mutex.guard(&slot, held, &self.owner, entry);
                drop(acquiring);
                Ok(guard)
            }
            // The owner holds the lock already, or the ticket has given its guard.
            _ => self.mutex.lock(&self.owner, deadline).await,
        }
    }
}
