use lockkeeper_core::{Error, IntoPath, ZnodePath};

use super::generic::Blocking;
use super::manager::ConnectionManager;
use crate::RegisterInfo;

/// Ids that are unique over all processes, for threads. Everything is as for the async
/// [`IdBlocks`](crate::IdBlocks).
///
/// # Examples
///
/// ```
/// # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
/// # let server = runtime.block_on(lockkeeper_testserver::TestServer::start())?;
/// # let manager = lockkeeper::blocking::ConnectionManager::connect(&server.connect_string())?;
/// use lockkeeper::blocking::IdBlocks;
///
/// let ids = IdBlocks::new(&manager, "/ids/orders", 1_000)?;
/// assert_eq!((ids.next()?, ids.next()?), (1, 2));
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
pub type IdBlocks = Blocking<crate::IdBlocks>;

impl IdBlocks {
    /// Ids from blocks of `size`, of the counter at `path`, below the manager's chroot. Sends nothing.
    ///
    /// # Errors
    ///
    /// As [`IdBlocks::new`](crate::IdBlocks::new).
    pub fn new(manager: &ConnectionManager, path: impl IntoPath, size: u32) -> Result<Self, Error> {
        Ok(Self::on(manager, crate::IdBlocks::new(manager.as_async(), path, size)?))
    }

    /// The path of the counter, below the manager's chroot.
    #[must_use]
    pub fn path(&self) -> &ZnodePath {
        self.inner.path()
    }

    /// An id that was given out nowhere before.
    ///
    /// # Errors
    ///
    /// [`CannotBlock`](super::CannotBlock) within an async task. Otherwise as
    /// [`IdBlocks::next`](crate::IdBlocks::next).
    pub fn next(&self) -> Result<i64, Error> {
        self.block(self.inner.next())
    }

    /// An id of the present block; `None` if there is none left now. Never blocks.
    #[must_use]
    pub fn try_next(&self) -> Option<i64> {
        // The request for the next block runs on the thread of the manager.
        let next = async { self.inner.try_next() };
        self.thread.block_always(next).unwrap_or_else(|| self.inner.try_next())
    }

    /// Reads the counter and the sessions that take blocks of it: a snapshot.
    ///
    /// # Errors
    ///
    /// [`CannotBlock`](super::CannotBlock) within an async task. Otherwise as
    /// [`IdBlocks::inspect`](crate::IdBlocks::inspect).
    pub fn inspect(&self) -> Result<RegisterInfo, Error> {
        self.block(self.inner.inspect())
    }
}
