use lockkeeper_core::{Deadline, Error, Hold, Ticket};

use super::Lease;
use super::handle::Semaphore;
use crate::lock::at_head::{self, AtHead, HeadLimit, NotTaken};
use crate::lock::{QueueTicket, QueueWait};

/// A position in the queue of a [`Semaphore`], made by [`Semaphore::enqueue`] and
/// [`Semaphore::enqueue_many`].
///
/// The ticket keeps its position until it is dropped, also at the head of the queue: after a wait that timed
/// out or was dropped, call `wait` again. A drop of the ticket leaves the queue, and leaves no node behind.
/// At the head of the queue, a ticket blocks the contenders behind it, even if there are permits for them:
/// wait soon, or drop the ticket.
///
/// # Methods
///
/// Those of every [`QueueTicket`](crate::locks::QueueTicket).
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
pub type SemaphoreTicket = QueueTicket<SemaphoreQueued>;

/// The position of a contender for permits.
#[derive(Debug)]
pub struct SemaphoreQueued {
    semaphore: Semaphore,
    permits: u32,
    ticket: Ticket,
    /// The hold of the queue, once the ticket is at the head.
    head: Option<Hold>,
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
    pub async fn enqueue_many(&self, permits: u32) -> Result<SemaphoreTicket, Error> {
        self.queue_up(permits).await.map(QueueTicket::of)
    }

    pub(crate) async fn queue_up(&self, permits: u32) -> Result<SemaphoreQueued, Error> {
        self.check(permits)?;
        let ticket = self.queue().enqueue(Deadline::never()).await?;
        Ok(SemaphoreQueued { semaphore: self.clone(), permits, ticket, head: None })
    }
}

impl QueueWait for SemaphoreQueued {
    type Guard = Lease;

    fn position(&self) -> Option<u32> {
        match &self.head {
            Some(_) => Some(0),
            None => self.ticket.position(),
        }
    }

    fn ticket(&mut self) -> Option<&mut Ticket> {
        self.head.take_if(|head| !head.is_valid());
        self.head.is_none().then_some(&mut self.ticket)
    }

    async fn wait(&mut self, deadline: Deadline) -> Result<Lease, Error> {
        loop {
            if self.head.is_none() {
                self.head = Some(self.ticket.wait(deadline).await?);
            }
            let request = self.semaphore.request(self.permits);
            match at_head::decide(&request, &mut self.head, HeadLimit::wait(deadline)).await {
                Ok(hold) => return Ok(self.semaphore.lease(hold.into())),
                // Queues again, at the end.
                Err(NotTaken::Restart) => self.head = None,
                Err(NotTaken::NotNow(phase)) => return Err(request.timeout_error(phase, deadline)),
                Err(NotTaken::Failed(error)) => {
                    self.head.take_if(|_| !error.is_timeout());
                    return Err(error);
                }
            }
        }
    }
}
