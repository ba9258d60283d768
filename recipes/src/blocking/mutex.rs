use std::time::Duration;

use lockkeeper_core::{Error, IntoPath, ZnodePath};

use super::generic::Blocking;
use super::guard::Guard;
use super::manager::ConnectionManager;
use crate::Inspection;
use crate::sharing::HandOffPolicy;

/// A mutex over all processes, for threads. Everything is as for the async [`Mutex`](crate::Mutex).
///
/// The mutex is not reentrant: a thread that acquires it again waits for itself, until its timeout. Use a
/// [`ReentrantMutex`](super::ReentrantMutex) if functions that lock call each other.
///
/// # Methods
///
/// [`acquire`](Self::acquire), [`acquire_timeout`](Self::acquire_timeout),
/// [`try_acquire`](Self::try_acquire), [`with_handoff`](Self::with_handoff), [`inspect`](Self::inspect), and
/// others; and those of every [`Blocking`](super::Blocking).
///
/// # Examples
///
/// ```
/// # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
/// # let server = runtime.block_on(lockkeeper_testserver::TestServer::start())?;
/// # let manager = lockkeeper::blocking::ConnectionManager::connect(&server.connect_string())?;
/// use std::thread;
/// use std::time::Duration;
/// use lockkeeper::blocking::Mutex;
///
/// let mutex = Mutex::new(&manager, "/locks/train-7")?;
/// thread::scope(|threads| {
///     for _ in 0..3 {
///         threads.spawn(|| {
///             let guard = mutex.acquire_timeout(Duration::from_secs(10))?;
///             guard.check()?; // between steps of the work
///             Ok::<_, lockkeeper::Error>(())
///         });
///     }
/// });
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
pub type Mutex = Blocking<crate::Mutex>;

/// A held [`Mutex`].
///
/// # Methods
///
/// Those of every [`Guard`](super::Guard).
pub type MutexGuard = Guard<crate::mutex::MutexHold>;

impl Mutex {
    /// Makes the mutex at `path`, below the manager's chroot. Sends nothing.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] if the path is malformed, or is the root.
    pub fn new(manager: &ConnectionManager, path: impl IntoPath) -> Result<Self, Error> {
        Ok(manager.beside(crate::Mutex::new(manager.as_async(), path)?))
    }

    /// Makes the mutex at `path` in the layout of Curator's `InterProcessSemaphoreMutex`: see
    /// [`Mutex::in_semaphore_layout`](crate::Mutex::in_semaphore_layout).
    ///
    /// # Errors
    ///
    /// As that method.
    pub fn in_semaphore_layout(manager: &ConnectionManager, path: impl IntoPath) -> Result<Self, Error> {
        let inner = crate::Mutex::in_semaphore_layout(manager.as_async(), path)?;
        Ok(manager.beside(inner))
    }

    /// Sets the data of this mutex's nodes, for people who inspect the lock. Default: the manager's node
    /// data, which has the host and the process id.
    #[must_use]
    pub fn with_node_data(self, data: impl Into<Vec<u8>>) -> Self {
        Self { inner: self.inner.with_node_data(data), ..self }
    }

    /// Keeps the node from one guard to the next, within the bounds of `hand_off`: the threads of this
    /// process hand the lock off among themselves without a request.
    /// [`Mutex::with_handoff`](crate::Mutex::with_handoff) describes it, with threads instead of tasks. The
    /// clones of the returned mutex share the node: make one mutex, and give each thread a clone.
    ///
    /// # Errors
    ///
    /// As that method.
    ///
    /// # Examples
    ///
    /// ```
    /// # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    /// # let server = runtime.block_on(lockkeeper_testserver::TestServer::start())?;
    /// # let manager = lockkeeper::blocking::ConnectionManager::connect(&server.connect_string())?;
    /// use std::thread;
    /// use lockkeeper::config::HandOffPolicy;
    /// use lockkeeper::blocking::Mutex;
    ///
    /// let mutex = Mutex::new(&manager, "/locks/train-7")?.with_handoff(HandOffPolicy::default())?;
    /// thread::scope(|threads| {
    ///     for _ in 0..3 {
    ///         threads.spawn(|| {
    ///             let guard = mutex.acquire()?;
    ///             let token = guard.fencing_token();
    ///             println!("fenced by {} and {}", token.as_u64(), token.handover());
    ///             Ok::<_, lockkeeper::Error>(())
    ///         });
    ///     }
    /// });
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    pub fn with_handoff(self, hand_off: HandOffPolicy) -> Result<Self, Error> {
        Ok(Self { inner: self.inner.with_handoff(hand_off)?, ..self })
    }

    /// The path of the lock, below the manager's chroot.
    #[must_use]
    pub fn path(&self) -> &ZnodePath {
        self.inner.path()
    }

    /// Waits for the lock, without a limit of time.
    ///
    /// # Errors
    ///
    /// [`CannotBlock`](super::CannotBlock) within an async task. Otherwise as
    /// [`Mutex::acquire`](crate::Mutex::acquire).
    #[track_caller]
    pub fn acquire(&self) -> Result<MutexGuard, Error> {
        self.guard(self.inner.acquire())
    }

    /// Waits for the lock, for at most `timeout`.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`], which names the predecessor. Otherwise as [`acquire`](Self::acquire).
    #[track_caller]
    pub fn acquire_timeout(&self, timeout: Duration) -> Result<MutexGuard, Error> {
        self.guard(self.inner.acquire_timeout(timeout))
    }

    /// Takes the lock if it is free now. Returns `None` if any contender is ahead.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`] if there was no connection or no answer within the manager's operation timeout.
    /// Otherwise as [`acquire`](Self::acquire).
    #[track_caller]
    pub fn try_acquire(&self) -> Result<Option<MutexGuard>, Error> {
        self.try_guard(self.inner.try_acquire())
    }

    /// Returns the holders and the waiters, with their ages: a snapshot.
    ///
    /// # Errors
    ///
    /// [`CannotBlock`](super::CannotBlock) within an async task. Otherwise as
    /// [`Mutex::inspect`](crate::Mutex::inspect).
    pub fn inspect(&self) -> Result<Inspection, Error> {
        self.block(self.inner.inspect())
    }
}
