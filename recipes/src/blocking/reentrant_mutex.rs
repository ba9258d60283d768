use std::thread;
use std::time::Duration;

use lockkeeper_core::{Error, IntoPath, ZnodePath};

use super::generic::Blocking;
use super::guard::Guard;
use super::manager::ConnectionManager;
use crate::lock::{OwnerShare, Reentrant};
use crate::owner::anonymous;
use crate::{Inspection, Owner};

thread_local! {
    /// Its name is that of the thread, for people who inspect the lock.
    static THIS_THREAD: Owner = Owner::new(thread::current().name().unwrap_or_default());
}

/// A mutex over all processes that the holding thread can acquire again.
///
/// The owner is the thread, so its guards cannot leave the thread. If ownership has to follow the work
/// instead, from one thread to the next, [`wrap`](ConnectionManager::wrap) the async
/// [`ReentrantMutex`](crate::ReentrantMutex) with an [`Owner`]. Everything else is as for that type. The node
/// has the thread's name.
///
/// # Methods
///
/// [`acquire`](Self::acquire), [`acquire_timeout`](Self::acquire_timeout),
/// [`try_acquire`](Self::try_acquire), and others; and those of every [`Blocking`](super::Blocking).
///
/// # Examples
///
/// ```
/// # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
/// # let server = runtime.block_on(lockkeeper_testserver::TestServer::start())?;
/// # let manager = lockkeeper::blocking::ConnectionManager::connect(&server.connect_string())?;
/// use lockkeeper::blocking::ReentrantMutex;
///
/// let mutex = ReentrantMutex::new(&manager, "/locks/order-4711")?;
/// let outer = mutex.acquire()?;
/// let inner = mutex.acquire()?; // no round trip
/// assert_eq!(mutex.hold_count(), 2);
/// std::thread::scope(|threads| {
///     threads.spawn(|| assert!(mutex.try_acquire().is_ok_and(|taken| taken.is_none())));
/// });
/// inner.release()?; // none either
/// outer.release()?;
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
///
/// A guard cannot leave its thread:
///
/// ```compile_fail,E0277
/// # fn example(mutex: lockkeeper::blocking::ReentrantMutex) -> Result<(), lockkeeper::Error> {
/// let guard = mutex.acquire()?;
/// std::thread::spawn(move || drop(guard));
/// # Ok(())
/// # }
/// ```
pub type ReentrantMutex = Blocking<crate::ReentrantMutex>;

/// One hold of a [`ReentrantMutex`]. A drop of the thread's last guard releases the lock in the background.
///
/// # Methods
///
/// Those of every [`Guard`](super::Guard).
pub type ReentrantMutexGuard = Guard<OwnerShare<Reentrant>, *const ()>;

impl ReentrantMutex {
    /// Makes the mutex at `path`, below the manager's chroot. Sends nothing.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] if the path is malformed, or is the root.
    pub fn new(manager: &ConnectionManager, path: impl IntoPath) -> Result<Self, Error> {
        let inner = crate::ReentrantMutex::new(manager.as_async(), path)?;
        Ok(manager.beside(inner))
    }

    /// Sets the data of this mutex's nodes; the thread's name is appended. Default: the manager's node data,
    /// which has the host and the process id.
    #[must_use]
    pub fn with_node_data(self, data: impl Into<Vec<u8>>) -> Self {
        Self { inner: self.inner.with_node_data(data), ..self }
    }

    /// The path of the lock, below the manager's chroot.
    #[must_use]
    pub fn path(&self) -> &ZnodePath {
        self.inner.path()
    }

    /// The number of guards that this thread has now.
    #[must_use]
    pub fn hold_count(&self) -> u32 {
        self.inner.hold_count(&this_thread())
    }

    /// Waits for the lock, without a limit of time. Returns at once if this thread holds it.
    ///
    /// # Errors
    ///
    /// [`Error::Lost`] if this thread still keeps guards of a lost hold.
    /// [`CannotBlock`](super::CannotBlock) within an async task. Otherwise as
    /// [`ReentrantMutex::acquire`](crate::ReentrantMutex::acquire).
    #[track_caller]
    pub fn acquire(&self) -> Result<ReentrantMutexGuard, Error> {
        self.guard(self.inner.acquire(&this_thread()))
    }

    /// Waits for the lock, for at most `timeout`.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`]. Otherwise as [`acquire`](Self::acquire).
    #[track_caller]
    pub fn acquire_timeout(&self, timeout: Duration) -> Result<ReentrantMutexGuard, Error> {
        self.guard(self.inner.acquire_timeout(&this_thread(), timeout))
    }

    /// Takes the lock if it is free now, or if this thread holds it. Otherwise returns `None`.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`] if there was no connection or no answer within the manager's operation timeout.
    /// Otherwise as [`acquire`](Self::acquire).
    #[track_caller]
    pub fn try_acquire(&self) -> Result<Option<ReentrantMutexGuard>, Error> {
        self.try_guard(self.inner.try_acquire(&this_thread()))
    }

    /// Returns the holders and the waiters, with their ages: a snapshot.
    ///
    /// # Errors
    ///
    /// [`CannotBlock`](super::CannotBlock) within an async task. Otherwise as
    /// [`ReentrantMutex::inspect`](crate::ReentrantMutex::inspect).
    pub fn inspect(&self) -> Result<Inspection, Error> {
        self.block(self.inner.inspect())
    }
}

/// The owner of this thread's holds. A thread without its locals cannot wait, so its owner does not matter.
fn this_thread() -> Owner {
    THIS_THREAD.try_with(Owner::clone).unwrap_or_else(|_| anonymous())
}
