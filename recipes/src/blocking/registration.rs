use std::time::Duration;

use lockkeeper_core::{Error, IntoPath, OnDeletion, PresenceState, ZnodePath};

use super::error::CannotBlock;
use super::generic::Blocking;
use super::manager::ConnectionManager;
use super::watch::{PresenceWatch, Watch};

/// An ephemeral node of this process, which outlives sessions, for threads. Everything is as for the async
/// [`Registration`](crate::Registration). A drop deletes the node in the background.
///
/// # Examples
///
/// ```
/// # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
/// # let server = runtime.block_on(lockkeeper_testserver::TestServer::start())?;
/// # let manager = lockkeeper::blocking::ConnectionManager::connect(&server.connect_string())?;
/// use lockkeeper::blocking::Registration;
///
/// let worker = Registration::register(&manager, "/workers/7", "10.0.0.7:8080")?;
/// worker.registered()?;
/// worker.set_data("10.0.0.7:8080 draining")?;
/// worker.release()?;
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
pub type Registration = Blocking<crate::Registration>;

impl Registration {
    /// Begins to register the node at `path`, below the manager's chroot, in the background.
    ///
    /// # Errors
    ///
    /// [`CannotBlock`] within an async task. Otherwise as
    /// [`Registration::register`](crate::Registration::register).
    pub fn register(
        manager: &ConnectionManager,
        path: impl IntoPath,
        data: impl Into<Vec<u8>>,
    ) -> Result<Self, Error> {
        Self::register_with(manager, path, data, OnDeletion::Recreate)
    }

    /// As [`register`](Self::register), with a policy for the case that another client deletes the node.
    ///
    /// # Errors
    ///
    /// As [`register`](Self::register).
    pub fn register_with(
        manager: &ConnectionManager,
        path: impl IntoPath,
        data: impl Into<Vec<u8>>,
        policy: OnDeletion,
    ) -> Result<Self, Error> {
        // The task of the registration runs on the thread of the manager.
        let register = async { crate::Registration::register_with(manager.as_async(), path, data, policy) };
        Ok(Self::on(manager, manager.thread().block_checked(register)??))
    }

    /// The path of the node, below the manager's chroot.
    #[must_use]
    pub fn path(&self) -> &ZnodePath {
        self.inner.path()
    }

    /// Whether the node exists, as far as is known. Never blocks.
    #[must_use]
    pub fn state(&self) -> PresenceState {
        self.inner.state()
    }

    /// The states of the registration, one after the other.
    #[must_use]
    pub fn watch(&self) -> PresenceWatch {
        Watch::new(self.inner.watch(), &self.thread, self.inner.whole_path())
    }

    /// Waits until the node exists and is ours, without a limit of time.
    ///
    /// # Errors
    ///
    /// [`CannotBlock`] within an async task. Otherwise as
    /// [`Registration::registered`](crate::Registration::registered).
    pub fn registered(&self) -> Result<i64, Error> {
        self.block(self.inner.registered())
    }

    /// As [`registered`](Self::registered), for at most `timeout`.
    ///
    /// # Errors
    ///
    /// As [`registered`](Self::registered), and [`Error::Timeout`].
    pub fn registered_timeout(&self, timeout: Duration) -> Result<i64, Error> {
        self.block(self.inner.registered_timeout(timeout))
    }

    /// Gives the node other data, and waits until the node has it.
    ///
    /// # Errors
    ///
    /// [`CannotBlock`] within an async task. Otherwise as
    /// [`Registration::set_data`](crate::Registration::set_data).
    pub fn set_data(&self, data: impl Into<Vec<u8>>) -> Result<(), Error> {
        self.block(self.inner.set_data(data))
    }

    /// Deletes the node, and waits until the server has confirmed this. It works also within an async task.
    ///
    /// # Errors
    ///
    /// [`CannotBlock`] on the manager's own thread; the node is deleted in the
    /// background. Otherwise as [`Registration::release`](crate::Registration::release).
    pub fn release(self) -> Result<(), Error> {
        let Self { inner, thread } = self;
        thread.block_always(inner.release()).ok_or(CannotBlock)?
    }
}
