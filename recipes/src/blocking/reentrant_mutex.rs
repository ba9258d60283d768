use std::marker::PhantomData;
use std::ops::Deref;
use std::thread;
use std::time::Duration;

use lockkeeper_core::{Error, Hold, PathError, ReleaseError, ZnodePath};

use super::guard::{Guard, Releasable};
use super::manager::ConnectionManager;
use super::runtime_thread::RuntimeThread;
use crate::{OwnedReentrantMutexGuard, Owner};

thread_local! {
    /// Its name is the thread's, for people who look at the node.
    static THIS_THREAD: Owner = Owner::new(thread::current().name().unwrap_or_default());
}

/// A mutex over all processes that the thread which holds it may take again.
///
/// The owner is the thread: another one waits. So its guards stay on their thread. Where ownership is to follow the work
/// instead, as from one thread to the next, take the async [`ReentrantMutex`](crate::ReentrantMutex) with an [`Owner`]
/// through [`ConnectionManager::block_on`]. Everything else is as there; the thread's name is written into the node.
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
#[derive(Clone, Debug)]
pub struct ReentrantMutex {
    // Dropped in this order.
    inner: crate::ReentrantMutex,
    thread: RuntimeThread,
}

/// One hold of a [`ReentrantMutex`]. Dropping the thread's last one releases the lock in the background.
pub type ReentrantMutexGuard = Guard<ThreadBound>;

/// A guard that stays on its thread.
#[derive(Debug)]
pub struct ThreadBound(OwnedReentrantMutexGuard, PhantomData<*const ()>);

impl ReentrantMutex {
    /// The mutex at `path`, below the manager's chroot. Nothing is sent.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] when the path is not one, or is the root.
    pub fn new<P>(manager: &ConnectionManager, path: P) -> Result<Self, Error>
    where
        P: TryInto<ZnodePath>,
        PathError: From<P::Error>,
    {
        let inner = crate::ReentrantMutex::new(manager.as_async(), path)?;
        Ok(Self { inner, thread: manager.thread().clone() })
    }

    /// What is written into the nodes of this mutex's contenders, before the thread's name. Default: the manager's node data,
    /// which is host and process id.
    #[must_use]
    pub fn node_data(self, data: impl Into<Vec<u8>>) -> Self {
        Self { inner: self.inner.node_data(data), ..self }
    }

    /// The whole path of the lock, chroot included.
    #[must_use]
    pub fn path(&self) -> &ZnodePath {
        self.inner.path()
    }

    /// How many guards this thread has now.
    #[must_use]
    pub fn hold_count(&self) -> usize {
        self.inner.hold_count(&this_thread())
    }

    /// Waits for the lock for as long as it takes; at once if this thread holds it.
    ///
    /// # Errors
    ///
    /// [`Error::Lost`] when this thread still keeps guards of a hold that was lost.
    /// [`ConfigError::CannotBlock`](crate::ConfigError::CannotBlock) within an async task. Else as
    /// [`ReentrantMutex::acquire`](crate::ReentrantMutex::acquire).
    pub fn acquire(&self) -> Result<ReentrantMutexGuard, Error> {
        Ok(self.guard(self.thread.block_checked(self.inner.acquire_owned(&this_thread()))??))
    }

    /// Waits for the lock for at most `timeout`.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`]; else as [`acquire`](Self::acquire).
    pub fn acquire_timeout(&self, timeout: Duration) -> Result<ReentrantMutexGuard, Error> {
        Ok(self.guard(self.thread.block_checked(self.inner.acquire_owned_timeout(&this_thread(), timeout))??))
    }

    /// Takes the lock if it is free or held by this thread; `None` if not.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`] when there was no connection or no answer within the manager's operation timeout; else as
    /// [`acquire`](Self::acquire).
    pub fn try_acquire(&self) -> Result<Option<ReentrantMutexGuard>, Error> {
        let taken = self.thread.block_checked(self.inner.try_acquire_owned(&this_thread()))??;
        Ok(taken.map(|guard| self.guard(guard)))
    }

    fn guard(&self, guard: OwnedReentrantMutexGuard) -> ReentrantMutexGuard {
        Guard::new(ThreadBound(guard, PhantomData), &self.thread)
    }
}

/// Whom this thread's holds belong to. A thread whose locals are gone cannot wait, so who it is does not matter.
fn this_thread() -> Owner {
    THIS_THREAD.try_with(Owner::clone).unwrap_or_else(|_| Owner::anonymous())
}

impl Deref for ThreadBound {
    type Target = Hold;

    fn deref(&self) -> &Hold {
        &self.0
    }
}

impl Releasable for ThreadBound {
    async fn give_back(self) -> Result<(), ReleaseError> {
        self.0.release().await
    }
}
