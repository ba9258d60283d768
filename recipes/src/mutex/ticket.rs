use std::time::Duration;

use lockkeeper_core::{Deadline, Error, Ticket};

use super::{Layout, Mutex, MutexGuard};
use crate::owner::Owner;
use crate::semaphore::{Lease, SemaphoreTicket};

/// A position in the queue of a [`Mutex`], made by [`Mutex::enqueue`].
///
/// The ticket keeps its position until it is dropped: after a wait that timed out or was dropped, call `wait`
/// again. A drop of the ticket leaves the queue, and leaves no node behind. At the head of the queue, a
/// ticket blocks all other contenders, as a guard does: wait soon, or drop the ticket.
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
    /// Queues for the lock, and does not wait for the grant. The cost is that of an acquire. It waits for a
    /// connection without a limit of time.
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
    /// The number of contenders ahead at the last list: 0 at the head of the queue. `None` if no list is
    /// known.
    #[must_use]
    pub fn position(&self) -> Option<usize> {
        match &self.state {
            TicketState::Queue(ticket) => ticket.position(),
            TicketState::Semaphore(ticket) => ticket.position(),
        }
    }

    /// Lists the queue now, and returns the number of contenders ahead. One round trip. If the position is
    /// lost, the ticket takes a new one at the end of the queue.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`] if there was no connection or no answer within the manager's operation timeout.
    /// Otherwise as [`Mutex::acquire`]. The ticket keeps its position.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the ticket keeps its position.
    pub async fn refresh(&mut self) -> Result<usize, Error> {
        match &mut self.state {
            TicketState::Queue(ticket) => {
                let limit = Deadline::after(ticket.manager().operation_timeout());
                ticket.refresh(limit).await
            }
            TicketState::Semaphore(ticket) => ticket.refresh().await,
        }
    }

    /// Waits for the lock, without a limit of time. After it has returned a guard, another call takes a new
    /// position.
    ///
    /// # Errors
    ///
    /// As [`Mutex::acquire`].
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the ticket keeps its position. In the layout of a semaphore there is one exception: the
    /// transaction that takes the permit.
    pub async fn wait(&mut self) -> Result<MutexGuard, Error> {
        self.wait_by(Deadline::never()).await
    }

    /// Waits for the lock for at most `timeout`.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`], which names the predecessor; the ticket keeps its position. Otherwise as
    /// [`Mutex::acquire`].
    ///
    /// # Cancel safety
    ///
    /// As [`wait`](Self::wait).
    pub async fn wait_timeout(&mut self, timeout: Duration) -> Result<MutexGuard, Error> {
        self.wait_by(Deadline::after(timeout)).await
    }

    async fn wait_by(&mut self, deadline: Deadline) -> Result<MutexGuard, Error> {
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
