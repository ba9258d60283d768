use lockkeeper_core::{
    ConnectionManager, Error, IntoPath, Label, LockQueue, Read, Rule, WholePath, ZnodePath,
};

use crate::limits;

/// A value that is initialised once over the whole fleet: by one process, and read by all.
///
/// Use it for what must be the same everywhere and is not known before the first start: the id of a cluster,
/// a generated secret, the schema of a new database. The value is at most about a megabyte, as any node.
///
/// A clone is cheap. Clones, and other objects with the same path in any process, are the same cell. The path
/// belongs to the cell alone. Nothing is cached: each call reads the server, so keep the value.
///
/// # Ordering and fairness
///
/// The processes that find no value enter a queue, first in, first out: the first one initialises. If it
/// fails or crashes, the next one does.
///
/// # Cost
///
/// If the value exists: one read. The initialiser: a read, the queue, the transaction, the release. A waiter
/// has three watches.
///
/// # Session loss
///
/// The initialiser of an expired session is dropped, and the next waiter runs its own. A waiter queues again
/// in the next session.
///
/// # Layout
///
/// `<path>/value` has the value in raw bytes, so any client can read it, and nothing else. `<path>/locks` is
/// an inner mutex, whose node the server removes later. To have the value initialised again, delete
/// `<path>/value`.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = lockkeeper_testserver::TestServer::start().await?;
/// # let servers = server.connect_string();
/// use lockkeeper::{ConnectionManager, OnceCell};
///
/// let manager = ConnectionManager::connect(&servers).await?; // host:port,host:port,…
/// let cell = OnceCell::new(&manager, "/cluster/id")?;
/// assert_eq!(cell.get().await?, None);
///
/// let id = cell.get_or_try_init(async || std::str::from_utf8(b"c-4711").map(|id| id.into())).await?;
/// assert_eq!(cell.get().await?, Some(id));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct OnceCell {
    pub(super) queue: LockQueue,
    pub(super) path: ZnodePath,
    pub(super) value: ZnodePath,
}

impl OnceCell {
    /// Makes the cell at `path`, below the manager's chroot. Sends nothing.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] if the path is malformed, or is the root.
    pub fn new(manager: &ConnectionManager, path: impl IntoPath) -> Result<Self, Error> {
        let path = limits::own_path(path, "give it a path of its own, such as /cells/a")?;
        let value = path.child("value")?;
        let queue = LockQueue::new(manager, path.child("locks")?, Label::LOCK, Rule::MUTEX)?
            .with_metric_name("once_cell")
            .with_reads(&[Read::DataOnce(value.clone())])?;
        Ok(Self { queue, path, value })
    }

    /// The path of the cell, below the manager's chroot.
    #[must_use]
    pub fn path(&self) -> &ZnodePath {
        &self.path
    }

    /// The value; `None` if there is none. One read.
    ///
    /// The connected server answers: it may be behind the other servers, but never behind anything that this
    /// session has seen.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`], [`Error::Refused`] (no right to read), [`Error::NoAnswer`] (the connection broke:
    /// call again) and [`Error::Closed`].
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the call changes nothing.
    pub async fn get(&self) -> Result<Option<Vec<u8>>, Error> {
        Ok(self.manager().znodes().read(&self.value).await?.map(|(value, _)| value))
    }

    /// Waits until there is a value, without initialising it.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] (no right to read) and [`Error::Closed`].
    ///
    /// # Session loss
    ///
    /// Goes on in the next session.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the call changes nothing.
    pub async fn wait(&self) -> Result<Vec<u8>, Error> {
        Ok(self.manager().znodes().wait_for(&self.value).await?.0)
    }

    pub(super) fn manager(&self) -> &ConnectionManager {
        self.queue.manager()
    }

    /// For errors and logs.
    pub(super) fn whole_path(&self) -> WholePath {
        self.manager().whole_path(&self.path)
    }
}
