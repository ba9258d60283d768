//! Where an owner's holds of one path are found, by every object of that path and manager.

use std::ops::Deref;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use dashmap::DashMap;
use lockkeeper_core::{Error, Hold, ReleaseError, ZnodePath};
use parking_lot::Mutex;
use tokio::sync::Mutex as AsyncMutex;

use super::lock::RwLock;
use super::reservation::OwnerReservation;
use super::side::{Side, Way};
use crate::owner::{Owner, OwnerEntry, OwnerId};

/// The slots of all owners, within one manager.
#[derive(Debug, Default)]
pub(super) struct SideSlots(DashMap<(ZnodePath, OwnerId), Arc<SideSlot>>);

impl SideSlots {
    /// How many guards this owner has on this side.
    pub(super) fn hold_count(&self, path: &ZnodePath, owner: &Owner, side: Side) -> usize {
        // The table is let go of first: what is looked at may be dropped here, and takes the slot out.
        let slot = self.0.get(&(path.clone(), owner.id())).map(|slot| Arc::clone(&slot));
        slot.map_or(0, |slot| slot.hold_count(side))
    }
}

/// One owner's holds of one path.
#[derive(Debug, Default)]
pub(super) struct SideSlot {
    holds: Mutex<Holds>,
    /// Held by the task that goes over the network for the owner.
    pub(super) acquiring: Arc<AsyncMutex<()>>,
}

#[derive(Debug, Default)]
struct Holds {
    write: Weak<SharedSideHold>,
    /// Oldest first. There is a second one while reads from before an upgrade are still kept.
    reads: Vec<Weak<SharedSideHold>>,
}

/// One hold of an owner, shared by its guards.
#[derive(Debug)]
pub(super) struct SharedSideHold {
    // Dropped in this order: out of the books first, given up, and the seat last.
    pub(super) entry: OwnerEntry,
    pub(super) held: Hold,
    pub(super) seat: Seat,
    /// How many guards there are. Tasks of the owner that look at the hold for a moment are none.
    guards: Arc<AtomicUsize>,
}

/// One guard's share of a hold.
#[derive(Debug)]
pub(super) struct HoldShare {
    shared: Arc<SharedSideHold>,
    count: Count,
}

/// One in the number of guards, until it is dropped.
#[derive(Debug)]
struct Count(Arc<AtomicUsize>);

impl Count {
    fn of(guards: &Arc<AtomicUsize>) -> Self {
        guards.fetch_add(1, Ordering::AcqRel);
        Self(Arc::clone(guards))
    }
}

impl Drop for Count {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Deref for HoldShare {
    type Target = SharedSideHold;

    fn deref(&self) -> &SharedSideHold {
        &self.shared
    }
}

impl HoldShare {
    pub(super) fn of(shared: Arc<SharedSideHold>) -> Self {
        let count = Count::of(&shared.guards);
        Self { shared, count }
    }

    /// The hold itself, if nobody else has a share of it, or looks at it now.
    pub(super) fn into_sole(self) -> Result<SharedSideHold, Self> {
        let Self { shared, count } = self;
        Arc::try_unwrap(shared).map_err(|shared| Self { shared, count })
    }

    /// Gives the share back; the hold itself if it was the last, to be released. Waits for the owner's tasks that
    /// look at it just now, but no longer than a request may take.
    pub(super) async fn into_hold(self) -> Result<Option<Hold>, ReleaseError> {
        let Self { mut shared, count } = self;
        let checked = shared.held.check().map_err(ReleaseError::Lost);
        drop(count);
        let (lock, owner) = (shared.seat.lock.clone(), shared.seat.owner.clone());
        let limit = lock.limit();
        loop {
            shared = match Arc::try_unwrap(shared) {
                Ok(SharedSideHold { entry, held, seat, .. }) => {
                    drop((entry, seat));
                    return Ok(Some(held));
                }
                Err(shared) if shared.guards.load(Ordering::Acquire) > 0 => return checked.map(|()| None),
                Err(shared) => shared,
            };
            // They go over the network one after another.
            if let Err(error) = OwnerReservation::of(&lock, &owner, limit).await {
                let (path, cause) = (shared.held.path().to_owned(), error.to_string());
                return Err(ReleaseError::Unconfirmed { path, cause });
            }
            tokio::task::yield_now().await;
        }
    }

    /// Gives the share back; the last one releases the hold.
    pub(super) async fn release(self) -> Result<(), ReleaseError> {
        match self.into_hold().await? {
            Some(held) => held.release().await,
            None => Ok(()),
        }
    }
}

impl SharedSideHold {
    pub(super) fn new(entry: OwnerEntry, held: Hold, seat: Seat) -> Arc<Self> {
        Arc::new(Self { entry, held, seat, guards: Arc::default() })
    }
}

/// What an owner holds now.
#[derive(Debug)]
pub(super) struct ActiveHolds {
    pub(super) write: Option<Arc<SharedSideHold>>,
    /// Oldest first.
    pub(super) reads: Vec<Arc<SharedSideHold>>,
}

impl ActiveHolds {
    /// Nothing can be built on what was lost.
    pub(super) fn check(&self) -> Result<(), Error> {
        self.write.iter().chain(&self.reads).try_for_each(|shared| shared.held.check())?;
        Ok(())
    }

    pub(super) fn way(&self, side: Side) -> Way {
        let token = |shared: &Arc<SharedSideHold>| shared.held.fencing_token();
        side.way(self.write.as_ref().map(token), self.reads.last().map(token))
    }

    /// The hold a further guard of this side would share.
    pub(super) fn newest(self, side: Side) -> Option<Arc<SharedSideHold>> {
        match side {
            Side::Read => self.reads.into_iter().next_back(),
            Side::Write => self.write,
        }
    }
}

impl SideSlot {
    pub(super) fn active(&self) -> ActiveHolds {
        let holds = self.holds.lock();
        // Moved out of the lock: dropping the last share of a hold takes it.
        ActiveHolds {
            write: holds.write.upgrade(),
            reads: holds.reads.iter().filter_map(Weak::upgrade).collect(),
        }
    }

    pub(super) fn put(&self, side: Side, shared: &Arc<SharedSideHold>) {
        let mut holds = self.holds.lock();
        match side {
            Side::Write => holds.write = Arc::downgrade(shared),
            Side::Read => {
                holds.reads.retain(|read| read.strong_count() > 0);
                holds.reads.push(Arc::downgrade(shared));
            }
        }
    }

    fn hold_count(&self, side: Side) -> usize {
        let active = self.active();
        let guards = |shared: &Arc<SharedSideHold>| shared.guards.load(Ordering::Acquire);
        match side {
            Side::Write => active.write.iter().map(guards).sum(),
            Side::Read => active.reads.iter().map(guards).sum(),
        }
    }

    fn is_empty(&self) -> bool {
        let holds = self.holds.lock();
        holds.write.strong_count() == 0 && holds.reads.iter().all(|read| read.strong_count() == 0)
    }
}

/// An owner at a lock. Takes the slot out of the table when it is the last to use it.
#[derive(Debug)]
pub(super) struct Seat {
    pub(super) lock: RwLock,
    // An owner is told apart by its address: kept alive for as long as that is in the table.
    pub(super) owner: Owner,
}

impl Seat {
    /// A seat and its slot. Drop the slot first.
    pub(super) fn at(lock: &RwLock, owner: &Owner) -> (Self, Arc<SideSlot>) {
        let seat = Self { lock: lock.clone(), owner: owner.clone() };
        let slot = Arc::clone(&lock.slots().0.entry(seat.key()).or_default());
        (seat, slot)
    }

    fn key(&self) -> (ZnodePath, OwnerId) {
        (self.lock.path().clone(), self.owner.id())
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        // A task that is acquiring has a clone, which it can only get from this table.
        let unused = |slot: &Arc<SideSlot>| slot.is_empty() && Arc::strong_count(slot) == 1;
        self.lock.slots().0.remove_if(&self.key(), |_, slot| unused(slot));
    }
}
