//! One face over all locks, for code that does not care which one it takes.

mod guard;
mod recipe;

use std::fmt::Debug;
use std::time::Duration;

use futures::future::BoxFuture;
use lockkeeper_core::{Deadline, Error, HoldEvents, LockQueue, ZnodePath};

pub(crate) use self::guard::release;
pub use self::guard::{LockGuard, ReleaseErrors};
pub(crate) use self::recipe::{AnyGuard, BatchEntry, Entered, LockRequest, MemberGuard, Recipe, Sealed};
use crate::inspection::Inspection;

/// Any of the locks, or one side of one: a mutex, a reentrant one on behalf of an owner, the reading or the writing
/// side of a read/write lock, some permits of a semaphore, several of them at once.
///
/// It can be made into an object: `Box<dyn Lock>`. The types themselves offer more; their own methods of the same
/// names give guards that know more. Which locks there are is settled here: the trait cannot be implemented elsewhere.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = lockkeeper_testserver::TestServer::start().await?;
/// # let servers = server.connect_string();
/// use lockkeeper::{ConnectionManager, HoldEvent, Lock, Mutex};
///
/// async fn once(lock: &dyn Lock) -> Result<(), Box<dyn std::error::Error>> {
///     let guard = lock.acquire().await?;
///     guard.run(async { println!("{} is held", lock.path()) }).await?;
///     guard.release().await?;
///     Ok(())
/// }
///
/// let manager = ConnectionManager::connect(&servers).await?; // host:port,host:port,…
/// let lock: Box<dyn Lock> = Box::new(Mutex::new(&manager, "/locks/report")?);
/// let mut events = lock.events();
/// once(&*lock).await?;
/// assert!(matches!(events.next().await, Some(HoldEvent::Acquired { .. })));
/// assert!(matches!(events.next().await, Some(HoldEvent::Released { .. })));
/// # Ok(())
/// # }
/// ```
pub trait Lock: Debug + Send + Sync {
    /// What the lock is made of, within this crate.
    #[doc(hidden)]
    fn as_recipe(&self) -> Sealed<'_>;

    /// The whole path of the lock, chroot included; of several, the first.
    fn path(&self) -> &ZnodePath {
        self.as_recipe().0.path()
    }

    /// Waits for the lock for as long as it takes.
    ///
    /// # Errors
    ///
    /// As the type's own `acquire`.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe at every await: your place in the line is lost, and no node is left behind.
    fn acquire(&self) -> BoxFuture<'_, Result<LockGuard, Error>> {
        self.as_recipe().0.acquire(Deadline::never())
    }

    /// Waits for the lock for at most `timeout`.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`]; else as [`acquire`](Self::acquire).
    ///
    /// # Cancel safety
    ///
    /// As [`acquire`](Self::acquire).
    fn acquire_timeout(&self, timeout: Duration) -> BoxFuture<'_, Result<LockGuard, Error>> {
        self.as_recipe().0.acquire(Deadline::after(timeout))
    }

    /// Takes the lock if it is free now.
    ///
    /// # Errors
    ///
    /// As the type's own `try_acquire`.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: no node is left behind.
    fn try_acquire(&self) -> BoxFuture<'_, Result<Option<LockGuard>, Error>> {
        self.as_recipe().0.try_acquire()
    }

    /// Whether this process holds the lock, through the same manager, and validly: any task, any owner. Of several,
    /// whether it holds all. Costs no request.
    ///
    /// For a look, not for a decision: ask the guard ([`LockGuard::check`]) before you act.
    fn is_held(&self) -> bool {
        let (first, others) = self.as_recipe().0.queues();
        first.is_held() && others.iter().all(LockQueue::is_held)
    }

    /// Who holds the lock, who waits for it, and since when: a snapshot for each of several, in order, see [`Inspection`].
    ///
    /// # Errors
    ///
    /// As [`LockQueue::inspect`].
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: nothing is changed.
    fn inspect(&self) -> BoxFuture<'_, Result<Vec<Inspection>, Error>> {
        self.as_recipe().0.inspect()
    }

    /// What becomes of this process's holds of the lock from now on: acquired, released, lost. A reentrant hold is
    /// told once, of several locks each by itself.
    ///
    /// The counterpart of the `LockListener` of ZooKeeper's own `WriteLock`.
    fn events(&self) -> HoldEvents {
        let (first, others) = self.as_recipe().0.queues();
        first.events_with(&others)
    }
}
