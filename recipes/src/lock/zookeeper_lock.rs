use std::fmt::Debug;
use std::time::Duration;

use futures::future::BoxFuture;
use lockkeeper_core::{Deadline, Error, HoldEvents, LockQueue, ZnodePath};

use super::multi_lock_guard::MultiLockGuard;
use super::recipe::Sealed;
use crate::inspection::Inspection;

/// Any lock of this crate, with what only locks on ZooKeeper have: inspections, events, guards with
/// [transactions](crate::Guard::txn), and a place in a [`MultiLock`](crate::MultiLock). It is a mutex, a
/// reentrant mutex for an owner, the reading or the writing side of a read/write lock, permits of a
/// semaphore, the leadership of an election, or several locks at once.
///
/// Code that needs none of this takes a [`&dyn Lock`](crate::Lock), and so a lock of any engine.
///
/// The trait is object-safe: `Box<dyn ZooKeeperLock>`. The types themselves have more methods, and their
/// methods of the same names return guards with more methods. The trait is sealed: other crates cannot
/// implement it.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = lockkeeper_testserver::TestServer::start().await?;
/// # let servers = server.connect_string();
/// use lockkeeper::locks::ZooKeeperLock;
/// use lockkeeper::{ConnectionManager, Mutex};
/// use lockkeeper::manager::HoldEvent;
///
/// async fn once(lock: &dyn ZooKeeperLock) -> Result<(), Box<dyn std::error::Error>> {
///     let guard = lock.acquire().await?;
///     guard.run(async { println!("{} is held", lock.path()) }).await?;
///     guard.release().await?;
///     Ok(())
/// }
///
/// let manager = ConnectionManager::connect(&servers).await?; // host:port,host:port,…
/// let lock: Box<dyn ZooKeeperLock> = Box::new(Mutex::new(&manager, "/locks/report")?);
/// let mut events = lock.events();
/// once(&*lock).await?;
/// assert!(matches!(events.next().await, Some(HoldEvent::Acquired { .. })));
/// assert!(matches!(events.next().await, Some(HoldEvent::Released { .. })));
/// # Ok(())
/// # }
/// ```
pub trait ZooKeeperLock: Debug + Send + Sync {
    /// The crate-private side of the lock.
    #[doc(hidden)]
    fn as_recipe(&self) -> Sealed<'_>;

    /// The path of the lock, below the manager's chroot. For several locks, the first path.
    fn path(&self) -> &ZnodePath {
        self.as_recipe().0.path()
    }

    /// Waits for the lock, without a limit of time.
    ///
    /// # Errors
    ///
    /// As the type's own `acquire`.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe at every await: the position in the queue is lost, and no node is left behind.
    fn acquire(&self) -> BoxFuture<'_, Result<MultiLockGuard, Error>> {
        self.as_recipe().0.acquire(Deadline::never())
    }

    /// Waits for the lock, for at most `timeout`.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`]. Otherwise as [`acquire`](Self::acquire).
    ///
    /// # Cancel safety
    ///
    /// As [`acquire`](Self::acquire).
    fn acquire_timeout(&self, timeout: Duration) -> BoxFuture<'_, Result<MultiLockGuard, Error>> {
        self.as_recipe().0.acquire(Deadline::after(timeout))
    }

    /// As [`acquire`](Self::acquire), by a future that borrows nothing: it can be spawned, or kept in a
    /// struct.
    ///
    /// # Errors
    ///
    /// As [`acquire`](Self::acquire).
    ///
    /// # Cancel safety
    ///
    /// As [`acquire`](Self::acquire).
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = lockkeeper_testserver::TestServer::start().await?;
    /// # let manager = lockkeeper::ConnectionManager::connect(&server.connect_string()).await?;
    /// use lockkeeper::Mutex;
    /// use lockkeeper::locks::ZooKeeperLock;
    ///
    /// let acquiring = tokio::spawn(Mutex::new(&manager, "/locks/report")?.acquire_owned());
    /// let guard = acquiring.await??;
    /// guard.release().await?;
    /// # Ok(())
    /// # }
    /// ```
    fn acquire_owned(&self) -> BoxFuture<'static, Result<MultiLockGuard, Error>> {
        let recipe = self.as_recipe().0.shared();
        Box::pin(async move { recipe.acquire(Deadline::never()).await })
    }

    /// Takes the lock if it is free now. Otherwise returns `None`.
    ///
    /// # Errors
    ///
    /// As the type's own `try_acquire`.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: no node is left behind.
    fn try_acquire(&self) -> BoxFuture<'_, Result<Option<MultiLockGuard>, Error>> {
        self.as_recipe().0.try_acquire()
    }

    /// Whether this process has a valid hold of the lock through the same manager, by any task or owner. For
    /// several locks, whether it holds all of them. Costs no request.
    ///
    /// Do not base decisions on it: check the guard ([`MultiLockGuard::check`]) before you act.
    fn is_held(&self) -> bool {
        let (first, others) = self.as_recipe().0.queues();
        first.is_held() && others.iter().all(LockQueue::is_held)
    }

    /// Returns the holders and the waiters of the lock, with their ages: see [`Inspection`]. For several
    /// locks, one snapshot each, in order.
    ///
    /// # Errors
    ///
    /// As [`LockQueue::inspect`].
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the call changes nothing.
    fn inspect(&self) -> BoxFuture<'_, Result<Vec<Inspection>, Error>> {
        self.as_recipe().0.inspect()
    }

    /// The events of this process's holds of the lock from now on: acquired, released, lost. A reentrant hold
    /// has one event for all its guards. Several locks have their events one by one.
    ///
    /// The counterpart of the `LockListener` of ZooKeeper's own `WriteLock`.
    fn events(&self) -> HoldEvents {
        let (first, others) = self.as_recipe().0.queues();
        first.events_with(&others)
    }
}
