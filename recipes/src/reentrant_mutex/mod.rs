mod inspect;
mod recipe;
mod ticket;

use std::marker::PhantomData;
use std::ops::Deref;
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
use crate::owner::{Owner, OwnerEntry, OwnerId, OwnerRegistry};

/// A mutex over all processes that its owner may take again while holding it.
///
/// Whose hold it is, is said explicitly: by an [`Owner`], or by a scope that carries one down a chain of calls. Only
/// an owner's first hold and its last release go over the network; those between are counted in this process. All
/// objects of one path and one [`ConnectionManager`] count together.
///
/// Everything else is as for [`Mutex`](crate::Mutex), with which it shares layout and line: fairness, cost, session
/// loss, interchange with Curator's `InterProcessMutex`.
///
/// # Session loss
///
/// All holds of an owner rest on one node and are lost together. While a lost one is still kept, a further acquire
/// of the same owner fails with [`Error::Lost`]: drop the lost guards first.
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
/// // The same by a scope: the functions called need not be given the owner.
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
    /// On whose behalf it is taken as a [`Lock`]; else the owner in scope.
    owner: Option<Owner>,
}

/// The holds of all owners, within one manager.
#[derive(Debug, Default)]
struct ReentrantSlots(DashMap<(ZnodePath, OwnerId), Arc<ReentrantSlot>>);

/// Where one owner's hold of one path is found.
#[derive(Debug, Default)]
struct ReentrantSlot {
    hold: Mutex<Weak<SharedReentrantHold>>,
    /// Held by the task that goes over the network for the owner.
    acquiring: Arc<AsyncMutex<()>>,
}

impl ReentrantSlot {
    /// A further guard of a hold there is already.
    fn again(&self) -> Result<Option<OwnedReentrantMutexGuard>, Error> {
        let Some(shared) = self.hold.lock().upgrade() else {
            return Ok(None);
        };
        let again = OwnedReentrantMutexGuard { shared };
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
    // Dropped in this order: out of the books first, given up, and the slot last.
    entry: OwnerEntry,
    held: Hold,
    slot: ReentrantSlotEntry,
}

/// One owner's slot in the table; taken out when nobody uses it any more.
#[derive(Debug)]
struct ReentrantSlotEntry {
    slots: Arc<ReentrantSlots>,
    key: (ZnodePath, OwnerId),
    // An owner is told apart by its address: kept alive for as long as that is in the table.
    _owner: Owner,
}

impl Drop for ReentrantSlotEntry {
    fn drop(&mut self) {
        // A task that is acquiring has a clone, which it can only get from this table.
        self.slots.0.remove_if(&self.key, |_, slot| slot.hold_count() == 0 && Arc::strong_count(slot) == 1);
    }
}

impl ReentrantMutex {
    /// The mutex at `path`, below the manager's chroot. Nothing is sent.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] when the path is not one, or is the root.
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

    /// What is written into the nodes of this mutex's contenders, before the owner's name. Default: the manager's
    /// node data, which is host and process id.
    #[must_use]
    pub fn node_data(self, data: impl Into<Vec<u8>>) -> Self {
        Self { data: data.into().into(), ..self }
    }

    /// The same mutex, which takes itself on behalf of `owner` where none is named: as a
    /// [`Lock`](crate::Lock), and by [`acquire_scoped`](Self::acquire_scoped).
    #[must_use]
    pub fn for_owner(&self, owner: &Owner) -> Self {
        Self { owner: Some(owner.clone()), ..self.clone() }
    }

    /// The whole path of the lock, chroot included.
    #[must_use]
    pub fn path(&self) -> &ZnodePath {
        self.queue.directory()
    }

    /// How many guards `owner` has now, in this process.
    #[must_use]
    pub fn hold_count(&self, owner: &Owner) -> usize {
        self.slots.0.get(&self.key(owner)).map_or(0, |slot| slot.hold_count())
    }

    /// Waits for the lock on behalf of `owner`, for as long as it takes; at once if it holds it.
    ///
    /// # Errors
    ///
    /// [`Error::Lost`] when `owner` still keeps guards of a hold that was lost. [`Error::WouldDeadlock`] when it
    /// holds the path as a plain [`Mutex`](crate::Mutex). Else as [`Mutex::acquire`](crate::Mutex::acquire).
    ///
    /// # Cancel safety
    ///
    /// Cancel safe at every await: your place in the line is lost, and no node is left behind.
    pub async fn acquire(&self, owner: &Owner) -> Result<ReentrantMutexGuard<'_>, Error> {
        self.lock(owner, Deadline::never()).await.map(ReentrantMutexGuard::borrowed)
    }

    /// Waits for the lock on behalf of `owner`, for at most `timeout`.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`]; else as [`acquire`](Self::acquire).
    ///
    /// # Cancel safety
    ///
    /// As [`acquire`](Self::acquire).
    pub async fn acquire_timeout(
        &self,
        owner: &Owner,
        timeout: Duration,
    ) -> Result<ReentrantMutexGuard<'_>, Error> {
        self.lock(owner, Deadline::after(timeout)).await.map(ReentrantMutexGuard::borrowed)
    }

    /// Takes the lock on behalf of `owner` if it is free or held by it; `None` if not.
    ///
    /// # Errors
    ///
    /// As [`acquire`](Self::acquire), and [`Error::Timeout`] when there was no connection or no answer within the
    /// manager's operation timeout.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: no node is left behind.
    pub async fn try_acquire(&self, owner: &Owner) -> Result<Option<ReentrantMutexGuard<'_>>, Error> {
        Ok(self.try_lock(owner).await?.map(ReentrantMutexGuard::borrowed))
    }

    /// As [`acquire`](Self::acquire), on behalf of the owner it is [for](Self::for_owner), else of the [owner in
    /// scope](Owner::scope).
    ///
    /// # Errors
    ///
    /// [`Error::Config`] when no owner is in scope; else as [`acquire`](Self::acquire).
    ///
    /// # Cancel safety
    ///
    /// As [`acquire`](Self::acquire).
    pub async fn acquire_scoped(&self) -> Result<ReentrantMutexGuard<'_>, Error> {
        self.acquire(&self.resolve_owner()?).await
    }

    /// As [`acquire`](Self::acquire), with a guard that borrows nothing.
    ///
    /// # Errors
    ///
    /// As [`acquire`](Self::acquire).
    ///
    /// # Cancel safety
    ///
    /// As [`acquire`](Self::acquire).
    pub async fn acquire_owned(&self, owner: &Owner) -> Result<OwnedReentrantMutexGuard, Error> {
        self.lock(owner, Deadline::never()).await
    }

    /// As [`acquire_timeout`](Self::acquire_timeout), with a guard that borrows nothing.
    ///
    /// # Errors
    ///
    /// As [`acquire_timeout`](Self::acquire_timeout).
    ///
    /// # Cancel safety
    ///
    /// As [`acquire`](Self::acquire).
    pub async fn acquire_owned_timeout(
        &self,
        owner: &Owner,
        timeout: Duration,
    ) -> Result<OwnedReentrantMutexGuard, Error> {
        self.lock(owner, Deadline::after(timeout)).await
    }

    /// As [`try_acquire`](Self::try_acquire), with a guard that borrows nothing.
    ///
    /// # Errors
    ///
    /// As [`try_acquire`](Self::try_acquire).
    ///
    /// # Cancel safety
    ///
    /// As [`try_acquire`](Self::try_acquire).
    pub async fn try_acquire_owned(&self, owner: &Owner) -> Result<Option<OwnedReentrantMutexGuard>, Error> {
        self.try_lock(owner).await
    }

    fn resolve_owner(&self) -> Result<Owner, Error> {
        self.owner.clone().map_or_else(Owner::in_scope, Ok)
    }

    async fn lock(&self, owner: &Owner, deadline: Deadline) -> Result<OwnedReentrantMutexGuard, Error> {
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

    async fn try_lock(&self, owner: &Owner) -> Result<Option<OwnedReentrantMutexGuard>, Error> {
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
    ) -> OwnedReentrantMutexGuard {
        let holder = self.holders.enter(self.path(), owner);
        let shared = Arc::new(SharedReentrantHold { entry: holder, held, slot: entry });
        *slot.hold.lock() = Arc::downgrade(&shared);
        OwnedReentrantMutexGuard { shared }
    }

    fn queue_of(&self, owner: &Owner) -> LockQueue {
        self.queue.clone().with_node_data(owner.append_owner(&self.data))
    }

    fn key(&self, owner: &Owner) -> (ZnodePath, OwnerId) {
        (self.path().clone(), owner.id())
    }

    /// The owner's slot, and what takes it out of the table once nobody needs it. Dropped in this order: first the
    /// slot, then the entry.
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

/// One hold of a [`ReentrantMutex`]. What it can do is told by [`Hold`], to which it dereferences; all holds of
/// an owner have one fencing token.
///
/// Dropping the owner's last one releases the lock in the background.
#[derive(Debug)]
#[must_use = "a guard that is not kept gives its hold back at once"]
#[clippy::has_significant_drop]
pub struct ReentrantMutexGuard<'a> {
    guard: OwnedReentrantMutexGuard,
    mutex: PhantomData<&'a ReentrantMutex>,
}

/// One hold of a [`ReentrantMutex`] that borrows nothing. See [`ReentrantMutexGuard`].
#[derive(Debug)]
#[must_use = "a guard that is not kept gives its hold back at once"]
#[clippy::has_significant_drop]
pub struct OwnedReentrantMutexGuard {
    shared: Arc<SharedReentrantHold>,
}

impl ReentrantMutexGuard<'_> {
    fn borrowed(guard: OwnedReentrantMutexGuard) -> Self {
        Self { guard, mutex: PhantomData }
    }

    /// Gives this hold back; the owner's last one releases the lock and waits until the server has done so.
    ///
    /// # Errors
    ///
    /// As [`Hold::release`]; for all but the last one only [`ReleaseError::Lost`].
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the release goes on in the background.
    pub async fn release(self) -> Result<(), ReleaseError> {
        self.guard.release().await
    }
}

impl OwnedReentrantMutexGuard {
    /// Gives this hold back; the owner's last one releases the lock and waits until the server has done so.
    ///
    /// # Errors
    ///
    /// As [`Hold::release`]; for all but the last one only [`ReleaseError::Lost`].
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the release goes on in the background.
    pub async fn release(self) -> Result<(), ReleaseError> {
        let checked = self.shared.held.check();
        let Some(SharedReentrantHold { held, entry, slot }) = Arc::into_inner(self.shared) else {
            return checked.map_err(ReleaseError::Lost);
        };
        drop((entry, slot));
        held.release().await
    }
}

impl Deref for ReentrantMutexGuard<'_> {
    type Target = Hold;

    fn deref(&self) -> &Hold {
        &self.guard.shared.held
    }
}

impl Deref for OwnedReentrantMutexGuard {
    type Target = Hold;

    fn deref(&self) -> &Hold {
        &self.shared.held
    }
}
