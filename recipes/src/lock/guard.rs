use std::fmt::{self, Debug, Formatter};
use std::future::Future;
use std::panic::Location;

use futures::future::BoxFuture;
use lockkeeper_core::{BootInstant, Error, FencingToken, Hold, HoldExt, Lost, ReleaseError, Txn, ZnodePath};

/// A held lock, or several held together. [`MutexGuard`](crate::MutexGuard),
/// [`ReentrantMutexGuard`](crate::ReentrantMutexGuard), [`ReadGuard`](crate::ReadGuard),
/// [`WriteGuard`](crate::WriteGuard), [`Lease`](crate::Lease), [`Leadership`](crate::Leadership),
/// [`Slot`](crate::schedule::Slot) and [`MultiLockGuard`](crate::MultiLockGuard) are guards.
///
/// Several locks are valid only together: if one is lost, the guard is lost. A drop of the guard releases in
/// the background, which ends with the manager's runtime and with the process: await
/// [`shutdown`](crate::ConnectionManager::shutdown) before `main` returns, or the lock may be held until the
/// session ends. A guard that is leaked ([`std::mem::forget`]) blocks the lock until its session ends.
///
/// # Examples
///
/// A guard of one recipe has a name of its own. A function for the guards of all recipes has a bound:
/// [`HoldSet`](crate::locks::HoldSet) for any guard, [`SingleHold`](crate::locks::SingleHold) for that of
/// one lock.
///
/// ```
/// use lockkeeper::locks::{HoldSet, SingleHold};
/// use lockkeeper::{Error, FencingToken, Guard, MutexGuard};
///
/// struct Worker {
///     guard: MutexGuard,
/// }
///
/// fn check<H: HoldSet>(guard: &Guard<H>) -> Result<(), Error> {
///     Ok(guard.check()?)
/// }
///
/// fn token<H: SingleHold>(guard: &Guard<H>) -> FencingToken {
///     guard.fencing_token()
/// }
///
/// fn step(worker: &Worker) -> Result<FencingToken, Error> {
///     check(&worker.guard)?;
///     Ok(token(&worker.guard))
/// }
/// ```
///
/// A guard and its [hold](Self::hold) have only the methods that a holder needs. Those for authors of recipes
/// need a trait of `lockkeeper-core`:
///
/// ```compile_fail,E0624
/// # fn example(guard: lockkeeper::MutexGuard) {
/// guard.hold().count_as_dropped();
/// # }
/// ```
///
/// ```
/// # fn example(guard: lockkeeper::MutexGuard) {
/// use lockkeeper_core::HoldExt;
///
/// guard.hold().count_as_dropped();
/// # }
/// ```
#[derive(Debug)]
#[must_use = "a guard that is not kept releases at once"]
#[clippy::has_significant_drop]
pub struct Guard<H> {
    pub(crate) holds: H,
}

/// The holds that a guard keeps: one or more. Sealed. It is the bound of a function that takes any guard: see
/// [`Guard`].
pub trait HoldSet: HoldAccess {}

impl<H: HoldAccess> HoldSet for H {}

/// The one hold that a guard keeps, or has a share of. Sealed. It is the bound of a function that takes the
/// guard of one lock: see [`Guard`].
pub trait SingleHold: HoldSet + HoldRelease {}

impl<H: HoldRelease> SingleHold for H {}

/// The crate-private side of [`HoldSet`].
pub trait HoldAccess {
    /// The first hold.
    fn first(&self) -> &Hold;

    /// The other holds.
    fn others(&self) -> impl Iterator<Item = &Hold> {
        std::iter::empty()
    }
}

/// The crate-private side of [`SingleHold`].
pub trait HoldRelease: HoldAccess + Sized {
    /// Ends the guard in this process. Returns the hold if the caller has to release it: if no other guard
    /// needs it. Boxed, or every task that releases would be as large as several holds.
    fn into_hold(self) -> impl Future<Output = Result<Option<Box<Hold>>, ReleaseError>> + Send;
}

/// The crate-private side of a guard that a call of the user's acquires.
pub trait AcquiredAt {
    /// Records the call, for [`HeldHere`](lockkeeper_core::HeldHere).
    fn acquired_at(self, place: &'static Location<'static>) -> Self;
}

impl<H: HoldSet> AcquiredAt for Guard<H> {
    fn acquired_at(self, place: &'static Location<'static>) -> Self {
        self.holds.first().set_place(place);
        self.holds.others().for_each(|hold| hold.set_place(place));
        self
    }
}

impl<H> Guard<H> {
    pub(crate) fn of(holds: H) -> Self {
        Self { holds }
    }
}

impl<H: HoldSet> Guard<H> {
    fn all(&self) -> Vec<&Hold> {
        std::iter::once(self.holds.first()).chain(self.holds.others()).collect()
    }

    /// Whether the server cannot have granted any of the locks to another contender yet. Costs no request.
    ///
    /// It reads the clock at each call: after a pause that was too long, the first call returns false.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.check().is_ok()
    }

    /// As [`is_valid`](Self::is_valid), with the reason of the loss.
    ///
    /// # Errors
    ///
    /// [`Lost`], for the first lock that is lost.
    pub fn check(&self) -> Result<(), Lost> {
        self.holds.first().check()?;
        self.holds.others().try_for_each(Hold::check)
    }

    /// The instant until which the server cannot grant any of the locks to another contender because the
    /// session expired, as far as is known now. It becomes later while the servers confirm the session. It is
    /// in the past once a lock is lost.
    #[must_use]
    pub fn valid_until(&self) -> BootInstant {
        let first = self.holds.first().valid_until();
        self.holds.others().fold(first, |until, hold| until.min(hold.valid_until()))
    }

    /// Resolves when the first lock is lost: in a running process, before the server can grant it to another
    /// contender.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: a later call resolves with the same loss.
    pub async fn lost(&self) -> Lost {
        Hold::lost_any(&self.all()).await
    }

    /// Resolves when another client asks for any of the locks: see [`Hold::revoke_requested`].
    ///
    /// # Errors
    ///
    /// As [`Hold::revoke_requested`], for the first lock that fails.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: a later call resolves with the same request.
    pub async fn revoke_requested(&self) -> Result<(), Error> {
        Hold::revoke_requested_any(&self.all()).await
    }

    /// Runs `work` as long as all locks are valid. They are checked before each poll: once one is lost,
    /// `work` is dropped.
    ///
    /// # Errors
    ///
    /// [`Lost`] if a lock was lost before `work` was done. The effects of `work` until then remain: give its
    /// writes the fencing token, or make them by [`txn`](Self::txn).
    ///
    /// # Cancel safety
    ///
    /// A drop of the future drops `work`. The guard stays.
    pub async fn run<F: Future>(&self, work: F) -> Result<F::Output, Lost> {
        Hold::run_under(&self.all(), work).await
    }

    /// Starts writes that are committed only if all nodes of this guard still exist. This is exact: no clock
    /// is involved.
    pub fn txn(&self) -> Txn<'_> {
        self.holds.first().txn_with(self.holds.others())
    }
}

impl<H: SingleHold> Guard<H> {
    /// The fencing token of the lock: see [`FencingToken`].
    #[must_use]
    pub fn fencing_token(&self) -> FencingToken {
        self.hold().fencing_token()
    }

    /// The path of the guard's node, below the manager's chroot. For several nodes, the first path.
    #[must_use]
    pub fn path(&self) -> &ZnodePath {
        self.hold().path()
    }

    /// The hold of the lock, for code that works with the holds of several guards, and for authors of
    /// recipes.
    pub fn hold(&self) -> &Hold {
        self.holds.first()
    }

    /// Releases the lock, and waits until the server has deleted the node. If other guards share the hold,
    /// only the last one releases it. A mutex that [keeps its node](crate::Mutex::with_handoff) waits until
    /// the lock is handed off, idle or released.
    ///
    /// # Errors
    ///
    /// As [`Hold::release`]. For all guards of a hold but the last, only [`ReleaseError::Lost`].
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the release continues in the background.
    pub async fn release(self) -> Result<(), ReleaseError> {
        match self.holds.into_hold().await? {
            Some(hold) => hold.release().await,
            None => Ok(()),
        }
    }
}

/// A guard of any kind, as a member of a [`MultiLockGuard`](crate::MultiLockGuard).
pub(crate) struct MemberGuard {
    pub(crate) path: ZnodePath,
    guard: Box<dyn AnyGuard>,
}

impl MemberGuard {
    pub(crate) fn new<H: SingleHold + Send + Sync + 'static>(path: &ZnodePath, guard: Guard<H>) -> Self {
        Self { path: path.clone(), guard: Box::new(guard.holds) }
    }

    pub(crate) fn hold(&self) -> &Hold {
        self.guard.hold()
    }

    pub(crate) async fn into_hold(self) -> Result<Option<Box<Hold>>, ReleaseError> {
        self.guard.into_hold().await
    }
}

impl Debug for MemberGuard {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("MemberGuard").field(self.hold()).finish()
    }
}

/// A [`SingleHold`] as an object.
trait AnyGuard: Send + Sync {
    fn hold(&self) -> &Hold;
    fn into_hold(self: Box<Self>) -> BoxFuture<'static, Result<Option<Box<Hold>>, ReleaseError>>;
}

impl<H: SingleHold + Send + Sync + 'static> AnyGuard for H {
    fn hold(&self) -> &Hold {
        self.first()
    }

    fn into_hold(self: Box<Self>) -> BoxFuture<'static, Result<Option<Box<Hold>>, ReleaseError>> {
        Box::pin(HoldRelease::into_hold(*self))
    }
}
