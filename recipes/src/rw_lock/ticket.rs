use lockkeeper_core::Error;

use super::lock::RwLock;
use crate::lock::{OwnerQueued, QueueTicket, Reading, Writing};
use crate::owner::Side;

/// A reader's position in the queue of an [`RwLock`], made by [`RwLock::enqueue_read`].
///
/// The ticket keeps its position until it is dropped: after a wait that timed out or was dropped, call `wait`
/// again. A drop of the ticket leaves the queue, and leaves no node behind. When no writer is ahead, the
/// ticket blocks the writers behind it, as a guard does: wait soon, or drop the ticket. Meanwhile the other
/// tasks of a named owner wait for the ticket, for reads and for writes.
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
pub type ReadTicket = QueueTicket<OwnerQueued<Reading>>;

/// A writer's position in the queue of an [`RwLock`], made by [`RwLock::enqueue_write`]. See [`ReadTicket`].
///
/// # Methods
///
/// Those of every [`QueueTicket`](crate::locks::QueueTicket).
pub type WriteTicket = QueueTicket<OwnerQueued<Writing>>;

impl RwLock {
    /// Queues as a reader, and does not wait for the grant. An owner that holds the lock needs no position:
    /// its ticket returns the guard at once.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    ///
    /// # Session loss
    ///
    /// The position is lost with its session. A wait takes a new position in the next session, at the end of
    /// the queue.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe at every await: no node is left behind.
    pub async fn enqueue_read(&self) -> Result<ReadTicket, Error> {
        self.holds().enqueue(Side::Read, &self.owner()).await.map(QueueTicket::for_owner)
    }

    /// Queues as a writer, and does not wait for the grant. An owner that holds the lock for writing needs no
    /// position: its ticket returns the guard at once.
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
        self.holds().enqueue(Side::Write, &self.owner()).await.map(QueueTicket::for_owner)
    }
}
