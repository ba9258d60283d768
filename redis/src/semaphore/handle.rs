use std::time::Duration;

use lockkeeper_lock::Deadline;

use crate::acquire;
use crate::error::{ConfigError, Error, Phase};
use crate::guard::{Guard, Held, HoldRef, OwnedHold};
use crate::hold::Hold;
use crate::manager::{CallError, ConnectionManager};
use crate::name::LockName;
use crate::recipe_error::SemaphoreError;
use crate::script::{Kind, LockKeys};

/// The most permits of a semaphore: the server counts with the numbers of Lua.
const LIMIT_MAX: u32 = 1_000_000_000;

/// A semaphore over all processes: at most a given number of permits are in use at a time.
///
/// Use it for *at most N at the same time*. For *at most N starts in any minute* use a
/// [`RateLimiter`](crate::RateLimiter). For one at a time, a [`Mutex`](crate::Mutex) is cheaper, and
/// shares its key with other libraries.
///
/// A clone is cheap. Clones, and other objects with the same name in any process, are the same semaphore.
/// All users give the same limit. Limits that disagree are an error while permits are in use or waited for.
///
/// # Ordering and fairness
///
/// First in, first out. Only the head of the queue is granted: a request for many permits waits at the head
/// until they are free, and smaller requests do not overtake it. All permits of a request are granted at once
/// or not at all.
///
/// # Cost
///
/// Acquire of free permits: one round trip, for any number. Release: one round trip. Hand-off: the release,
/// and one message.
///
/// # Loss
///
/// As for a [`Mutex`](crate::Mutex): the permits of a crashed process are free after its lease, by the
/// server's clock.
///
/// # Examples
///
/// ```no_run
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), lockkeeper_redis::Error> {
/// use lockkeeper_redis::{ConnectionManager, Semaphore};
///
/// let manager = ConnectionManager::connect("redis://127.0.0.1/").await?;
/// let licences = Semaphore::new(&manager, "licences:compiler", 4)?;
///
/// let lease = licences.acquire_many(3).await?;
/// assert!(licences.try_acquire_many(2).await?.is_none());
/// lease.release().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Semaphore {
    manager: ConnectionManager,
    keys: LockKeys,
    limit: u32,
}

/// One or more held permits of a [`Semaphore`].
///
/// All its permits are held or lost together. Its fencing token is unique, and has no order among the holders
/// of a time. A drop of the lease releases all its permits in the background.
///
/// # Methods
///
/// Those of every [`Guard`](crate::Guard), and [`permits`](Self::permits).
pub type Lease = Guard<PermitsHold>;

/// The hold of one or more permits.
#[derive(Debug)]
pub struct PermitsHold {
    hold: Hold,
    permits: u32,
}

impl Semaphore {
    /// Makes the semaphore with this name and a fixed limit of `permits`. Sends nothing.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] if the name is as [`Mutex::new`](crate::Mutex::new) refuses it, or if `permits`
    /// is zero or above a thousand million.
    pub fn new(manager: &ConnectionManager, name: &str, permits: u32) -> Result<Self, Error> {
        if permits == 0 || permits > LIMIT_MAX {
            let advice = "have at least one permit, and at most a thousand million";
            return Err(ConfigError { setting: "permits", value: permits.to_string(), advice }.into());
        }
        let keys = LockKeys::new(LockName::new(name)?, Kind::Permits { limit: permits });
        Ok(Self { manager: manager.clone(), keys, limit: permits })
    }

    /// The name of the semaphore: its key.
    #[must_use]
    pub fn name(&self) -> &str {
        self.keys.name.as_str()
    }

    /// Waits for one permit, without a limit of time.
    ///
    /// # Errors
    ///
    /// [`SemaphoreError::LimitsDisagree`] if permits are in use under another limit. Otherwise as
    /// [`Mutex::acquire`](crate::Mutex::acquire).
    ///
    /// # Cancel safety
    ///
    /// As [`Mutex::acquire`](crate::Mutex::acquire).
    pub async fn acquire(&self) -> Result<Lease, Error> {
        self.acquire_by(1, Deadline::never()).await
    }

    /// Waits for `permits` permits, without a limit of time. Takes all of them at once.
    ///
    /// # Errors
    ///
    /// [`SemaphoreError::TooManyPermits`] if `permits` is above the limit. [`Error::Config`] if it is zero.
    /// Otherwise as [`acquire`](Self::acquire).
    ///
    /// # Cancel safety
    ///
    /// As [`acquire`](Self::acquire).
    pub async fn acquire_many(&self, permits: u32) -> Result<Lease, Error> {
        self.acquire_by(permits, Deadline::never()).await
    }

    /// Waits for one permit, for at most `timeout`.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`]. With a `timeout` of zero, it means that no permit is free now. Otherwise as
    /// [`acquire`](Self::acquire).
    ///
    /// # Cancel safety
    ///
    /// As [`acquire`](Self::acquire).
    pub async fn acquire_timeout(&self, timeout: Duration) -> Result<Lease, Error> {
        self.acquire_by(1, Deadline::after(timeout)).await
    }

    /// Waits for `permits` permits, for at most `timeout`. Takes all of them at once.
    ///
    /// # Errors
    ///
    /// As [`acquire_many`](Self::acquire_many) and [`acquire_timeout`](Self::acquire_timeout).
    ///
    /// # Cancel safety
    ///
    /// As [`acquire`](Self::acquire).
    pub async fn acquire_many_timeout(&self, permits: u32, timeout: Duration) -> Result<Lease, Error> {
        self.acquire_by(permits, Deadline::after(timeout)).await
    }

    /// Takes one permit if one is free now. Returns `None` if none is free, or if a waiter is ahead.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`] if there was no connection or no answer within the operation timeout. Otherwise as
    /// [`acquire`](Self::acquire).
    ///
    /// # Cancel safety
    ///
    /// As [`acquire`](Self::acquire).
    pub async fn try_acquire(&self) -> Result<Option<Lease>, Error> {
        self.try_acquire_many(1).await
    }

    /// As [`try_acquire`](Self::try_acquire), for `permits` permits at once.
    ///
    /// # Errors
    ///
    /// As [`acquire_many`](Self::acquire_many) and [`try_acquire`](Self::try_acquire).
    ///
    /// # Cancel safety
    ///
    /// As [`acquire`](Self::acquire).
    pub async fn try_acquire_many(&self, permits: u32) -> Result<Option<Lease>, Error> {
        self.check(permits)?;
        let taken = acquire::try_acquire(&self.manager, &self.keys, permits).await?;
        Ok(taken.ok().map(|hold| Guard::of(PermitsHold { hold, permits })))
    }

    /// The number of permits that are free now, without regard to waiters. It may be stale when the caller
    /// reads it.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`] if there was no connection or no answer within the operation timeout.
    /// [`Error::Refused`], [`Error::ConflictingKind`] and [`Error::Closed`] as for
    /// [`acquire`](Self::acquire).
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn available(&self) -> Result<u32, Error> {
        let shared = self.manager.shared();
        let limit = Deadline::after(self.manager.operation_timeout());
        let name = || self.name().to_owned();
        let attempt = async {
            loop {
                let mut connection = shared.link.connection().await;
                let request = shared.settings.request_limit();
                match shared.link.send(&mut connection, &self.keys.taken(), request).await {
                    Err(CallError::NoAnswer(_)) => tokio::time::sleep(Duration::from_millis(10)).await,
                    Err(CallError::Refused(cause)) => return Err(Error::Refused { name: name(), cause }),
                    Err(CallError::ConflictingKind) => return Err(Error::ConflictingKind { name: name() }),
                    Ok(answer) => {
                        let taken = answer.first().map_or(0, |taken| (*taken).max(0));
                        let taken = u32::try_from(taken).unwrap_or(u32::MAX);
                        return Ok(self.limit.saturating_sub(taken));
                    }
                }
            }
        };
        tokio::select! {
            biased;
            () = self.manager.closing() => Err(Error::Closed),
            free = attempt => free,
            () = limit.passed() => {
                Err(Error::Timeout { phase: Phase::Answer, name: name(), waited: limit.waited() })
            }
        }
    }

    fn check(&self, permits: u32) -> Result<(), Error> {
        if permits == 0 {
            let advice = "ask for one or more";
            return Err(ConfigError { setting: "permits", value: "0".to_owned(), advice }.into());
        }
        if permits > self.limit {
            let (name, limit) = (self.name().to_owned(), self.limit);
            return Err(SemaphoreError::TooManyPermits { name, asked: permits, limit }.into());
        }
        Ok(())
    }

    pub(super) async fn acquire_by(&self, permits: u32, deadline: Deadline) -> Result<Lease, Error> {
        self.check(permits)?;
        let hold = acquire::acquire(&self.manager, &self.keys, permits, deadline).await?;
        Ok(Guard::of(PermitsHold { hold, permits }))
    }
}

impl Lease {
    /// The number of permits of this lease.
    #[must_use]
    pub fn permits(&self) -> u32 {
        self.held.permits
    }
}

impl Held for PermitsHold {
    fn hold(&self) -> HoldRef<'_> {
        HoldRef(&self.hold)
    }

    fn into_hold(self) -> OwnedHold {
        OwnedHold(Some(self.hold))
    }
}
