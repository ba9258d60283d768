use std::time::Duration;

use lockkeeper_core::{Deadline, Error, Hold, Ticket};

use super::permit_acquire::NotTaken;
use super::{Lease, Semaphore};

/// A place in the line of a [`Semaphore`], made by [`Semaphore::enqueue`] and [`Semaphore::enqueue_many`].
///
/// The place is kept as long as the ticket is, also at the head of the line: a wait that timed out or was dropped can be taken
/// up again. Dropping the ticket leaves the line, and no node behind. At the head of the line it keeps everyone behind it waiting,
/// though there be permits for them: wait soon, or drop it.
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
    /// The turn, once it has come.
    acquire: Option<Hold>,
}

impl Semaphore {
    /// Takes a place in the line for one permit, and does not wait in it.
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
    pub async fn enqueue(&self) -> Result<SemaphoreTicket, Error> {
        self.enqueue_many(1).await
    }

    /// Takes a place in the line for `permits` at once, and does not wait in it.
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
    /// How many were in front at the last look: 0 at the head of the line, where permits are waited for. `None` when nothing is
    /// known of the line.
    #[must_use]
    pub fn position(&self) -> Option<usize> {
        match &self.acquire {
            Some(_) => Some(0),
            None => self.ticket.position(),
        }
    }

    /// Looks at the line now, and tells how many are in front. One round trip; none at its head. A place that turns out to be
    /// lost is taken anew, at the end of the line.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`] when there was no connection or no answer within the manager's operation timeout; else as
    /// [`Semaphore::acquire`]. The place is kept.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the place is kept.
    pub async fn refresh(&mut self) -> Result<usize, Error> {
        self.acquire.take_if(|acquire| !acquire.is_valid());
        if self.acquire.is_some() {
            return Ok(0);
        }
        self.ticket.refresh(Deadline::after(self.semaphore.manager().operation_timeout())).await
    }

    /// Waits for the permits for as long as it takes. A ticket that has given its lease takes a new place when waited for again.
    ///
    /// # Errors
    ///
    /// As [`Semaphore::acquire_many`]. [`Error::TooManyPermits`] and [`Error::LimitsDisagree`] leave the line, so that others
    /// may go on.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe, but for the moment in which the permits are taken: dropped then, it has lost its place, and no node is
    /// left behind.
    pub async fn wait(&mut self) -> Result<Lease, Error> {
        self.wait_by(Deadline::never()).await
    }

    /// Waits for the permits for at most `timeout`.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`], which names who was in front, or how many permits were free: the place is kept. Else as
    /// [`wait`](Self::wait).
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
