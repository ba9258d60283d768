use lockkeeper_core::{Error, IntoPath, ZnodePath};

use super::generic::Blocking;
use super::manager::ConnectionManager;
use crate::{InitError, Inspection};

/// A value that is initialised once over the whole fleet, for threads. Everything is as for the async
/// [`OnceCell`](crate::OnceCell).
///
/// # Examples
///
/// ```
/// # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
/// # let server = runtime.block_on(lockkeeper_testserver::TestServer::start())?;
/// # let manager = lockkeeper::blocking::ConnectionManager::connect(&server.connect_string())?;
/// use lockkeeper::blocking::OnceCell;
///
/// let cell = OnceCell::new(&manager, "/cluster/id")?;
/// assert_eq!(cell.get()?, None);
/// assert_eq!(cell.get_or_init(|| b"c-4711".to_vec())?, b"c-4711");
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
pub type OnceCell = Blocking<crate::OnceCell>;

impl OnceCell {
    /// Makes the cell at `path`, below the manager's chroot. Sends nothing.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] if the path is malformed, or is the root.
    pub fn new(manager: &ConnectionManager, path: impl IntoPath) -> Result<Self, Error> {
        Ok(Self::on(manager, crate::OnceCell::new(manager.as_async(), path)?))
    }

    /// The path of the cell, below the manager's chroot.
    #[must_use]
    pub fn path(&self) -> &ZnodePath {
        self.inner.path()
    }

    /// The value; `None` if there is none. One read.
    ///
    /// # Errors
    ///
    /// [`CannotBlock`](super::CannotBlock) within an async task. Otherwise as
    /// [`OnceCell::get`](crate::OnceCell::get).
    pub fn get(&self) -> Result<Option<Vec<u8>>, Error> {
        self.block(self.inner.get())
    }

    /// Waits until there is a value, without initialising it.
    ///
    /// # Errors
    ///
    /// [`CannotBlock`](super::CannotBlock) within an async task. Otherwise as
    /// [`OnceCell::wait`](crate::OnceCell::wait).
    pub fn wait(&self) -> Result<Vec<u8>, Error> {
        self.block(self.inner.wait())
    }

    /// Returns the value. If there is none, one process of the fleet calls `init`, and stores its result. An
    /// `init` whose lock is lost runs to its end, and its result is not stored.
    ///
    /// # Errors
    ///
    /// [`CannotBlock`](super::CannotBlock) within an async task. Otherwise as
    /// [`OnceCell::get_or_init`](crate::OnceCell::get_or_init).
    pub fn get_or_init(&self, mut init: impl FnMut() -> Vec<u8>) -> Result<Vec<u8>, Error> {
        self.block(self.inner.get_or_init(|| std::future::ready(init())))
    }

    /// As [`get_or_init`](Self::get_or_init), with an `init` that may fail.
    ///
    /// # Errors
    ///
    /// [`CannotBlock`](super::CannotBlock) within an async task. Otherwise as
    /// [`OnceCell::get_or_try_init`](crate::OnceCell::get_or_try_init).
    pub fn get_or_try_init<E>(
        &self,
        mut init: impl FnMut() -> Result<Vec<u8>, E>,
    ) -> Result<Vec<u8>, InitError<E>> {
        let call = self.inner.get_or_try_init(|| std::future::ready(init()));
        self.thread.block_checked(call).map_err(Error::from)?
    }

    /// Returns the process that initialises the value, and those that wait for it: a snapshot.
    ///
    /// # Errors
    ///
    /// [`CannotBlock`](super::CannotBlock) within an async task. Otherwise as
    /// [`OnceCell::inspect`](crate::OnceCell::inspect).
    pub fn inspect(&self) -> Result<Inspection, Error> {
        self.block(self.inner.inspect())
    }
}
