use lockkeeper_core::{Deadline, Error, Ticket};

use super::MutexGuard;
use super::handle::{Mutex, MutexLayout};
use crate::lock::{QueueTicket, QueueWait, Recipe};
use crate::owner::Owner;
use crate::semaphore::{Lease, SemaphoreQueued};

/// A position in the queue of a [`Mutex`], made by [`Mutex::enqueue`].
///
/// The ticket keeps its position until it is dropped: after a wait that timed out or was dropped, call `wait`
/// again. A drop of the ticket leaves the queue, and leaves no node behind. At the head of the queue, a
/// ticket blocks all other contenders, as a guard does: wait soon, or drop the ticket.
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
/// use lockkeeper::Mutex;
///
/// let mutex = Mutex::new(&manager, "/locks/train-7")?;
/// let guard = mutex.acquire().await?;
///
/// let mut ticket = mutex.enqueue().await?;
/// assert_eq!(ticket.position(), Some(1)); // behind one
/// assert!(ticket.wait_timeout(Duration::from_millis(10)).await.unwrap_err().is_timeout());
/// guard.release().await?;
/// let guard = ticket.wait().await?; // at the position it had
/// # guard.release().await?;
/// # Ok(())
/// # }
/// ```
pub type MutexTicket = QueueTicket<MutexQueued>;

/// The position of a contender for a mutex.
#[derive(Debug)]
pub struct MutexQueued {
    mutex: Mutex,
    owner: Option<Owner>,
    position: Position,
}

#[derive(Debug)]
enum Position {
    Queue(Box<Ticket>),
    Semaphore(Box<SemaphoreQueued>),
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
        let position = match &self.layout {
            MutexLayout::Queue(queue) => {
                let ticket = Self::signed(queue, owner.as_ref()).enqueue(Deadline::never()).await?;
                Position::Queue(Box::new(ticket))
            }
            MutexLayout::Semaphore(semaphore) => Position::Semaphore(Box::new(semaphore.queue_up(1).await?)),
        };
        Ok(QueueTicket::of(MutexQueued { mutex: self.clone(), owner, position }))
    }
}

impl QueueWait for MutexQueued {
    type Guard = MutexGuard;

    fn position(&self) -> Option<u32> {
        match &self.position {
            Position::Queue(ticket) => ticket.position(),
            Position::Semaphore(queued) => queued.position(),
        }
    }

    fn ticket(&mut self) -> Option<&mut Ticket> {
        match &mut self.position {
            Position::Queue(ticket) => Some(ticket),
            Position::Semaphore(queued) => queued.ticket(),
        }
    }

    async fn wait(&mut self, deadline: Deadline) -> Result<MutexGuard, Error> {
        // The owner may hold the lock by now, by another guard.
        if let Some(owner) = &self.owner {
            self.mutex.holders.check(Recipe::manager(&self.mutex), self.mutex.path(), owner)?;
        }
        let held = match &mut self.position {
            Position::Queue(ticket) => ticket.wait(deadline).await?.into(),
            Position::Semaphore(queued) => queued.wait(deadline).await.map(Lease::into_held)?,
        };
        Ok(self.mutex.guard(held, self.owner.as_ref()))
    }
}
