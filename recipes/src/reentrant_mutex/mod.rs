mod inspect;
mod recipe;
mod ticket;

use std::sync::{Arc, Weak};
use std::time::Duration;

use dashmap::DashMap;
use lockkeeper_core::{
    ConnectionManager, Deadline, Error, Hold, Label, LockQueue, PathError, Phase, ReleaseError, Rule,
    ZnodePath,
};
use parking_lot::Mutex;
use tokio::sync::Mutex as AsyncMutex;

pub use self::ticket::ReentrantTicket;
use crate::lock::{Guard, HoldSet, SingleHold};
use crate::owner::{Owner, OwnerEntry, OwnerId, OwnerRegistry};

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
/// owner.scope(async { mutex.acquire_scoped().await?.release().await.map_err(Box::<dyn std::error::Error>::from) }).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct ReentrantMutex {
    queue: LockQueue,
    data: Arc<[u8]>,
    holders: Arc<OwnerRegistry>,
    slots: Arc<ReentrantSlots>,
    /// The owner for an acquire that names none, such as that of a [`Lock`]; otherwise the owner in scope.
    owner: Option<Owner>,
}

/// The holds of all owners, within one manager.
#[derive(Debug, Default)]
struct ReentrantSlots(DashMap<(ZnodePath, OwnerId), Arc<ReentrantSlot>>);

/// One owner's hold of one path, if there is one.
#[derive(Debug, Default)]
struct ReentrantSlot {
    hold: Mutex<Weak<SharedReentrantHold>>,
    /// Held by the task that sends the requests for the owner.
    acquiring: Arc<AsyncMutex<()>>,
}

impl ReentrantSlot {
    /// Returns a further guard of an existing hold.
    fn again(&self) -> Result<Option<ReentrantMutexGuard>, Error> {
        let Some(shared) = self.hold.lock().upgrade() else {
            return Ok(None);
        };
        let again = ReentrantMutexGuard::of(ReentrantHold(shared));
        again.check()?;
        Ok(Some(again))
    }

    fn hold_count(&self) -> usize {
        self.hold.lock().strong_count()
    }
}

/// One owner's hold, shared by its guards.
#[derive(Debug)]
struct SharedReentrantHold {
    // Dropped in this order: first the registry's entry, then the hold, and the slot last.
    entry: OwnerEntry,
    held: Hold,
    slot: ReentrantSlotEntry,
}

/// One owner's slot in the table. The slot is removed when neither a guard nor a task uses it.
#[derive(Debug)]
struct ReentrantSlotEntry {
    slots: Arc<ReentrantSlots>,
    key: (ZnodePath, OwnerId),
    // The key of an owner is its address, so the owner lives as long as its key is in the table.
    _owner: Owner,
}

impl Drop for ReentrantSlotEntry {
    fn drop(&mut self) {
        // A task that acquires has a clone of the slot, which it can only get from this table.
        self.slots.0.remove_if(&self.key, |_, slot| slot.hold_count() == 0 && Arc::strong_count(slot) == 1);
    }
}

impl ReentrantMutex {
    /// Makes the mutex at `path`, below the manager's chroot. Sends nothing.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] if the path is malformed, or is the root.
    pub fn new<P>(manager: &ConnectionManager, path: P) -> Result<Self, Error>
    where
        P: TryInto<ZnodePath>,
        PathError: From<P::Error>,
    {
        let path = path.try_into().map_err(PathError::from)?;
        let queue =
            LockQueue::new(manager, path, Label::LOCK, Rule::MUTEX)?.with_metric_name("reentrant_mutex");
        let data = manager.node_data().into();
        Ok(Self {
            queue,
            data,
            holders: OwnerRegistry::of(manager),
            slots: manager.shared_table(),
            owner: None,
        })
    }

    /// Sets the data of this mutex's nodes; the owner's name is appended. Default: the manager's node data,
    /// which has the host and the process id.
    #[must_use]
    pub fn node_data(self, data: impl Into<Vec<u8>>) -> Self {
        Self { data: data.into().into(), ..self }
    }

    /// Returns the same mutex, with `owner` for the calls that name no owner: those of [`Lock`](crate::Lock),
    /// and [`acquire_scoped`](Self::acquire_scoped).
    #[must_use]
    pub fn for_owner(&self, owner: &Owner) -> Self {
        Self { owner: Some(owner.clone()), ..self.clone() }
    }

    /// The whole path of the lock, chroot included.
    #[must_use]
    pub fn path(&self) -> &ZnodePath {
        self.queue.directory()
    }

    /// The number of guards that `owner` has now, in this process.
    #[must_use]
    pub fn hold_count(&self, owner: &Owner) -> usize {
        self.slots.0.get(&self.key(owner)).map_or(0, |slot| slot.hold_count())
    }

    /// Waits for the lock for `owner`, without a limit of time. Returns at once if `owner` holds the lock.
    ///
    /// # Errors
    ///
    /// [`Error::Lost`] if `owner` still keeps guards of a lost hold. [`Error::WouldDeadlock`] if `owner`
    /// holds the path as a plain [`Mutex`](crate::Mutex). Otherwise as
    /// [`Mutex::acquire`](crate::Mutex::acquire).
    ///
    /// # Cancel safety
    ///
    /// Cancel safe at every await: the position in the queue is lost, and no node is left behind.
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
    /// As [`acquire`](Self::acquire), and [`Error::Timeout`] if there was no connection or no answer within
    /// the manager's operation timeout.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: no node is left behind.
    pub async fn try_acquire(&self, owner: &Owner) -> Result<Option<ReentrantMutexGuard>, Error> {
        self.try_lock(owner).await
    }

    /// As [`acquire`](Self::acquire), for the owner of [`for_owner`](Self::for_owner), or otherwise for the
    /// [owner in scope](Owner::scope).
    ///
    /// # Errors
    ///
    /// [`Error::Config`] if there is neither. Otherwise as [`acquire`](Self::acquire).
    ///
    /// # Cancel safety
    ///
    /// As [`acquire`](Self::acquire).
    pub async fn acquire_scoped(&self) -> Result<ReentrantMutexGuard, Error> {
        self.acquire(&self.resolve_owner()?).await
    }

    fn resolve_owner(&self) -> Result<Owner, Error> {
        self.owner.clone().map_or_else(Owner::in_scope, Ok)
    }

    async fn lock(&self, owner: &Owner, deadline: Deadline) -> Result<ReentrantMutexGuard, Error> {
        let (entry, slot) = self.slot(owner);
        if let Some(again) = slot.again()? {
            return Ok(again);
        }
        let _acquiring = tokio::select! {
            biased;
            acquiring = slot.acquiring.lock() => acquiring,
            () = deadline.passed() => {
                let (path, waited) = (self.path().to_string(), deadline.waited());
                return Err(Error::Timeout { phase: Phase::SameOwner, path, waited });
            }
        };
        if let Some(again) = slot.again()? {
            return Ok(again);
        }
        self.holders.check(self.path(), owner)?;
        let held = self.queue_of(owner).acquire(deadline).await?;
        Ok(self.guard(&slot, held, owner, entry))
    }

    async fn try_lock(&self, owner: &Owner) -> Result<Option<ReentrantMutexGuard>, Error> {
        let (entry, slot) = self.slot(owner);
        if let Some(again) = slot.again()? {
            return Ok(Some(again));
        }
        // Another task of the same owner is acquiring: not free now.
        let Ok(_acquiring) = slot.acquiring.try_lock() else {
            return Ok(None);
        };
        if let Some(again) = slot.again()? {
            return Ok(Some(again));
        }
        self.holders.check(self.path(), owner)?;
        let limit = Deadline::after(self.queue.manager().operation_timeout());
        let held = self.queue_of(owner).try_acquire(limit).await?;
        Ok(held.map(|held| self.guard(&slot, held, owner, entry)))
    }

    fn guard(
        &self,
        slot: &ReentrantSlot,
        held: Hold,
        owner: &Owner,
        entry: ReentrantSlotEntry,
    ) -> ReentrantMutexGuard {
        let holder = self.holders.enter(self.path(), owner);
        let shared = Arc::new(SharedReentrantHold { entry: holder, held, slot: entry });
        *slot.hold.lock() = Arc::downgrade(&shared);
        ReentrantMutexGuard::of(ReentrantHold(shared))
    }

    fn queue_of(&self, owner: &Owner) -> LockQueue {
        self.queue.clone().with_node_data(owner.append_owner(&self.data))
    }

    fn key(&self, owner: &Owner) -> (ZnodePath, OwnerId) {
        (self.path().clone(), owner.id())
    }

    /// Returns the owner's slot, and the entry that removes the slot from the table when it is not needed any
    /// more. Dropped in this order: first the slot, then the entry.
    fn slot(&self, owner: &Owner) -> (ReentrantSlotEntry, Arc<ReentrantSlot>) {
        let entry = ReentrantSlotEntry {
            slots: Arc::clone(&self.slots),
            key: self.key(owner),
            _owner: owner.clone(),
        };
        let slot = Arc::clone(&self.slots.0.entry(self.key(owner)).or_default());
        (entry, slot)
    }
}

/// One hold of a [`ReentrantMutex`]. All holds of an owner have one fencing token.
///
/// A drop of the owner's last guard releases the lock in the background.
pub type ReentrantMutexGuard = Guard<ReentrantHold>;

/// A share of the hold of a [`ReentrantMutex`].
#[derive(Debug)]
pub struct ReentrantHold(Arc<SharedReentrantHold>);

impl HoldSet for ReentrantHold {
    fn first(&self) -> &Hold {
        &self.0.held
    }
}

impl SingleHold for ReentrantHold {
    async fn into_hold(self) -> Result<Option<Box<Hold>>, ReleaseError> {
        let checked = self.0.held.check();
        let Some(SharedReentrantHold { held, entry, slot }) = Arc::into_inner(self.0) else {
            return checked.map(|()| None).map_err(ReleaseError::Lost);
        };
        drop((entry, slot));
        Ok(Some(Box::new(held)))
    }
}
