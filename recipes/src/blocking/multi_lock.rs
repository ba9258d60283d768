use std::time::Duration;

use lockkeeper_core::{Error, ZnodePath};

use super::error::CannotBlock;
use super::generic::Blocking;
use super::guard::MultiLockGuard;
use super::lock::{SealedBlocking, ZooKeeperLock, is_lock};
use super::runtime_thread::RuntimeThread;
use crate::Inspection;
use crate::multi_lock::MultiLockError;
use crate::multi_lock::no_member;

/// Several locks, taken together or not at all, for threads. Everything is as for the async
/// [`MultiLock`](crate::MultiLock).
///
/// # Methods
///
/// [`builder`](Self::builder), [`acquire`](Self::acquire), [`acquire_timeout`](Self::acquire_timeout),
/// [`try_acquire`](Self::try_acquire), and others; and those of every [`Blocking`](super::Blocking).
///
/// # Examples
///
/// ```
/// # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
/// # let server = runtime.block_on(lockkeeper_testserver::TestServer::start())?;
/// # let manager = lockkeeper::blocking::ConnectionManager::connect(&server.connect_string())?;
/// use lockkeeper::blocking::{MultiLock, Mutex};
///
/// let alice = Mutex::new(&manager, "/accounts/alice")?;
/// let bob = Mutex::new(&manager, "/accounts/bob")?;
///
/// // The order of the names does not matter.
/// let both = MultiLock::builder().lock(&bob).lock(&alice).build()?;
/// let guard = both.acquire()?;
/// assert_eq!(guard.fencing_tokens().count(), 2);
/// guard.release()?;
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
pub type MultiLock = Blocking<crate::MultiLock>;

/// The members of a [`MultiLock`], and the way to take them.
#[derive(Debug, Default)]
#[must_use = "nothing is made before build()"]
pub struct MultiLockBuilder {
    inner: crate::multi_lock::MultiLockBuilder,
    /// The first member's manager: all members must have one manager.
    thread: Option<RuntimeThread>,
}

impl MultiLock {
    /// Starts to name the locks.
    pub fn builder() -> MultiLockBuilder {
        MultiLockBuilder::default()
    }

    /// The whole paths of the members, in the order in which they are taken.
    pub fn paths(&self) -> impl Iterator<Item = &ZnodePath> {
        self.inner.paths()
    }

    /// Waits for all members, without a limit of time.
    ///
    /// # Errors
    ///
    /// [`CannotBlock`] within an async task. Otherwise as
    /// [`MultiLock::acquire`](crate::MultiLock::acquire).
    #[track_caller]
    pub fn acquire(&self) -> Result<MultiLockGuard, MultiLockError> {
        let acquired =
            self.thread.block_checked(self.inner.acquire()).map_err(|refused| self.refused(refused))?;
        Ok(MultiLockGuard::new(acquired?, &self.thread))
    }

    /// Waits for all members, for at most `timeout` altogether.
    ///
    /// # Errors
    ///
    /// As [`acquire`](Self::acquire). The reason [`Error::Timeout`] names the predecessor.
    #[track_caller]
    pub fn acquire_timeout(&self, timeout: Duration) -> Result<MultiLockGuard, MultiLockError> {
        let acquired = self.thread.block_checked(self.inner.acquire_timeout(timeout));
        Ok(MultiLockGuard::new(acquired.map_err(|refused| self.refused(refused))??, &self.thread))
    }

    /// Takes all members if all are free now. Otherwise returns `None`.
    ///
    /// # Errors
    ///
    /// As [`acquire`](Self::acquire). The reason is [`Error::Timeout`] if there was no connection or no
    /// answer within the manager's operation timeout.
    #[track_caller]
    pub fn try_acquire(&self) -> Result<Option<MultiLockGuard>, MultiLockError> {
        let taken =
            self.thread.block_checked(self.inner.try_acquire()).map_err(|refused| self.refused(refused))?;
        Ok(taken?.map(|guard| MultiLockGuard::new(guard, &self.thread)))
    }

    /// Returns the holders and the waiters of each member, in order: one snapshot each.
    ///
    /// # Errors
    ///
    /// [`CannotBlock`] within an async task. Otherwise as
    /// [`MultiLock::inspect`](crate::MultiLock::inspect).
    pub fn inspect(&self) -> Result<Vec<Inspection>, Error> {
        self.block(self.inner.inspect())
    }

    fn refused(&self, refused: CannotBlock) -> MultiLockError {
        MultiLockError::at(crate::locks::ZooKeeperLock::path(&self.inner), refused.into())
    }
}

impl MultiLockBuilder {
    /// Adds a member. The order does not matter.
    pub fn lock(self, lock: &dyn ZooKeeperLock) -> Self {
        let SealedBlocking { inner, thread } = lock.sealed();
        let first = self.thread.unwrap_or_else(|| thread.clone());
        Self { inner: self.inner.lock(inner), thread: Some(first) }
    }

    /// Adds several members.
    pub fn locks<'a>(self, locks: impl IntoIterator<Item = &'a dyn ZooKeeperLock>) -> Self {
        locks.into_iter().fold(self, Self::lock)
    }

    /// Queues for all members at once, and waits in all queues. Default: in order, one member after another.
    /// See [`MultiLockBuilder::atomic`](crate::multi_lock::MultiLockBuilder::atomic).
    pub fn atomic(self) -> Self {
        Self { inner: self.inner.atomic(), ..self }
    }

    /// Admits owners that hold other locks already. Default: refused. See
    /// [`MultiLockBuilder::allow_nesting`](crate::multi_lock::MultiLockBuilder::allow_nesting).
    pub fn allow_nesting(self) -> Self {
        Self { inner: self.inner.allow_nesting(), ..self }
    }

    /// Sorts the members, and checks them. Sends nothing.
    ///
    /// # Errors
    ///
    /// As [`MultiLockBuilder::build`](crate::multi_lock::MultiLockBuilder::build).
    pub fn build(self) -> Result<MultiLock, Error> {
        let thread = self.thread.ok_or_else(no_member)?;
        Ok(MultiLock { inner: self.inner.build()?, thread })
    }
}

is_lock!(MultiLock);
