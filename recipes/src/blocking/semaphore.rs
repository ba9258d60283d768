use std::time::Duration;

use lockkeeper_core::{Error, PathError, ReleaseError, ZnodePath};

use super::guard::{Guard, Releasable};
use super::manager::ConnectionManager;
use super::runtime_thread::RuntimeThread;

/// A semaphore over all processes, for threads: at most so many permits are out at a time. Everything is as for the
/// async [`Semaphore`](crate::Semaphore).
///
/// # Examples
///
/// ```
/// # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
/// # let server = runtime.block_on(lockkeeper_testserver::TestServer::start())?;
/// # let manager = lockkeeper::blocking::ConnectionManager::connect(&server.connect_string())?;
/// use lockkeeper::blocking::{Semaphore, SharedLimit};
///
/// let limit = SharedLimit::new(&manager, "/licences/limit")?;
/// limit.set(4)?;
/// let licences = Semaphore::with_shared_limit(&manager, "/licences/compiler", &limit)?;
/// let lease = licences.acquire_many(3)?;
/// assert_eq!((lease.permits(), licences.available()?), (3, 1));
/// lease.release()?;
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Semaphore {
    // Dropped in this order.
    inner: crate::Semaphore,
    thread: RuntimeThread,
}

/// So many permits of a [`Semaphore`], as a [`Lock`](super::Lock).
#[derive(Clone, Debug)]
pub struct Permits {
    // Dropped in this order.
    pub(super) inner: crate::Permits,
    pub(super) thread: RuntimeThread,
}

/// How many permits a [`Semaphore`] has, kept in a node. See the async [`SharedLimit`](crate::SharedLimit).
#[derive(Clone, Debug)]
pub struct SharedLimit {
    // Dropped in this order.
    inner: crate::SharedLimit,
    thread: RuntimeThread,
}

/// Permits of a [`Semaphore`] that are held: all of them are held or lost together.
pub type Lease = Guard<crate::Lease>;

impl Semaphore {
    /// The semaphore at `path`, below the manager's chroot, with `permits` in all. Nothing is sent.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] when the path is not one, or is the root, or when there are no permits at all.
    pub fn new<P>(manager: &ConnectionManager, path: P, permits: usize) -> Result<Self, Error>
    where
        P: TryInto<ZnodePath>,
        PathError: From<P::Error>,
    {
        let inner = crate::Semaphore::new(manager.as_async(), path, permits)?;
        Ok(Self { inner, thread: manager.thread().clone() })
    }

    /// The semaphore at `path` with as many permits as `limit` says at the time. Nothing is sent.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] when the path is not one, or is the root, or the limit is of another manager.
    pub fn with_shared_limit<P>(
        manager: &ConnectionManager,
        path: P,
        limit: &SharedLimit,
    ) -> Result<Self, Error>
    where
        P: TryInto<ZnodePath>,
        PathError: From<P::Error>,
    {
        let inner = crate::Semaphore::with_shared_limit(manager.as_async(), path, &limit.inner)?;
        Ok(Self { inner, thread: manager.thread().clone() })
    }

    /// What is written into the nodes of leases taken through this object, for people who look. Default: the manager's node
    /// data, which is host and process id.
    #[must_use]
    pub fn node_data(self, data: impl Into<Vec<u8>>) -> Self {
        Self { inner: self.inner.node_data(data), ..self }
    }

    /// The whole path of the semaphore, chroot included.
    #[must_use]
    pub fn path(&self) -> &ZnodePath {
        self.inner.path()
    }

    /// So many permits as a [`Lock`](super::Lock) that can be taken together with others.
    #[must_use]
    pub fn permits(&self, permits: usize) -> Permits {
        Permits { inner: self.inner.permits(permits), thread: self.thread.clone() }
    }

    /// Waits for one permit for as long as it takes.
    ///
    /// # Errors
    ///
    /// [`ConfigError::CannotBlock`](crate::ConfigError::CannotBlock) within an async task; else as
    /// [`Semaphore::acquire`](crate::Semaphore::acquire).
    pub fn acquire(&self) -> Result<Lease, Error> {
        self.acquire_many(1)
    }

    /// Waits for `permits` at once: all of them, or none.
    ///
    /// # Errors
    ///
    /// [`Error::TooManyPermits`] when there are not so many in all; else as [`acquire`](Self::acquire).
    pub fn acquire_many(&self, permits: usize) -> Result<Lease, Error> {
        Ok(Guard::new(self.thread.block_checked(self.inner.acquire_many(permits))??, &self.thread))
    }

    /// Waits for one permit for at most `timeout`.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`]; else as [`acquire`](Self::acquire).
    pub fn acquire_timeout(&self, timeout: Duration) -> Result<Lease, Error> {
        self.acquire_many_timeout(1, timeout)
    }

    /// Waits for `permits` at once for at most `timeout`.
    ///
    /// # Errors
    ///
    /// As [`acquire_many`](Self::acquire_many) and [`acquire_timeout`](Self::acquire_timeout).
    pub fn acquire_many_timeout(&self, permits: usize, timeout: Duration) -> Result<Lease, Error> {
        Ok(Guard::new(
            self.thread.block_checked(self.inner.acquire_many_timeout(permits, timeout))??,
            &self.thread,
        ))
    }

    /// Takes one permit if it is to be had now; `None` if it is not.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`] when there was no connection or no answer within the manager's operation timeout; else as
    /// [`acquire`](Self::acquire).
    pub fn try_acquire(&self) -> Result<Option<Lease>, Error> {
        self.try_acquire_many(1)
    }

    /// As [`try_acquire`](Self::try_acquire), for `permits` at once.
    ///
    /// # Errors
    ///
    /// As [`acquire_many`](Self::acquire_many) and [`try_acquire`](Self::try_acquire).
    pub fn try_acquire_many(&self, permits: usize) -> Result<Option<Lease>, Error> {
        let taken = self.thread.block_checked(self.inner.try_acquire_many(permits))??;
        Ok(taken.map(|lease| Guard::new(lease, &self.thread)))
    }

    /// How many permits are free now. It may have changed when you read this.
    ///
    /// # Errors
    ///
    /// [`ConfigError::CannotBlock`](crate::ConfigError::CannotBlock) within an async task; else as
    /// [`Semaphore::available`](crate::Semaphore::available).
    pub fn available(&self) -> Result<usize, Error> {
        self.thread.block_checked(self.inner.available())?
    }
}

impl SharedLimit {
    /// The limit at `path`, below the manager's chroot. Nothing is sent.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] when the path is not one.
    pub fn new<P>(manager: &ConnectionManager, path: P) -> Result<Self, Error>
    where
        P: TryInto<ZnodePath>,
        PathError: From<P::Error>,
    {
        let inner = crate::SharedLimit::new(manager.as_async(), path)?;
        Ok(Self { inner, thread: manager.thread().clone() })
    }

    /// How many permits there are now.
    ///
    /// # Errors
    ///
    /// [`ConfigError::CannotBlock`](crate::ConfigError::CannotBlock) within an async task; else as
    /// [`SharedLimit::read`](crate::SharedLimit::read).
    pub fn read(&self) -> Result<usize, Error> {
        self.thread.block_checked(self.inner.read())?
    }

    /// Changes how many there are. See [`SharedLimit::set`](crate::SharedLimit::set).
    ///
    /// # Errors
    ///
    /// [`ConfigError::CannotBlock`](crate::ConfigError::CannotBlock) within an async task; else as there.
    pub fn set(&self, permits: usize) -> Result<(), Error> {
        self.thread.block_checked(self.inner.set(permits))?
    }
}

impl Lease {
    /// How many permits it is.
    #[must_use]
    pub fn permits(&self) -> usize {
        self.inner().permits()
    }
}

impl Releasable for crate::Lease {
    async fn give_back(self) -> Result<(), ReleaseError> {
        self.release().await
    }
}
