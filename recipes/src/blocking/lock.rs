use std::fmt::Debug;
use std::time::Duration;

use lockkeeper_core::{Error, ZnodePath};

use super::events::{Events, HoldEvents};
use super::guard::MultiLockGuard;
use super::runtime_thread::RuntimeThread;
use crate::Inspection;

/// Any lock for threads: a mutex, the reading or the writing side of a read/write lock, permits of a
/// semaphore, or several locks at once. The trait is object-safe and sealed.
///
/// A [`ReentrantMutex`](super::ReentrantMutex) does not implement it: its owner is the thread that acquires
/// it, and the guards of this trait can move to other threads.
pub trait ZooKeeperLock: Debug + Send + Sync {
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
    fn acquire(&self) -> Result<MultiLockGuard, Error> {
        let SealedBlocking { inner, thread } = self.sealed();
        Ok(MultiLockGuard::new(thread.block_checked(inner.acquire())??, thread))
    }

    /// Waits for the lock, for at most `timeout`.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`]. Otherwise as [`acquire`](Self::acquire).
    fn acquire_timeout(&self, timeout: Duration) -> Result<MultiLockGuard, Error> {
        let SealedBlocking { inner, thread } = self.sealed();
        Ok(MultiLockGuard::new(thread.block_checked(inner.acquire_timeout(timeout))??, thread))
    }

    /// Takes the lock if it is free now. Otherwise returns `None`.
    ///
    /// # Errors
    ///
    /// As the type's own `try_acquire`.
    fn try_acquire(&self) -> Result<Option<MultiLockGuard>, Error> {
        let SealedBlocking { inner, thread } = self.sealed();
        Ok(thread.block_checked(inner.try_acquire())??.map(|guard| MultiLockGuard::new(guard, thread)))
    }

    /// Whether this process has a valid hold of the lock through the same manager: see
    /// [`ZooKeeperLock::is_held`](crate::locks::ZooKeeperLock::is_held). Costs no request.
    fn is_held(&self) -> bool {
        self.sealed().inner.is_held()
    }

    /// Returns the holders and the waiters of the lock, with their ages. For several locks, one snapshot
    /// each, in order.
    ///
    /// # Errors
    ///
    /// [`CannotBlock`](super::CannotBlock) within an async task. Otherwise as
    /// [`ZooKeeperLock::inspect`](crate::locks::ZooKeeperLock::inspect).
    fn inspect(&self) -> Result<Vec<Inspection>, Error> {
        let SealedBlocking { inner, thread } = self.sealed();
        thread.block_checked(inner.inspect())?
    }

    /// The events of this process's holds of the lock from now on: see
    /// [`ZooKeeperLock::events`](crate::locks::ZooKeeperLock::events).
    fn events(&self) -> HoldEvents {
        let SealedBlocking { inner, thread } = self.sealed();
        let (first, _) = inner.as_recipe().0.queues();
        Events::new(inner.events(), thread, "waiting for an event of the lock", first.whole_path())
    }
}

/// The seal of [`ZooKeeperLock`]: only this crate can make one.
#[derive(Debug)]
pub struct SealedBlocking<'a> {
    pub(super) inner: &'a dyn crate::locks::ZooKeeperLock,
    pub(super) thread: &'a RuntimeThread,
}

macro_rules! is_lock {
    ($($kind:ty),*) => {$(
        impl ZooKeeperLock for $kind {
            fn sealed(&self) -> SealedBlocking<'_> {
                SealedBlocking { inner: &self.inner, thread: &self.thread }
            }
        }
    )*};
}

is_lock!(super::Mutex, super::RwLockSide, super::Permits);

pub(super) use is_lock;
