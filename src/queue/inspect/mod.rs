//! Who stands in a line: a look from outside, for people and for tools.
//!
//! Reads only, and joins no line. What comes out is a snapshot that may be out of date when it is read: it grants
//! nothing, and nothing may be decided by it that a hold should decide.

mod contender_info;
mod identity;
mod order;
mod read;

pub use self::contender_info::{AgeClock, ContenderInfo, Role};
pub use self::identity::Identity;

pub(crate) use self::read::read_node;
use super::lock_queue::LockQueue;
use crate::error::Error;

impl LockQueue {
    /// Everyone in the line, in its order; a directory that is not there is an empty line.
    ///
    /// # Ordering and fairness
    ///
    /// A `sync`, then the list, in one go: it is no older than the call, unless the servers' leader had been deposed without
    /// knowing it. The nodes are read behind it, 128 at a time. One that goes meanwhile is left out, and one that comes
    /// meanwhile is not seen. Whoever is told to hold did so when its node was read; it may have ended since.
    ///
    /// Takes no place and writes nothing: the right to read is enough. Of a node that may not be read, all but the data is
    /// told.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`], [`Error::Refused`] (no right to list), [`Error::NoAnswer`] (the link broke: ask again) and
    /// [`Error::Closed`]. Connection and answers are each waited for at most the manager's operation timeout.
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
    /// let queue = LockQueue::new(&manager, "/gate".parse()?, Label::LOCK, Rule::MUTEX)?;
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

    /// As [`inspect`](Self::inspect), of several lines of this one's manager at once: a list for each directory, in the order in
    /// which they are named. Lines of one directory, such as readers and writers, are judged together.
    ///
    /// All directories are listed, in this order, before any node is read: who goes from an earlier one to a later one
    /// meanwhile is seen in the later one only.
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
                queues.first().is_some_and(|first| first.directory() == queue.directory())
            };
            match directories.iter_mut().find(same) {
                Some(queues) => queues.push(queue),
                None => directories.push(vec![queue]),
            }
        }
        read::read(self.manager(), &directories).await
    }
}
