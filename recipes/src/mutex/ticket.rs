use std::time::Duration;

use lockkeeper_core::{Deadline, Error, Ticket};

use super::{Layout, Mutex, OwnedMutexGuard};
use crate::owner::Owner;
use crate::semaphore::{Lease, SemaphoreTicket};

/// A place in the line of a [`Mutex`], made by [`Mutex::enqueue`].
///
/// The place is kept as long as the ticket is: a wait that timed out or was dropped can be taken up again. Dropping the ticket
/// leaves the line, and no node behind. At the head of the line it keeps everyone else waiting, as a guard does: wait soon, or
/// drop it.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = lockkeeper_testserver::TestServer::start().await?;
/// # let manager = lockkeeper::ConnectionManager::connect(&server.connect_string()).await?;
/// use std::time::Duration;
/// use lockkeeper::Mutex;
///
/// let mutex = Mutex::new(&manager, "/locks/train-7")?;
/// let guard = mutex.acquire().await?;
///
/// let mut ticket = mutex.enqueue().await?;
/// assert_eq!(ticket.position(), Some(1)); // behind one
/// assert!(ticket.wait_timeout(Duration::from_millis(10)).await.unwrap_err().is_timeout());
/// guard.release().await?;
/// let guard = ticket.wait().await?; // in the place it had
/// # guard.release().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "a ticket that is not kept leaves the line at once"]
pub struct MutexTicket {
    mutex: Mutex,
    owner: Option<Owner>,
    state: TicketState,
}

#[derive(Debug)]
enum TicketState {
    Queue(Box<Ticket>),
    Semaphore(Box<SemaphoreTicket>),
}

impl Mutex {
    /// Takes a place in the line, and does not wait in it. Costs what an acquire costs, and waits for a connection for as long
    /// as that takes.
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
    pub async fn enqueue(&self) -> Result<MutexTicket, Error> {
        let owner = self.owner()?;
        let state = match &self.layout {
            Layout::Queue(queue) => {
                let ticket = Self::signed(queue, owner.as_ref()).enqueue(Deadline::never()).await?;
                TicketState::Queue(Box::new(ticket))
            }
            Layout::Semaphore(semaphore) => TicketState::Semaphore(Box::new(semaphore.enqueue().await?)),
        };
        Ok(MutexTicket { mutex: self.clone(), owner, state })
    }
}

impl MutexTicket {
    /// How many were in front at the last look: 0 at the head of the line. `None` when nothing is known of the line.
    #[must_use]
    pub fn position(&self) -> Option<usize> {
        match &self.state {
            TicketState::Queue(ticket) => ticket.position(),
            TicketState::Semaphore(ticket) => ticket.position(),
        }
    }

    /// Looks at the line now, and tells how many are in front. One round trip. A place that turns out to be lost is taken
    /// anew, at the end of the line.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`] when there was no connection or no answer within the manager's operation timeout; else as
    /// [`Mutex::acquire`]. The place is kept.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the place is kept.
    pub async fn refresh(&mut self) -> Result<usize, Error> {
        match &mut self.state {
            TicketState::Queue(ticket) => {
                let limit = Deadline::after(ticket.manager().operation_timeout());
                ticket.refresh(limit).await
            }
            TicketState::Semaphore(ticket) => ticket.refresh().await,
        }
    }

    /// Waits for the lock for as long as it takes. A ticket that has given its guard takes a new place when waited for again.
    ///
    /// # Errors
    ///
    /// As [`Mutex::acquire`].
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the place is kept; in the layout of a semaphore, but for the moment in which the permit is taken.
    pub async fn wait(&mut self) -> Result<OwnedMutexGuard, Error> {
        self.wait_by(Deadline::never()).await
    }

    /// Waits for the lock for at most `timeout`.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`], which names who was in front: the place is kept. Else as [`Mutex::acquire`].
    ///
    /// # Cancel safety
    ///
    /// As [`wait`](Self::wait).
    pub async fn wait_timeout(&mut self, timeout: Duration) -> Result<OwnedMutexGuard, Error> {
        self.wait_by(Deadline::after(timeout)).await
    }

    async fn wait_by(&mut self, deadline: Deadline) -> Result<OwnedMutexGuard, Error> {
        // The owner may have come to hold it by another way meanwhile.
        if let Some(owner) = &self.owner {
            self.mutex.holders.check(self.mutex.path(), owner)?;
        }
        let held = match &mut self.state {
            TicketState::Queue(ticket) => ticket.wait(deadline).await?,
            TicketState::Semaphore(ticket) => ticket.wait_by(deadline).await.map(Lease::into_hold)?,
        };
        Ok(self.mutex.guard(held.into(), self.owner.as_ref()))
    }
}
