use std::fmt::Debug;
use std::time::Duration;

use lockkeeper_core::{Error, ZnodePath};

use super::guard::LockGuard;
use super::runtime_thread::RuntimeThread;

/// Any lock for threads: a mutex, the reading or the writing side of a read/write lock, permits of a
/// semaphore, or several locks at once. The trait is object-safe and sealed.
///
/// A [`ReentrantMutex`](super::ReentrantMutex) does not implement it: its owner is the thread that acquires
/// it, and the guards of this trait can move to other threads.
pub trait Lock: Debug + Send + Sync {
    /// The crate-private side of the lock.
    #[doc(hidden)]
    fn sealed(&self) -> SealedBlocking<'_>;

    /// The path of the lock, below the manager's chroot. For several locks, the first path.
    fn path(&self) -> &ZnodePath {
        self.sealed().inner.path()
    }

    /// Waits for the lock, without a limit of time.
    ///
    /// # Errors
    ///
    /// As the type's own `acquire`.
    fn acquire(&self) -> Result<LockGuard, Error> {
        let SealedBlocking { inner, thread } = self.sealed();
        Ok(LockGuard::new(thread.block_checked(inner.acquire())??, thread))
    }

    /// Waits for the lock, for at most `timeout`.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`]. Otherwise as [`acquire`](Self::acquire).
    fn acquire_timeout(&self, timeout: Duration) -> Result<LockGuard, Error> {
        let SealedBlocking { inner, thread } = self.sealed();
        Ok(LockGuard::new(thread.block_checked(inner.acquire_timeout(timeout))??, thread))
    }

    /// Takes the lock if it is free now. Otherwise returns `None`.
    ///
    /// # Errors
    ///
    /// As the type's own `try_acquire`.
    fn try_acquire(&self) -> Result<Option<LockGuard>, Error> {
        let SealedBlocking { inner, thread } = self.sealed();
        Ok(thread.block_checked(inner.try_acquire())??.map(|guard| LockGuard::new(guard, thread)))
    }
}

/// The seal of [`Lock`]: only this crate can make one.
#[derive(Debug)]
pub struct SealedBlocking<'a> {
    pub(super) inner: &'a dyn crate::Lock,
    pub(super) thread: &'a RuntimeThread,
}

macro_rules! is_lock {
    ($($kind:ty),*) => {$(
        impl Lock for $kind {
            fn sealed(&self) -> SealedBlocking<'_> {
                SealedBlocking { inner: &self.inner, thread: &self.thread }
            }
        }
    )*};
}

is_lock!(super::Mutex, super::RwLockSide, super::Permits);

pub(super) use is_lock;
