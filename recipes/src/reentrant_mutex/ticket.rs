use lockkeeper_core::Error;

use super::handle::ReentrantMutex;
use crate::lock::{OwnerQueued, QueueTicket, Reentrant};
use crate::owner::{Owner, Side};

/// A position in the queue of a [`ReentrantMutex`], made by [`ReentrantMutex::enqueue`].
///
/// The ticket keeps its position until it is dropped: after a wait that timed out or was dropped, call `wait`
/// again. A drop of the ticket leaves the queue, and leaves no node behind. At the head of the queue, a
/// ticket blocks all other contenders, as a guard does: wait soon, or drop the ticket. Meanwhile the owner's
/// other tasks wait for the ticket.
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
pub type ReentrantTicket = QueueTicket<OwnerQueued<Reentrant>>;

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
        self.holds.enqueue(Side::Write, owner).await.map(QueueTicket::for_owner)
    }
}
