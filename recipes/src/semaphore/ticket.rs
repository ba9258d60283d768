use std::time::Duration;

use lockkeeper_core::{Deadline, Error, Hold, Ticket};

use super::permit_acquire::NotTaken;
use super::{Lease, Semaphore};

/// A position in the queue of a [`Semaphore`], made by [`Semaphore::enqueue`] and
/// [`Semaphore::enqueue_many`].
///
/// The ticket keeps its position until it is dropped, also at the head of the queue: after a wait that timed
/// out or was dropped, call `wait` again. A drop of the ticket leaves the queue, and leaves no node behind.
/// At the head of the queue, a ticket blocks the contenders behind it, even if there are permits for them:
/// wait soon, or drop the ticket.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = lockkeeper_testserver::TestServer::start().await?;
/// # let manager = lockkeeper::ConnectionManager::connect(&server.connect_string()).await?;
/// use std::time::Duration;
/// use lockkeeper::Semaphore;
///
/// let licences = Semaphore::new(&manager, "/licences/compiler", 4)?;
/// let lease = licences.acquire_many(3).await?;
///
/// let mut ticket = licences.enqueue_many(2).await?;
/// assert_eq!(ticket.position(), Some(0)); // the next to get some
/// assert!(ticket.wait_timeout(Duration::from_millis(10)).await.unwrap_err().is_timeout());
/// lease.release().await?;
/// assert_eq!(ticket.wait().await?.permits(), 2);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "a ticket that is not kept leaves the line at once"]
pub struct SemaphoreTicket {
    semaphore: Semaphore,
    permits: usize,
    ticket: Ticket,
    /// The hold of the queue, once the ticket is at the head.
    acquire: Option<Hold>,
}

impl Semaphore {
    /// Queues for one permit, and does not wait for the grant.
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
    pub async fn enqueue(&self) -> Result<SemaphoreTicket, Error> {
        self.enqueue_many(1).await
    }

    /// Queues for `permits` permits at once, and does not wait for the grant.
    ///
    /// # Errors
    ///
    /// As [`acquire_many`](Self::acquire_many).
    ///
    /// # Cancel safety
    ///
    /// As [`enqueue`](Self::enqueue).
    pub async fn enqueue_many(&self, permits: usize) -> Result<SemaphoreTicket, Error> {
        self.check(permits)?;
        let ticket = self.queue().enqueue(Deadline::never()).await?;
        Ok(SemaphoreTicket { semaphore: self.clone(), permits, ticket, acquire: None })
    }
}

impl SemaphoreTicket {
    /// The number of contenders ahead at the last list: 0 at the head of the queue, where the ticket waits
    /// for permits. `None` if no list is known.
    #[must_use]
    pub fn position(&self) -> Option<usize> {
        match &self.acquire {
            Some(_) => Some(0),
            None => self.ticket.position(),
        }
    }

    /// Lists the queue now, and returns the number of contenders ahead. One round trip; none at the head. If
    /// the position is lost, the ticket takes a new one at the end of the queue.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`] if there was no connection or no answer within the manager's operation timeout.
    /// Otherwise as [`Semaphore::acquire`]. The ticket keeps its position.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the ticket keeps its position.
    pub async fn refresh(&mut self) -> Result<usize, Error> {
        self.acquire.take_if(|acquire| !acquire.is_valid());
        if self.acquire.is_some() {
            return Ok(0);
        }
        self.ticket.refresh(Deadline::after(self.semaphore.manager().operation_timeout())).await
    }

    /// Waits for the permits, without a limit of time. After it has returned a lease, another call takes a
    /// new position.
    ///
    /// # Errors
    ///
    /// As [`Semaphore::acquire_many`]. After [`Error::TooManyPermits`] and [`Error::LimitsDisagree`] the
    /// contender has left the queue, so that it blocks no other one.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe, with one exception: if the future is dropped during the transaction that takes the
    /// permits, the position is lost. No node is left behind.
    pub async fn wait(&mut self) -> Result<Lease, Error> {
        self.wait_by(Deadline::never()).await
    }

    /// Waits for the permits, for at most `timeout`.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`], which names the predecessor, or the number of free permits; the ticket keeps its
    /// position. Otherwise as [`wait`](Self::wait).
    ///
    /// # Cancel safety
    ///
    /// As [`wait`](Self::wait).
    pub async fn wait_timeout(&mut self, timeout: Duration) -> Result<Lease, Error> {
        self.wait_by(Deadline::after(timeout)).await
    }

    pub(crate) async fn wait_by(&mut self, deadline: Deadline) -> Result<Lease, Error> {
        loop {
            if self.acquire.is_none() {
                self.acquire = Some(self.ticket.wait(deadline).await?);
            }
            match self.semaphore.take_from(&mut self.acquire, self.permits, deadline).await {
                Ok(lease) => return Ok(lease),
                // At the end of the line.
                Err(NotTaken::HoldLost) => self.acquire = None,
                Err(NotTaken::Failed(error)) => {
                    self.acquire.take_if(|_| !error.is_timeout());
                    return Err(error);
                }
            }
        }
    }
}
