use std::time::Duration;

use futures::future::BoxFuture;
use lockkeeper_lock::{Deadline, Lock, LockError, LockGuard, Owner};

use crate::acquire;
use crate::error::Error;
use crate::guard::{Guard, Held, HoldRef, OwnedHold};
use crate::hold::Hold;
use crate::manager::ConnectionManager;
use crate::name::LockName;
use crate::owners::{self, SlotUse};
use crate::script::{Kind, LockKeys};

/// A mutex over all processes: at most one guard is valid at a time, on one primary that keeps its data.
///
/// The mutex is not reentrant. A second acquire waits for the first guard; in the same chain of calls it
/// waits for ever. If an [`Owner`] is in scope, the second acquire returns [`Error::WouldDeadlock`]
/// instead.
///
/// A clone is cheap. Clones, and other objects with the same name in any process, are the same lock.
///
/// # Ordering and fairness
///
/// First in, first out among the contenders of this crate, in the order in which the server received them. A
/// release hands the lock to the first waiter that is alive, and wakes no other. Contenders of other
/// libraries that set the same key are excluded, but not queued: see [Layout](#layout).
///
/// # Cost
///
/// Acquire of a free lock: one round trip. Release: one round trip. Hand-off to a waiter: the release, and
/// one message. A waiter asks again three times in a lease, and a holder renews as often.
///
/// # Loss
///
/// A guard whose lease was not renewed in time is lost. Its [`lost()`](Guard::lost) resolves before the
/// server frees the lock. A server that loses its data, or a failover to a replica that had not received
/// the lock, can grant it to another contender at once. Only a fencing token helps then. See
/// `docs/failure-model.md`.
///
/// # Layout
///
/// The name is the key: a string with the holder's id, set with an expiry. So `redis-py`'s `Lock`, and every
/// program that takes the lock by `SET key value NX PX`, exclude this mutex and are excluded by it. While
/// such a program holds the lock, the first waiter looks at it several times a second.
///
/// # Examples
///
/// ```no_run
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), lockkeeper_redis::Error> {
/// use lockkeeper_redis::{ConnectionManager, Mutex};
///
/// let manager = ConnectionManager::connect("redis://127.0.0.1/").await?;
/// let mutex = Mutex::new(&manager, "locks:train-7")?;
///
/// let guard = mutex.acquire().await?;
/// println!("fenced by {}", guard.fencing_token());
/// guard.release().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Mutex {
    manager: ConnectionManager,
    keys: LockKeys,
}

/// A held [`Mutex`].
///
/// A drop of the guard releases the lock in the background.
///
/// # Methods
///
/// Those of every [`Guard`](crate::Guard).
pub type MutexGuard = Guard<MutexHold>;

/// The hold of a mutex.
#[derive(Debug)]
pub struct MutexHold {
    // Dropped first.
    entry: Option<SlotUse>,
    hold: Hold,
}

impl Mutex {
    /// Makes the mutex with this name. Sends nothing.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] if the name is empty, longer than 1024 bytes, or has control characters, or braces
    /// that are no hash tag, or that enclose all of it.
    pub fn new(manager: &ConnectionManager, name: &str) -> Result<Self, Error> {
        let keys = LockKeys::new(LockName::new(name)?, Kind::Mutex);
        Ok(Self { manager: manager.clone(), keys })
    }

    /// The name of the lock: its key.
    #[must_use]
    pub fn name(&self) -> &str {
        self.keys.name.as_str()
    }

    /// Waits for the lock, without a limit of time.
    ///
    /// # Errors
    ///
    /// [`Error::WouldDeadlock`] if the [owner in scope](Owner::scope) holds the lock already.
    /// [`Error::Refused`] if the server refuses the request (access list, memory).
    /// [`Error::ConflictingKind`] if the key has a value of another type. [`Error::Closed`] after a shutdown
    /// has begun.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe at every await: the position in the queue is lost. What a request in flight takes is
    /// released in the background, or ends with its lease.
    pub async fn acquire(&self) -> Result<MutexGuard, Error> {
        self.lock(Deadline::never()).await
    }

    /// Waits for the lock for at most `timeout`.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`]. With a `timeout` of zero, it means that the lock is not free now. Otherwise as
    /// [`acquire`](Self::acquire).
    ///
    /// # Cancel safety
    ///
    /// As [`acquire`](Self::acquire).
    pub async fn acquire_timeout(&self, timeout: Duration) -> Result<MutexGuard, Error> {
        self.lock(Deadline::after(timeout)).await
    }

    /// Takes the lock if it is free now. Returns `None` if it is held, or if a waiter is ahead.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`] if there was no connection or no answer within the operation timeout. Otherwise as
    /// [`acquire`](Self::acquire).
    ///
    /// # Cancel safety
    ///
    /// As [`acquire`](Self::acquire).
    pub async fn try_acquire(&self) -> Result<Option<MutexGuard>, Error> {
        let entry = self.entry()?;
        let taken = acquire::try_acquire(&self.manager, &self.keys, 1).await?;
        Ok(taken.ok().map(|hold| Self::guard(hold, entry)))
    }

    async fn lock(&self, deadline: Deadline) -> Result<MutexGuard, Error> {
        let entry = self.entry()?;
        let hold = acquire::acquire(&self.manager, &self.keys, 1, deadline).await?;
        Ok(Self::guard(hold, entry))
    }

    fn entry(&self) -> Result<Option<SlotUse>, Error> {
        let owner = Owner::current();
        owner.map(|owner| owners::check_plain(&self.manager, &self.keys.name, &owner)).transpose()
    }

    fn guard(hold: Hold, entry: Option<SlotUse>) -> MutexGuard {
        Guard::of(MutexHold { entry: entry.map(owners::enter_plain), hold })
    }
}

impl Held for MutexHold {
    fn hold(&self) -> HoldRef<'_> {
        HoldRef(&self.hold)
    }

    fn into_hold(self) -> OwnedHold {
        drop(self.entry);
        OwnedHold(Some(self.hold))
    }
}

impl Lock for Mutex {
    fn name(&self) -> &str {
        self.name()
    }

    fn acquire_by(&self, deadline: Deadline) -> BoxFuture<'static, Result<LockGuard, LockError>> {
        let lock = self.clone();
        Box::pin(async move { Ok(LockGuard::new(lock.lock(deadline).await?)) })
    }

    fn try_acquire(&self) -> BoxFuture<'static, Result<Option<LockGuard>, LockError>> {
        let lock = self.clone();
        Box::pin(async move { Ok(lock.try_acquire().await?.map(LockGuard::new)) })
    }
}
