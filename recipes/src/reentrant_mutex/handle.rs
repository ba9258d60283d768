use std::panic::Location;
use std::time::Duration;

use lockkeeper_core::{ConnectionManager, Deadline, Error, IntoPath, Label, LockQueue, Rule, ZnodePath};

use crate::lock::{AcquiredAt, Guard, OwnerShare, Reentrant};
use crate::owner::{Owner, OwnerHolds, Side, in_scope};

/// A mutex over all processes that its owner can acquire again while it holds the lock.
///
/// The owner is explicit: an [`Owner`] that the caller passes, or that a scope carries down a chain of calls.
/// Only the first hold and the last release of an owner send requests; this process counts the holds in
/// between. All objects with one path and one [`ConnectionManager`] count together.
///
/// Everything else is as for [`Mutex`](crate::Mutex), which has the same layout and queue: fairness, cost,
/// session loss, and the lock shared with Curator's `InterProcessMutex`.
///
/// # Session loss
///
/// All holds of an owner rest on one node, and are lost together. While a lost guard is still kept, a further
/// acquire of the same owner fails with [`Error::Lost`]: drop the lost guards first.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = lockkeeper_testserver::TestServer::start().await?;
/// # let servers = server.connect_string();
/// use lockkeeper::{ConnectionManager, Owner, ReentrantMutex};
///
/// let manager = ConnectionManager::connect(&servers).await?; // host:port,host:port,…
/// let mutex = ReentrantMutex::new(&manager, "/locks/order-4711")?;
///
/// let owner = Owner::new("checkout");
/// let outer = mutex.acquire(&owner).await?;
/// let inner = mutex.acquire(&owner).await?; // no round trip
/// assert_eq!(mutex.hold_count(&owner), 2);
/// inner.release().await?; // none either
/// outer.release().await?;
///
/// // The same by a scope: the called functions need no owner argument.
/// let guard = owner.scope(mutex.acquire_scoped()).await?;
/// guard.release().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct ReentrantMutex {
    pub(super) holds: OwnerHolds,
    /// The owner for an acquire that names none, such as that of a [`Lock`](crate::Lock). Otherwise the owner
    /// in scope.
    owner: Option<Owner>,
}

impl ReentrantMutex {
    /// Makes the mutex at `path`, below the manager's chroot. Sends nothing.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] if the path is malformed, or is the root.
    pub fn new(manager: &ConnectionManager, path: impl IntoPath) -> Result<Self, Error> {
        let path = path.into_path()?;
        let queue =
            LockQueue::new(manager, path, Label::LOCK, Rule::MUTEX)?.with_metric_name("reentrant_mutex");
        Ok(Self { holds: OwnerHolds::new(queue, None), owner: None })
    }

    /// Sets the data of this mutex's nodes; the owner's name is appended. Default: the manager's node data,
    /// which has the host and the process id.
    #[must_use]
    pub fn with_node_data(self, data: impl Into<Vec<u8>>) -> Self {
        Self { holds: self.holds.with_node_data(data.into()), ..self }
    }

    /// Returns the same mutex, with `owner` for the calls that name no owner: those of [`Lock`](crate::Lock),
    /// and [`acquire_scoped`](Self::acquire_scoped).
    #[must_use]
    pub fn for_owner(&self, owner: &Owner) -> Self {
        Self { owner: Some(owner.clone()), ..self.clone() }
    }

    /// The path of the lock, below the manager's chroot.
    #[must_use]
    pub fn path(&self) -> &ZnodePath {
        self.holds.path()
    }

    /// The number of guards that `owner` has now, in this process.
    #[must_use]
    pub fn hold_count(&self, owner: &Owner) -> u32 {
        self.holds.count(Side::Write, owner)
    }

    /// Waits for the lock for `owner`, without a limit of time. Returns at once if `owner` holds the lock.
    ///
    /// # Errors
    ///
    /// [`Error::Lost`] if `owner` still keeps guards of a lost hold.
    /// [`WouldDeadlock`](crate::owner::WouldDeadlock) if `owner` holds the path as a plain
    /// [`Mutex`](crate::Mutex). Otherwise as [`Mutex::acquire`](crate::Mutex::acquire).
    ///
    /// # Cancel safety
    ///
    /// Cancel safe at every await: the position in the queue is lost, and no node is left behind.
    #[track_caller]
    pub fn acquire(&self, owner: &Owner) -> impl Future<Output = Result<ReentrantMutexGuard, Error>> + Send {
        let place = Location::caller();
        async move { Ok(self.lock(owner, Deadline::never()).await?.acquired_at(place)) }
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
    #[track_caller]
    pub fn acquire_timeout(
        &self,
        owner: &Owner,
        timeout: Duration,
    ) -> impl Future<Output = Result<ReentrantMutexGuard, Error>> + Send {
        let place = Location::caller();
        async move { Ok(self.lock(owner, Deadline::after(timeout)).await?.acquired_at(place)) }
    }

    /// Takes the lock for `owner` if it is free now, or if `owner` holds it. Otherwise returns `None`.
    ///
    /// # Errors
    ///
    /// As [`acquire`](Self::acquire), and [`Error::Timeout`] if there was no connection or no answer within
    /// the manager's operation timeout.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: no node is left behind.
    #[track_caller]
    pub fn try_acquire(
        &self,
        owner: &Owner,
    ) -> impl Future<Output = Result<Option<ReentrantMutexGuard>, Error>> + Send {
        let place = Location::caller();
        async move { Ok(self.try_lock(owner).await?.map(|guard| guard.acquired_at(place))) }
    }

    /// As [`acquire`](Self::acquire), for the owner of [`for_owner`](Self::for_owner), or otherwise for the
    /// [owner in scope](Owner::scope).
    ///
    /// # Errors
    ///
    /// [`Error::Recipe`] with [`NoOwner`](crate::owner::NoOwner) if there is neither. Otherwise as
    /// [`acquire`](Self::acquire).
    ///
    /// # Cancel safety
    ///
    /// As [`acquire`](Self::acquire).
    #[track_caller]
    pub fn acquire_scoped(&self) -> impl Future<Output = Result<ReentrantMutexGuard, Error>> + Send {
        let place = Location::caller();
        async move { Ok(self.lock(&self.resolve_owner()?, Deadline::never()).await?.acquired_at(place)) }
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
    #[track_caller]
    pub fn acquire_scoped_timeout(
        &self,
        timeout: Duration,
    ) -> impl Future<Output = Result<ReentrantMutexGuard, Error>> + Send {
        let place = Location::caller();
        async move {
            let deadline = Deadline::after(timeout);
            Ok(self.lock(&self.resolve_owner()?, deadline).await?.acquired_at(place))
        }
    }

    /// As [`try_acquire`](Self::try_acquire), for the same owner as [`acquire_scoped`](Self::acquire_scoped).
    ///
    /// # Errors
    ///
    /// As [`acquire_scoped`](Self::acquire_scoped), and as [`try_acquire`](Self::try_acquire).
    ///
    /// # Cancel safety
    ///
    /// As [`try_acquire`](Self::try_acquire).
    #[track_caller]
    pub fn try_acquire_scoped(
        &self,
    ) -> impl Future<Output = Result<Option<ReentrantMutexGuard>, Error>> + Send {
        let place = Location::caller();
        async move {
            let guard = self.try_lock(&self.resolve_owner()?).await?;
            Ok(guard.map(|guard| guard.acquired_at(place)))
        }
    }

    pub(super) fn resolve_owner(&self) -> Result<Owner, Error> {
        self.owner.clone().map_or_else(in_scope, Ok)
    }

    pub(super) async fn lock(&self, owner: &Owner, deadline: Deadline) -> Result<ReentrantMutexGuard, Error> {
        self.holds.acquire(Side::Write, owner, deadline).await.map(Guard::sharing)
    }

    pub(super) async fn try_lock(&self, owner: &Owner) -> Result<Option<ReentrantMutexGuard>, Error> {
        Ok(self.holds.try_acquire(Side::Write, owner).await?.map(Guard::sharing))
    }
}

/// One hold of a [`ReentrantMutex`]. All holds of an owner have one fencing token.
///
/// A drop of the owner's last guard releases the lock in the background.
///
/// # Methods
///
/// Those of every [`Guard`](crate::Guard).
pub type ReentrantMutexGuard = Guard<OwnerShare<Reentrant>>;
