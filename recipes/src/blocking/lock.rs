use std::fmt::Debug;
use std::time::Duration;

use lockkeeper_core::{Error, ZnodePath};

use super::guard::LockGuard;
use super::runtime_thread::RuntimeThread;

/// Any of the locks for threads, or one side of one: a mutex, the reading or the writing side of a read/write lock, some
/// permits of a semaphore, several of them at once. It can be made into an object.
///
/// Not a [`ReentrantMutex`](super::ReentrantMutex): its owner is the thread that acquires it, and a guard of this face may
/// go to another.
pub trait Lock: Debug + Send + Sync {
    /// What the lock is made of, within this crate.
    #[doc(hidden)]
    fn sealed(&self) -> SealedBlocking<'_>;

    /// The whole path of the lock, chroot included; of several, the first.
    fn path(&self) -> &ZnodePath {
        self.sealed().inner.path()
    }

    /// Waits for the lock for as long as it takes.
    ///
    /// # Errors
    ///
    /// As the type's own `acquire`.
    fn acquire(&self) -> Result<LockGuard, Error> {
        let SealedBlocking { inner, thread } = self.sealed();
        Ok(LockGuard::new(thread.block_checked(inner.acquire())??, thread))
    }

    /// Waits for the lock for at most `timeout`.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`]; else as [`acquire`](Self::acquire).
    fn acquire_timeout(&self, timeout: Duration) -> Result<LockGuard, Error> {
        let SealedBlocking { inner, thread } = self.sealed();
        Ok(LockGuard::new(thread.block_checked(inner.acquire_timeout(timeout))??, thread))
    }

    /// Takes the lock if it is free now.
    ///
    /// # Errors
    ///
    /// As the type's own `try_acquire`.
    fn try_acquire(&self) -> Result<Option<LockGuard>, Error> {
        let SealedBlocking { inner, thread } = self.sealed();
        Ok(thread.block_checked(inner.try_acquire())??.map(|guard| LockGuard::new(guard, thread)))
    }
}

/// What seals [`Lock`]: it can be had only here.
#[derive(Debug)]
pub struct SealedBlocking<'a> {
    pub(super) inner: &'a dyn crate::Lock,
    pub(super) thread: &'a RuntimeThread,
}

/// The lock that is inside.
macro_rules! is_lock {
    ($($kind:ty),*) => {$(
        impl Lock for $kind {
            fn sealed(&self) -> SealedBlocking<'_> {
                SealedBlocking { inner: &self.inner, thread: &self.thread }
            }
        }
    )*};
}

is_lock!(super::Mutex, super::RwLockSide, super::Permits, super::MultiLock);
