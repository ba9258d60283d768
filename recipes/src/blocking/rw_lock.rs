use std::time::Duration;

use lockkeeper_core::{Error, IntoPath, ZnodePath};

use super::generic::Blocking;
use super::guard::Guard;
use super::manager::ConnectionManager;
use crate::lock::{OwnerShare, Reading, Writing};
use crate::sharing::HandOffPolicy;
use crate::{Inspection, Owner};

/// A read/write lock over all processes, for threads. Everything is as for the async
/// [`RwLock`](crate::RwLock).
///
/// The lock is reentrant only [for an owner](Self::for_owner). A guard can move to another thread, so the
/// thread is not the owner.
///
/// # Methods
///
/// [`read`](Self::read), [`write`](Self::write), their variants with `_timeout` and `try_`,
/// [`reader`](Self::reader), [`writer`](Self::writer), and others; and those of every
/// [`Blocking`](super::Blocking).
///
/// # Examples
///
/// ```
/// # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
/// # let server = runtime.block_on(lockkeeper_testserver::TestServer::start())?;
/// # let manager = lockkeeper::blocking::ConnectionManager::connect(&server.connect_string())?;
/// use lockkeeper::blocking::RwLock;
///
/// let lock = RwLock::new(&manager, "/locks/price-list")?;
/// let read = lock.read()?;
/// assert!(lock.try_write()?.is_none());
/// read.release()?;
///
/// let write = lock.write()?;
/// let read = write.downgrade()?; // no writer comes between
/// read.release()?;
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
pub type RwLock = Blocking<crate::RwLock>;

/// One side of an [`RwLock`], as a [`ZooKeeperLock`](super::ZooKeeperLock).
///
/// # Methods
///
/// Those of the trait [`ZooKeeperLock`](super::ZooKeeperLock), and of every [`Blocking`](super::Blocking).
pub type RwLockSide = Blocking<crate::rw_lock::RwLockSide>;

/// An [`RwLock`] held for reading.
///
/// # Methods
///
/// Those of every [`Guard`](super::Guard), and [`try_upgrade`](Self::try_upgrade).
pub type ReadGuard = Guard<OwnerShare<Reading>>;

/// An [`RwLock`] held for writing.
///
/// # Methods
///
/// Those of every [`Guard`](super::Guard), and [`downgrade`](Self::downgrade).
pub type WriteGuard = Guard<OwnerShare<Writing>>;

/// The reason why an upgrade failed. It has the read guard, unchanged.
///
/// # Methods
///
/// Those of the async [`UpgradeError`](crate::error::UpgradeError).
pub type UpgradeError = crate::rw_lock::UpgradeError<ReadGuard>;

impl RwLock {
    /// Makes the lock at `path`, below the manager's chroot. Sends nothing.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] if the path is malformed, or is the root.
    pub fn new(manager: &ConnectionManager, path: impl IntoPath) -> Result<Self, Error> {
        Ok(manager.beside(crate::RwLock::new(manager.as_async(), path)?))
    }

    /// Sets the data of this lock's nodes, for people who inspect the lock. Default: the manager's node data,
    /// which has the host and the process id.
    #[must_use]
    pub fn with_node_data(self, data: impl Into<Vec<u8>>) -> Self {
        Self { inner: self.inner.with_node_data(data), ..self }
    }

    /// Lets the readers of this process share one node, within the bounds of `hand_off`.
    /// [`RwLock::with_handoff`](crate::RwLock::with_handoff) describes it, with threads instead of tasks. The
    /// clones of the returned lock share the node: make one lock, and give each thread a clone.
    ///
    /// # Errors
    ///
    /// As that method.
    pub fn with_handoff(self, hand_off: HandOffPolicy) -> Result<Self, Error> {
        Ok(Self { inner: self.inner.with_handoff(hand_off)?, ..self })
    }

    /// Returns the same lock for `owner`, which can acquire it again while it holds the lock, in any thread.
    #[must_use]
    pub fn for_owner(&self, owner: &Owner) -> Self {
        self.beside(self.inner.for_owner(owner))
    }

    /// The path of the lock, below the manager's chroot.
    #[must_use]
    pub fn path(&self) -> &ZnodePath {
        self.inner.path()
    }

    /// The number of read guards that `owner` has now, in this process.
    #[must_use]
    pub fn read_hold_count(&self, owner: &Owner) -> u32 {
        self.inner.read_hold_count(owner)
    }

    /// The number of write guards that `owner` has now, in this process.
    #[must_use]
    pub fn write_hold_count(&self, owner: &Owner) -> u32 {
        self.inner.write_hold_count(owner)
    }

    /// The reading side, as a [`ZooKeeperLock`](super::ZooKeeperLock).
    #[must_use]
    pub fn reader(&self) -> RwLockSide {
        self.beside(self.inner.reader())
    }

    /// The writing side, as a [`ZooKeeperLock`](super::ZooKeeperLock).
    #[must_use]
    pub fn writer(&self) -> RwLockSide {
        self.beside(self.inner.writer())
    }

    /// Waits until no writer is ahead, without a limit of time. Returns at once if the owner holds the lock.
    ///
    /// # Errors
    ///
    /// [`CannotBlock`](super::CannotBlock) within an async task. Otherwise as
    /// [`RwLock::read`](crate::RwLock::read).
    #[track_caller]
    pub fn read(&self) -> Result<ReadGuard, Error> {
        self.guard(self.inner.read())
    }

    /// As [`read`](Self::read), for at most `timeout`.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`], which names the predecessor. Otherwise as [`read`](Self::read).
    #[track_caller]
    pub fn read_timeout(&self, timeout: Duration) -> Result<ReadGuard, Error> {
        self.guard(self.inner.read_timeout(timeout))
    }

    /// Takes the lock for reading if no writer is ahead now. Otherwise returns `None`.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`] if there was no connection or no answer within the manager's operation timeout.
    /// Otherwise as [`read`](Self::read).
    #[track_caller]
    pub fn try_read(&self) -> Result<Option<ReadGuard>, Error> {
        self.try_guard(self.inner.try_read())
    }

    /// Waits until no contender is ahead, without a limit of time.
    ///
    /// # Errors
    ///
    /// [`CannotBlock`](super::CannotBlock) within an async task. Otherwise as
    /// [`RwLock::write`](crate::RwLock::write).
    #[track_caller]
    pub fn write(&self) -> Result<WriteGuard, Error> {
        self.guard(self.inner.write())
    }

    /// As [`write`](Self::write), for at most `timeout`.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`], which names the predecessor. Otherwise as [`write`](Self::write).
    #[track_caller]
    pub fn write_timeout(&self, timeout: Duration) -> Result<WriteGuard, Error> {
        self.guard(self.inner.write_timeout(timeout))
    }

    /// Takes the lock for writing if it is free now. Returns `None` if any contender is ahead.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`] if there was no connection or no answer within the manager's operation timeout.
    /// Otherwise as [`write`](Self::write).
    #[track_caller]
    pub fn try_write(&self) -> Result<Option<WriteGuard>, Error> {
        self.try_guard(self.inner.try_write())
    }

    /// Returns the holders and the waiters, with their ages: a snapshot.
    ///
    /// # Errors
    ///
    /// [`CannotBlock`](super::CannotBlock) within an async task. Otherwise as
    /// [`RwLock::inspect`](crate::RwLock::inspect).
    pub fn inspect(&self) -> Result<Inspection, Error> {
        self.block(self.inner.inspect())
    }
}

impl ReadGuard {
    /// Turns this guard into a write guard, if no other contender reads or is ahead now. Never waits. See
    /// [`ReadGuard::try_upgrade`](crate::ReadGuard::try_upgrade).
    ///
    /// # Errors
    ///
    /// [`UpgradeError::NotAlone`] if another contender is ahead, and otherwise [`UpgradeError::Failed`]. Both
    /// return the guard.
    #[track_caller]
    pub fn try_upgrade(self) -> Result<WriteGuard, UpgradeError> {
        if let Err(refused) = self.thread.may_block() {
            return Err(UpgradeError::Failed { guard: self, error: refused.into() });
        }
        let Self { inner, thread, .. } = self;
        let back = |guard| Self::new(guard, &thread);
        match thread.run(inner.try_upgrade()) {
            Ok(write) => Ok(Guard::new(write, &thread)),
            Err(crate::rw_lock::UpgradeError::NotAlone { guard }) => {
                Err(UpgradeError::NotAlone { guard: back(guard) })
            }
            Err(crate::rw_lock::UpgradeError::Failed { guard, error }) => {
                Err(UpgradeError::Failed { guard: back(guard), error })
            }
        }
    }
}

impl WriteGuard {
    /// Turns this guard into a read guard. The lock is not free at any instant. See
    /// [`WriteGuard::downgrade`](crate::WriteGuard::downgrade).
    ///
    /// # Errors
    ///
    /// [`CannotBlock`](super::CannotBlock) within an async task; otherwise as that
    /// method. This guard is released then.
    #[track_caller]
    pub fn downgrade(self) -> Result<ReadGuard, Error> {
        let Self { inner, thread, .. } = self;
        Ok(Guard::new(thread.block_checked(inner.downgrade())??, &thread))
    }
}
