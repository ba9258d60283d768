use std::time::Duration;

use lockkeeper_core::{Error, IntoPath, ZnodePath};

use super::generic::Blocking;
use super::guard::Guard;
use super::manager::ConnectionManager;
use crate::Inspection;
use crate::semaphore::SharedLimit;
use crate::sharing::HandOffPolicy;

/// A semaphore over all processes, for threads: at most a given number of permits are in use at a time.
/// Everything is as for the async [`Semaphore`](crate::Semaphore).
///
/// # Methods
///
/// [`acquire`](Self::acquire), [`acquire_many`](Self::acquire_many), their variants with `_timeout` and
/// `try_`, [`available`](Self::available), and others; and those of every [`Blocking`](super::Blocking).
///
/// # Examples
///
/// ```
/// # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
/// # let server = runtime.block_on(lockkeeper_testserver::TestServer::start())?;
/// # let manager = lockkeeper::blocking::ConnectionManager::connect(&server.connect_string())?;
/// use lockkeeper::locks::SharedLimit;
/// use lockkeeper::blocking::Semaphore;
///
/// let limit = manager.wrap(async |manager| SharedLimit::new(manager, "/licences/limit"))?;
/// limit.call(async |limit| limit.set(4).await)?;
/// let licences = Semaphore::new_shared(&manager, "/licences/compiler", limit.as_async())?;
/// let lease = licences.acquire_many(3)?;
/// assert_eq!((lease.permits(), licences.available()?), (3, 1));
/// lease.release()?;
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
pub type Semaphore = Blocking<crate::Semaphore>;

/// A number of permits of a [`Semaphore`], as a [`ZooKeeperLock`](super::ZooKeeperLock).
///
/// # Methods
///
/// Those of the trait [`ZooKeeperLock`](super::ZooKeeperLock), and of every [`Blocking`](super::Blocking).
pub type Permits = Blocking<crate::semaphore::Permits>;

/// One or more held permits of a [`Semaphore`]. All of them are held or lost together.
///
/// # Methods
///
/// Those of every [`Guard`](super::Guard), and [`permits`](Self::permits).
pub type Lease = Guard<crate::semaphore::PermitsHold>;

impl Semaphore {
    /// Makes the semaphore at `path`, below the manager's chroot, with a fixed limit of `permits`. Sends
    /// nothing.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] if the path is malformed, or is the root, or if `permits` is zero.
    pub fn new(manager: &ConnectionManager, path: impl IntoPath, permits: u32) -> Result<Self, Error> {
        let inner = crate::Semaphore::new(manager.as_async(), path, permits)?;
        Ok(manager.beside(inner))
    }

    /// Makes the semaphore at `path` with the limit that `limit` has at the time of each acquire. Sends
    /// nothing.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] if the path is malformed, or is the root, or if the limit is of another manager.
    pub fn new_shared(
        manager: &ConnectionManager,
        path: impl IntoPath,
        limit: &SharedLimit,
    ) -> Result<Self, Error> {
        let inner = crate::Semaphore::new_shared(manager.as_async(), path, limit)?;
        Ok(manager.beside(inner))
    }

    /// Sets the data of this semaphore's nodes, for people who inspect the lock. Default: the manager's node
    /// data, which has the host and the process id.
    #[must_use]
    pub fn with_node_data(self, data: impl Into<Vec<u8>>) -> Self {
        Self { inner: self.inner.with_node_data(data), ..self }
    }

    /// Keeps the node of a permit from one lease to the next, within the bounds of `hand_off`: the threads of
    /// this process hand permits off among themselves without a request.
    /// [`Semaphore::with_handoff`](crate::Semaphore::with_handoff) describes it, with threads instead of
    /// tasks. The clones of the returned semaphore share the nodes: make one semaphore, and give each thread
    /// a clone.
    ///
    /// # Errors
    ///
    /// As that method.
    pub fn with_handoff(self, hand_off: HandOffPolicy) -> Result<Self, Error> {
        Ok(Self { inner: self.inner.with_handoff(hand_off)?, ..self })
    }

    /// The path of the semaphore, below the manager's chroot.
    #[must_use]
    pub fn path(&self) -> &ZnodePath {
        self.inner.path()
    }

    /// Returns `permits` permits as a [`ZooKeeperLock`](super::ZooKeeperLock), to take them together with
    /// other locks.
    #[must_use]
    pub fn permits(&self, permits: u32) -> Permits {
        self.beside(self.inner.permits(permits))
    }

    /// Waits for one permit, without a limit of time.
    ///
    /// # Errors
    ///
    /// [`CannotBlock`](super::CannotBlock) within an async task. Otherwise as
    /// [`Semaphore::acquire`](crate::Semaphore::acquire).
    #[track_caller]
    pub fn acquire(&self) -> Result<Lease, Error> {
        self.acquire_many(1)
    }

    /// Waits for `permits` permits, without a limit of time. Takes all of them at once.
    ///
    /// # Errors
    ///
    /// [`SemaphoreError::TooManyPermits`](crate::semaphore::SemaphoreError::TooManyPermits) if `permits`
    /// is above the limit. Otherwise as [`acquire`](Self::acquire).
    #[track_caller]
    pub fn acquire_many(&self, permits: u32) -> Result<Lease, Error> {
        self.guard(self.inner.acquire_many(permits))
    }

    /// Waits for one permit, for at most `timeout`.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`]. Otherwise as [`acquire`](Self::acquire).
    #[track_caller]
    pub fn acquire_timeout(&self, timeout: Duration) -> Result<Lease, Error> {
        self.acquire_many_timeout(1, timeout)
    }

    /// Waits for `permits` permits, for at most `timeout`. Takes all of them at once.
    ///
    /// # Errors
    ///
    /// As [`acquire_many`](Self::acquire_many) and [`acquire_timeout`](Self::acquire_timeout).
    #[track_caller]
    pub fn acquire_many_timeout(&self, permits: u32, timeout: Duration) -> Result<Lease, Error> {
        self.guard(self.inner.acquire_many_timeout(permits, timeout))
    }

    /// Takes one permit if one is free now, and no contender is ahead. Otherwise returns `None`.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`] if there was no connection or no answer within the manager's operation timeout.
    /// Otherwise as [`acquire`](Self::acquire).
    #[track_caller]
    pub fn try_acquire(&self) -> Result<Option<Lease>, Error> {
        self.try_acquire_many(1)
    }

    /// As [`try_acquire`](Self::try_acquire), for `permits` permits at once.
    ///
    /// # Errors
    ///
    /// As [`acquire_many`](Self::acquire_many) and [`try_acquire`](Self::try_acquire).
    #[track_caller]
    pub fn try_acquire_many(&self, permits: u32) -> Result<Option<Lease>, Error> {
        self.try_guard(self.inner.try_acquire_many(permits))
    }

    /// The number of permits that are free now. It may be stale when the caller reads it.
    ///
    /// # Errors
    ///
    /// [`CannotBlock`](super::CannotBlock) within an async task. Otherwise as
    /// [`Semaphore::available`](crate::Semaphore::available).
    pub fn available(&self) -> Result<u32, Error> {
        self.block(self.inner.available())
    }

    /// Returns the holders, the waiters, the limit and the number of free permits: a snapshot.
    ///
    /// # Errors
    ///
    /// [`CannotBlock`](super::CannotBlock) within an async task. Otherwise as
    /// [`Semaphore::inspect`](crate::Semaphore::inspect).
    pub fn inspect(&self) -> Result<Inspection, Error> {
        self.block(self.inner.inspect())
    }
}

impl Lease {
    /// The number of permits of this lease.
    #[must_use]
    pub fn permits(&self) -> u32 {
        self.inner.permits()
    }
}
