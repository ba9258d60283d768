//! The contenders of a queue, seen from outside, for people and for tools.
//!
//! An inspection only reads, and enters no queue. Its result is a snapshot that may be stale by the time it
//! is read: it grants nothing, and must not decide what a hold should decide.

mod contender_info;
mod identity;
mod node_info;
mod observe;
mod order;
mod read;

pub use self::contender_info::{AgeClock, ContenderInfo, Role};
pub use self::identity::Identity;
pub use self::node_info::NodeInfo;

pub(crate) use self::read::{DATA_BYTES_MAX, read_node};
use crate::error::Error;
use crate::queue::LockQueue;

impl LockQueue {
    /// All contenders of the queue, in order. A missing directory is an empty queue.
    ///
    /// # Ordering and fairness
    ///
    /// A `sync` and then the list, sent together: the list is no older than the call, unless the servers'
    /// leader had been deposed without knowing it. The nodes are read after it, 128 at a time. A node that is
    /// deleted meanwhile is left out, and a node that is created meanwhile is not seen. A contender that is
    /// reported as holder held when its node was read; its hold may have ended since.
    ///
    /// Creates no node and writes nothing: the right to read is enough. Of a node that this client may not
    /// read, all but the data is returned.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`], [`Error::Refused`] (no right to list), [`Error::NoAnswer`] (disconnected: retry)
    /// and [`Error::Closed`]. The manager's operation timeout bounds the wait for the connection, and the
    /// wait for the replies.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: nothing is changed.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = lockkeeper_testserver::TestServer::start().await?;
    /// # let manager = lockkeeper_core::ConnectionManager::connect(&server.connect_string()).await?;
    /// use lockkeeper_core::{Deadline, Label, LockQueue, Role, Rule};
    ///
    /// let queue = LockQueue::new(&manager, "/gate", Label::LOCK, Rule::MUTEX)?;
    /// let held = queue.acquire(Deadline::never()).await?;
    /// let waiting = queue.enqueue(Deadline::never()).await?;
    ///
    /// let seen = queue.inspect().await?;
    /// assert_eq!((seen[0].role(), seen[0].path()), (Role::Holder, held.path()));
    /// assert_eq!((seen[1].role(), Some(seen[1].name())), (Role::Waiter, waiting.name()));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn inspect(&self) -> Result<Vec<ContenderInfo>, Error> {
        Ok(self.inspect_with(&[]).await?.pop().unwrap_or_default())
    }

    /// As [`inspect`](Self::inspect), of several queues of the same manager at once. Returns one list for
    /// each directory, in the order in which the directories are named. Queues of one directory, such as
    /// readers and writers, are judged together.
    ///
    /// All directories are listed, in this order, before any node is read: a contender that moves from an
    /// earlier one to a later one meanwhile is seen in the later one only.
    ///
    /// # Errors
    ///
    /// As [`inspect`](Self::inspect).
    ///
    /// # Cancel safety
    ///
    /// As [`inspect`](Self::inspect).
    pub async fn inspect_with(&self, others: &[Self]) -> Result<Vec<Vec<ContenderInfo>>, Error> {
        let mut directories: Vec<Vec<&Self>> = Vec::new();
        for queue in std::iter::once(self).chain(others) {
            let same = |queues: &&mut Vec<&Self>| {
                queues.first().is_some_and(|first| first.full_directory() == queue.full_directory())
            };
            match directories.iter_mut().find(same) {
                Some(queues) => queues.push(queue),
                None => directories.push(vec![queue]),
            }
        }
        self.manager().until_answered(|| read::read(self.manager(), &directories)).await
    }
}
