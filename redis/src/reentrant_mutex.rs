use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use lockkeeper_lock::{Deadline, Lock, LockError, LockGuard, Owner};

use crate::acquire;
use crate::error::Error;
use crate::guard::{Guard, Held, HoldRef, OwnedHold};
use crate::manager::ConnectionManager;
use crate::name::LockName;
use crate::owners::{self, Next, SharedHold};
use crate::script::{Kind, LockKeys};

/// A mutex over all processes that its owner can acquire again while it holds the lock.
///
/// The owner is explicit: an [`Owner`] that the caller passes, or that a scope carries down a chain of calls.
/// Only the first hold and the last release of an owner send requests; this process counts the holds in
/// between. All objects with one name and one [`ConnectionManager`] count together.
///
/// Everything else is as for [`Mutex`](crate::Mutex), with which it shares the key and the queue.
///
/// # Loss
///
/// All guards of an owner rest on one hold, and are lost together. While a lost guard is still kept, a
/// further acquire of the same owner fails with [`Error::Lost`]: drop the lost guards first.
///
/// # Examples
///
/// ```no_run
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), lockkeeper_redis::Error> {
/// use lockkeeper_redis::{ConnectionManager, Owner, ReentrantMutex};
///
/// let manager = ConnectionManager::connect("redis://127.0.0.1/").await?;
/// let mutex = ReentrantMutex::new(&manager, "locks:order-4711")?;
///
/// let owner = Owner::new("checkout");
/// let outer = mutex.acquire(&owner).await?;
/// let inner = mutex.acquire(&owner).await?; // no round trip
/// assert_eq!(mutex.hold_count(&owner), 2);
/// inner.release().await?; // none either
/// outer.release().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct ReentrantMutex {
    manager: ConnectionManager,
    keys: LockKeys,
    owner: Option<Owner>,
}

/// One guard of a [`ReentrantMutex`]. All guards of an owner have one fencing token.
///
/// A drop of the owner's last guard releases the lock in the background.
///
/// # Methods
///
/// Those of every [`Guard`](crate::Guard).
pub type ReentrantMutexGuard = Guard<OwnerShare>;

/// A guard's share of the hold of an owner.
#[derive(Debug)]
pub struct OwnerShare(Arc<SharedHold>);

impl ReentrantMutex {
    /// Makes the mutex with this name. Sends nothing.
    ///
    /// # Errors
    ///
    /// As [`Mutex::new`](crate::Mutex::new).
    pub fn new(manager: &ConnectionManager, name: &str) -> Result<Self, Error> {
        let keys = LockKeys::new(LockName::new(name)?, Kind::Mutex);
        Ok(Self { manager: manager.clone(), keys, owner: None })
    }

    /// Returns the same mutex, with `owner` for the calls that name no owner: those of [`Lock`], and
    /// [`acquire_scoped`](Self::acquire_scoped).
    #[must_use]
    pub fn for_owner(&self, owner: &Owner) -> Self {
        Self { owner: Some(owner.clone()), ..self.clone() }
    }

    /// The name of the lock: its key.
    #[must_use]
    pub fn name(&self) -> &str {
        self.keys.name.as_str()
    }

    /// The number of guards that `owner` has now, in this process.
    #[must_use]
    pub fn hold_count(&self, owner: &Owner) -> u32 {
        owners::hold_count(&self.manager, &self.keys.name, owner)
    }

    /// Waits for the lock for `owner`, without a limit of time. Returns at once if `owner` holds the lock.
    ///
    /// # Errors
    ///
    /// [`Error::Lost`] if `owner` still keeps guards of a lost hold. [`Error::WouldDeadlock`] if `owner`
    /// holds the name as a plain [`Mutex`](crate::Mutex). Otherwise as
    /// [`Mutex::acquire`](crate::Mutex::acquire).
    ///
    /// # Cancel safety
    ///
    /// As [`Mutex::acquire`](crate::Mutex::acquire).
    pub async fn acquire(&self, owner: &Owner) -> Result<ReentrantMutexGuard, Error> {
        self.lock(owner, Deadline::never()).await
    }

    /// Waits for the lock for `owner`, for at most `timeout`.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`]. Otherwise as [`acquire`](Self::acquire).
    ///
    /// # Cancel safety
    ///
    /// As [`acquire`](Self::acquire).
    pub async fn acquire_timeout(
        &self,
        owner: &Owner,
        timeout: Duration,
    ) -> Result<ReentrantMutexGuard, Error> {
        self.lock(owner, Deadline::after(timeout)).await
    }

    /// Takes the lock for `owner` if it is free now, or if `owner` holds it. Otherwise returns `None`.
    ///
    /// # Errors
    ///
    /// As [`acquire`](Self::acquire), and [`Error::Timeout`] if there was no connection or no answer
    /// within the operation timeout, or if another task of the owner acquires the lock for so long.
    ///
    /// # Cancel safety
    ///
    /// As [`acquire`](Self::acquire).
    pub async fn try_acquire(&self, owner: &Owner) -> Result<Option<ReentrantMutexGuard>, Error> {
        let limit = Deadline::after(self.manager.operation_timeout());
        match owners::reserve(&self.manager, &self.keys.name, owner, limit).await? {
            Next::Share(shared) => Ok(Some(Guard::of(OwnerShare(shared)))),
            Next::Acquire(reservation) => {
                let taken = acquire::try_acquire(&self.manager, &self.keys, 1).await?;
                Ok(taken.ok().map(|hold| Guard::of(OwnerShare(reservation.enter(hold)))))
            }
        }
    }

    /// As [`acquire`](Self::acquire), for the owner of [`for_owner`](Self::for_owner), or otherwise for the
    /// [owner in scope](Owner::scope).
    ///
    /// # Errors
    ///
    /// [`Error::NoOwner`] if there is neither. Otherwise as [`acquire`](Self::acquire).
    ///
    /// # Cancel safety
    ///
    /// As [`acquire`](Self::acquire).
    pub async fn acquire_scoped(&self) -> Result<ReentrantMutexGuard, Error> {
        self.acquire(&self.resolve_owner()?).await
    }

    /// As [`acquire_timeout`](Self::acquire_timeout), for the same owner as
    /// [`acquire_scoped`](Self::acquire_scoped).
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`]. Otherwise as [`acquire_scoped`](Self::acquire_scoped).
    ///
    /// # Cancel safety
    ///
    /// As [`acquire`](Self::acquire).
    pub async fn acquire_scoped_timeout(&self, timeout: Duration) -> Result<ReentrantMutexGuard, Error> {
        self.acquire_timeout(&self.resolve_owner()?, timeout).await
    }

    /// As [`try_acquire`](Self::try_acquire), for the same owner as [`acquire_scoped`](Self::acquire_scoped).
    ///
    /// # Errors
    ///
    /// As [`acquire_scoped`](Self::acquire_scoped), and as [`try_acquire`](Self::try_acquire).
    ///
    /// # Cancel safety
    ///
    /// As [`acquire`](Self::acquire).
    pub async fn try_acquire_scoped(&self) -> Result<Option<ReentrantMutexGuard>, Error> {
        self.try_acquire(&self.resolve_owner()?).await
    }

    fn resolve_owner(&self) -> Result<Owner, Error> {
        self.owner.clone().or_else(Owner::current).ok_or(Error::NoOwner)
    }

    async fn lock(&self, owner: &Owner, deadline: Deadline) -> Result<ReentrantMutexGuard, Error> {
        match owners::reserve(&self.manager, &self.keys.name, owner, deadline).await? {
            Next::Share(shared) => Ok(Guard::of(OwnerShare(shared))),
            Next::Acquire(reservation) => {
                let hold = acquire::acquire(&self.manager, &self.keys, 1, deadline).await?;
                Ok(Guard::of(OwnerShare(reservation.enter(hold))))
            }
        }
    }
}

impl Held for OwnerShare {
    fn hold(&self) -> HoldRef<'_> {
        HoldRef(&self.0.hold)
    }

    fn into_hold(self) -> OwnedHold {
        // Of guards that end at the same time, exactly one is the last.
        OwnedHold(Arc::into_inner(self.0).map(SharedHold::into_hold))
    }
}

impl Lock for ReentrantMutex {
    fn name(&self) -> &str {
        self.name()
    }

    fn acquire_by(&self, deadline: Deadline) -> BoxFuture<'static, Result<LockGuard, LockError>> {
        let lock = self.clone();
        Box::pin(async move { Ok(LockGuard::new(lock.lock(&lock.resolve_owner()?, deadline).await?)) })
    }

    fn try_acquire(&self) -> BoxFuture<'static, Result<Option<LockGuard>, LockError>> {
        let lock = self.clone();
        Box::pin(async move { Ok(lock.try_acquire(&lock.resolve_owner()?).await?.map(LockGuard::new)) })
    }
}
