use std::time::Duration;

use lockkeeper_core::{Error, IntoPath, ZnodePath};

use super::generic::Blocking;
use super::guard::Guard;
use super::manager::ConnectionManager;
use crate::{BarrierInspection, DoubleBarrierInspection};

/// A barrier that one process sets and removes, for threads. Everything is as for the async
/// [`Barrier`](crate::Barrier).
///
/// # Examples
///
/// ```
/// # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
/// # let server = runtime.block_on(lockkeeper_testserver::TestServer::start())?;
/// # let manager = lockkeeper::blocking::ConnectionManager::connect(&server.connect_string())?;
/// use lockkeeper::blocking::Barrier;
///
/// let migration = Barrier::new(&manager, "/barriers/migration")?;
/// assert!(migration.set()?);
/// assert!(migration.remove()?);
/// migration.wait()?;
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
pub type Barrier = Blocking<crate::Barrier>;

/// A barrier that members enter together and leave together, for threads. Everything is as for the async
/// [`DoubleBarrier`](crate::DoubleBarrier).
pub type DoubleBarrier = Blocking<crate::DoubleBarrier>;

/// A member inside a [`DoubleBarrier`].
pub type Inside = Guard<crate::double_barrier::MemberHold>;

impl Barrier {
    /// Makes the barrier at `path`, below the manager's chroot. Sends nothing.
    ///
    /// # Errors
    ///
    /// As [`Barrier::new`](crate::Barrier::new).
    pub fn new(manager: &ConnectionManager, path: impl IntoPath) -> Result<Self, Error> {
        Ok(Self::on(manager, crate::Barrier::new(manager.as_async(), path)?))
    }

    /// The path of the barrier, below the manager's chroot.
    #[must_use]
    pub fn path(&self) -> &ZnodePath {
        self.inner.path()
    }

    /// Sets the barrier. Returns `false` if it was set before.
    ///
    /// # Errors
    ///
    /// [`CannotBlock`](super::CannotBlock) within an async task. Otherwise as
    /// [`Barrier::set`](crate::Barrier::set).
    pub fn set(&self) -> Result<bool, Error> {
        self.block(self.inner.set())
    }

    /// Removes the barrier. Returns `false` if it was not set.
    ///
    /// # Errors
    ///
    /// As [`set`](Self::set).
    pub fn remove(&self) -> Result<bool, Error> {
        self.block(self.inner.remove())
    }

    /// Whether the barrier is set.
    ///
    /// # Errors
    ///
    /// As [`set`](Self::set).
    pub fn is_set(&self) -> Result<bool, Error> {
        self.block(self.inner.is_set())
    }

    /// Waits until the barrier is not set, without a limit of time.
    ///
    /// # Errors
    ///
    /// [`CannotBlock`](super::CannotBlock) within an async task. Otherwise as
    /// [`Barrier::wait`](crate::Barrier::wait).
    pub fn wait(&self) -> Result<(), Error> {
        self.block(self.inner.wait())
    }

    /// As [`wait`](Self::wait), for at most `timeout`.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`] if the barrier is still set. Otherwise as [`wait`](Self::wait).
    pub fn wait_timeout(&self, timeout: Duration) -> Result<(), Error> {
        self.block(self.inner.wait_timeout(timeout))
    }

    /// Whether the barrier is set, by which client and since when.
    ///
    /// # Errors
    ///
    /// As [`set`](Self::set).
    pub fn inspect(&self) -> Result<BarrierInspection, Error> {
        self.block(self.inner.inspect())
    }
}

impl DoubleBarrier {
    /// Makes the barrier of `count` members at `path`, below the manager's chroot. Sends nothing.
    ///
    /// # Errors
    ///
    /// As [`DoubleBarrier::new`](crate::DoubleBarrier::new).
    pub fn new(manager: &ConnectionManager, path: impl IntoPath, count: u32) -> Result<Self, Error> {
        Ok(Self::on(manager, crate::DoubleBarrier::new(manager.as_async(), path, count)?))
    }

    /// Names this member: see [`DoubleBarrier::with_id`](crate::DoubleBarrier::with_id).
    ///
    /// # Errors
    ///
    /// As that method.
    pub fn with_id(self, id: &str) -> Result<Self, Error> {
        Ok(Self { inner: self.inner.with_id(id)?, thread: self.thread })
    }

    /// The path of the barrier, below the manager's chroot.
    #[must_use]
    pub fn path(&self) -> &ZnodePath {
        self.inner.path()
    }

    /// How many members a round has.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.inner.count()
    }

    /// Waits until enough members are there, without a limit of time.
    ///
    /// # Errors
    ///
    /// [`CannotBlock`](super::CannotBlock) within an async task. Otherwise as
    /// [`DoubleBarrier::enter`](crate::DoubleBarrier::enter).
    pub fn enter(&self) -> Result<Inside, Error> {
        self.guard(self.inner.enter())
    }

    /// As [`enter`](Self::enter), for at most `timeout`.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`], which says how many members were missing. Otherwise as [`enter`](Self::enter).
    pub fn enter_timeout(&self, timeout: Duration) -> Result<Inside, Error> {
        self.guard(self.inner.enter_timeout(timeout))
    }

    /// Reads the members.
    ///
    /// # Errors
    ///
    /// [`CannotBlock`](super::CannotBlock) within an async task. Otherwise as
    /// [`DoubleBarrier::inspect`](crate::DoubleBarrier::inspect).
    pub fn inspect(&self) -> Result<DoubleBarrierInspection, Error> {
        self.block(self.inner.inspect())
    }
}

impl Inside {
    /// Leaves, and waits until all members of the round have left, without a limit of time.
    ///
    /// # Errors
    ///
    /// [`CannotBlock`](super::CannotBlock) within an async task: this member leaves
    /// in the background. Otherwise as [`Inside::leave`](crate::Inside::leave).
    pub fn leave(self) -> Result<(), Error> {
        let Self { inner, thread, .. } = self;
        thread.block_checked(inner.leave())?
    }

    /// As [`leave`](Self::leave), for at most `timeout`.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`] if other members are still inside, and [`Error::Release`] if no answer came.
    /// Otherwise as [`leave`](Self::leave).
    pub fn leave_timeout(self, timeout: Duration) -> Result<(), Error> {
        let Self { inner, thread, .. } = self;
        thread.block_checked(inner.leave_timeout(timeout))?
    }
}
