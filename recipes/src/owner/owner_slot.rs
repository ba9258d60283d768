//! The holds of an owner, and the guards that share them.

use std::sync::{Arc, Weak};

use dashmap::DashMap;
use lockkeeper_core::{
    ConnectionManager, Deadline, Error, Hold, LockQueue, ManagerExt, Phase, ReleaseError, WholePath,
    ZnodePath, count_of,
};
use lockkeeper_lock::{Owner, OwnerId};
use parking_lot::Mutex;
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

use super::error::WouldDeadlock;
use super::registry::{Holding, OwnerEntry, OwnerRegistry};
use super::side::{Action, Side};
use crate::sharing::HoldKind;

/// A lock that an owner can acquire again: its queues, and the holds of its owners in this process.
///
/// All objects with one path and one manager have the same holds.
#[derive(Clone, Debug)]
pub(crate) struct OwnerHolds(Arc<OwnedLock>);

#[derive(Clone, Debug)]
struct OwnedLock {
    write: LockQueue,
    /// `None` for a mutex.
    read: Option<LockQueue>,
    data: Arc<[u8]>,
    registry: Arc<OwnerRegistry>,
    tables: Arc<SlotTables>,
}

/// The slots of all owners, within one manager.
#[derive(Debug, Default)]
struct SlotTables {
    mutexes: SlotTable,
    rw_locks: SlotTable,
}

type SlotTable = DashMap<(ZnodePath, OwnerId), Arc<OwnerSlot>>;

/// The holds of one owner at one path.
#[derive(Debug, Default)]
struct OwnerSlot {
    holds: Mutex<Holds>,
    /// Locked by the task that sends the requests of the owner.
    acquiring: Arc<AsyncMutex<()>>,
}

#[derive(Debug, Default)]
struct Holds {
    write: Weak<SharedHold>,
    /// The oldest first. There is a second one while the owner keeps reads from before an upgrade.
    reads: Vec<Weak<SharedHold>>,
}

/// One hold of an owner, shared by its guards.
#[derive(Debug)]
pub(crate) struct SharedHold {
    // Dropped in this order: the registry's entry, the hold, and the slot.
    pub(crate) entry: OwnerEntry,
    pub(crate) hold: HoldKind,
    pub(crate) slot_use: SlotUse,
    /// Each guard has a share of this. Without a guard the hold is being released, and is not shared again. A
    /// task that only reads the holds of the owner has none.
    guards: Weak<()>,
}

/// An owner at a lock. Its drop removes the slot from the table if neither a guard nor a task uses the slot.
#[derive(Debug)]
pub(crate) struct SlotUse {
    lock: OwnerHolds,
    // The key of an owner is its address, so the owner lives as long as its key is in the table.
    owner: Owner,
}

/// The holds that an owner has now.
#[derive(Debug)]
pub(crate) struct ActiveHolds {
    pub(crate) write: Option<Arc<SharedHold>>,
    /// The oldest first.
    pub(crate) reads: Vec<Arc<SharedHold>>,
}

/// What an acquire has to do, with the hold that decides it.
#[derive(Debug)]
pub(crate) enum NextStep {
    /// Nothing: the guard has this share.
    Share(HoldShare),
    /// Create a read node beside this write node.
    AddReader(Arc<SharedHold>),
    /// Queue as a contender.
    Queue,
}

impl OwnerHolds {
    /// A lock with these queues. A mutex has no queue to read.
    pub(crate) fn new(write: LockQueue, read: Option<LockQueue>) -> Self {
        let manager = write.manager();
        let (data, tables) = (manager.node_data().into(), manager.shared_table());
        let registry = OwnerRegistry::of(manager);
        Self(Arc::new(OwnedLock { write, read, data, registry, tables }))
    }

    /// The same lock, with other data in its nodes.
    pub(crate) fn with_node_data(&self, data: Vec<u8>) -> Self {
        Self(Arc::new(OwnedLock { data: data.into(), ..OwnedLock::clone(&self.0) }))
    }

    pub(crate) fn path(&self) -> &ZnodePath {
        self.0.write.directory()
    }

    /// For errors and logs.
    pub(crate) fn whole_path(&self) -> WholePath {
        self.0.write.whole_path()
    }

    pub(crate) fn manager(&self) -> &ConnectionManager {
        self.0.write.manager()
    }

    /// The number of guards of this side that the owner has now.
    pub(crate) fn count(&self, side: Side, owner: &Owner) -> u32 {
        // The reference into the table ends first: a drop of the last share removes the slot from the table.
        let slot = self.table().get(&self.key(owner)).map(|slot| Arc::clone(&slot));
        let Some(active) = slot.map(|slot| slot.active()) else { return 0 };
        let guards = |shared: &Arc<SharedHold>| count_of(shared.guards.strong_count());
        match side {
            Side::Write => active.write.iter().map(guards).fold(0, u32::saturating_add),
            Side::Read => active.reads.iter().map(guards).fold(0, u32::saturating_add),
        }
    }

    /// The queue of one side, without the name of an owner in its nodes.
    pub(crate) fn queue(&self, side: Side) -> &LockQueue {
        match (side, &self.0.read) {
            (Side::Read, Some(read)) => read,
            _ => &self.0.write,
        }
    }

    pub(crate) fn queue_of(&self, side: Side, owner: &Owner) -> LockQueue {
        self.queue(side).clone().with_node_data(self.data_of(owner))
    }

    /// Waits in the queue of one side.
    pub(super) async fn wait_in_queue(
        &self,
        side: Side,
        owner: &Owner,
        deadline: Deadline,
    ) -> Result<Hold, Error> {
        let _waits = self.0.registry.wait(self.manager(), self.path(), owner, side);
        self.waiter_queue(side, owner, deadline).acquire(deadline).await
    }

    /// The queue of one side, for a waiter: its node names what the owner holds, and when it gives up.
    fn waiter_queue(&self, side: Side, owner: &Owner, deadline: Deadline) -> LockQueue {
        let data = self.0.registry.waiter_data(&self.0.data, owner, deadline);
        self.queue(side).clone().with_node_data(data)
    }

    pub(crate) fn data_of(&self, owner: &Owner) -> Vec<u8> {
        owner.append_owner(&self.0.data)
    }

    /// The end of a call that only waits for answers.
    pub(crate) fn limit(&self) -> Deadline {
        Deadline::after(self.manager().operation_timeout())
    }

    /// Decides, without a request, what an acquire of this side means for the owner.
    pub(super) fn next_step(&self, side: Side, owner: &Owner) -> Result<NextStep, Error> {
        let (slot_use, slot) = SlotUse::at(self, owner);
        slot.active().next_step(side, &slot_use)
    }

    /// Waits until no other task of the owner sends requests.
    pub(crate) async fn reserve(&self, owner: &Owner, deadline: Deadline) -> Result<OwnerReservation, Error> {
        let (slot_use, slot) = SlotUse::at(self, owner);
        let acquiring = tokio::select! {
            biased;
            acquiring = Arc::clone(&slot.acquiring).lock_owned() => acquiring,
            () = deadline.passed() => {
                let phase = Phase::Recipe("waiting for another task of the same owner".into());
                return Err(Error::Timeout { phase, path: self.whole_path(), waited: deadline.waited() });
            }
        };
        Ok(OwnerReservation { _acquiring: acquiring, slot, slot_use })
    }

    /// `None` if another task of the owner sends requests.
    pub(super) fn try_reserve(&self, owner: &Owner) -> Option<OwnerReservation> {
        let (slot_use, slot) = SlotUse::at(self, owner);
        let acquiring = Arc::clone(&slot.acquiring).try_lock_owned().ok()?;
        Some(OwnerReservation { _acquiring: acquiring, slot, slot_use })
    }

    fn table(&self) -> &SlotTable {
        match self.0.read {
            Some(_) => &self.0.tables.rw_locks,
            None => &self.0.tables.mutexes,
        }
    }

    fn key(&self, owner: &Owner) -> (ZnodePath, OwnerId) {
        (self.path().clone(), owner.id())
    }
}

impl SlotUse {
    /// Returns the slot of an owner, and its use of the slot. Drop the slot first.
    fn at(lock: &OwnerHolds, owner: &Owner) -> (Self, Arc<OwnerSlot>) {
        let slot_use = Self { lock: lock.clone(), owner: owner.clone() };
        let slot = Arc::clone(&lock.table().entry(lock.key(owner)).or_default());
        (slot_use, slot)
    }
}

impl Drop for SlotUse {
    fn drop(&mut self) {
        // A task that acquires has a clone of the slot, which it can only get from this table.
        let is_unused = |slot: &Arc<OwnerSlot>| slot.is_empty() && Arc::strong_count(slot) == 1;
        self.lock.table().remove_if(&self.lock.key(&self.owner), |_, slot| is_unused(slot));
    }
}

impl OwnerSlot {
    fn active(&self) -> ActiveHolds {
        let holds = self.holds.lock();
        // Returned, and dropped without this lock: a drop of the last share locks it again.
        ActiveHolds {
            write: SharedHold::active(&holds.write),
            reads: holds.reads.iter().filter_map(SharedHold::active).collect(),
        }
    }

    fn put(&self, side: Side, shared: &Arc<SharedHold>) {
        let mut holds = self.holds.lock();
        match side {
            Side::Write => holds.write = Arc::downgrade(shared),
            Side::Read => {
                holds.reads.retain(|read| read.strong_count() > 0);
                holds.reads.push(Arc::downgrade(shared));
            }
        }
    }

    fn is_empty(&self) -> bool {
        let holds = self.holds.lock();
        holds.write.strong_count() == 0 && holds.reads.iter().all(|read| read.strong_count() == 0)
    }
}

impl ActiveHolds {
    /// Fails if one of the holds is lost: no further guard may rest on a lost hold.
    pub(crate) fn check(&self) -> Result<(), Error> {
        self.write.iter().chain(&self.reads).try_for_each(|shared| shared.hold().check())?;
        Ok(())
    }

    fn next_step(self, side: Side, slot_use: &SlotUse) -> Result<NextStep, Error> {
        self.check()?;
        let token = |shared: &Arc<SharedHold>| shared.hold().fencing_token();
        let action = side.action(self.write.as_ref().map(token), self.reads.last().map(token));
        let next_step = match (action, side) {
            (Action::Share, Side::Read) => {
                self.reads.into_iter().next_back().and_then(HoldShare::of).map(NextStep::Share)
            }
            (Action::Share, Side::Write) => self.write.and_then(HoldShare::of).map(NextStep::Share),
            (Action::AddReader, _) => self.write.map(NextStep::AddReader),
            (Action::Queue, _) => None,
            (Action::Refuse, _) => {
                let (path, owner) = (slot_use.lock.whole_path(), slot_use.owner.to_string());
                let advice = "release the read guard first, or upgrade it by try_upgrade()";
                return Err(WouldDeadlock { path, owner, advice }.into());
            }
        };
        Ok(next_step.unwrap_or(NextStep::Queue))
    }
}

/// The right to send requests for an owner: its tasks do so one after another.
#[derive(Debug)]
pub(crate) struct OwnerReservation {
    // Dropped in this order.
    _acquiring: OwnedMutexGuard<()>,
    slot: Arc<OwnerSlot>,
    slot_use: SlotUse,
}

impl OwnerReservation {
    pub(super) fn lock(&self) -> &OwnerHolds {
        &self.slot_use.lock
    }

    pub(super) fn waiter_queue(&self, side: Side, deadline: Deadline) -> LockQueue {
        self.slot_use.lock.waiter_queue(side, &self.slot_use.owner, deadline)
    }

    pub(crate) fn active(&self) -> ActiveHolds {
        self.slot.active()
    }

    /// As [`OwnerHolds::next_step`]. Fails also if the owner holds the path as a plain mutex.
    pub(crate) fn next_step(&self, side: Side) -> Result<NextStep, Error> {
        let next_step = self.active().next_step(side, &self.slot_use)?;
        let lock = &self.slot_use.lock;
        if matches!(next_step, NextStep::Queue) && lock.0.read.is_none() {
            lock.0.registry.check_plain(lock.manager(), lock.path(), &self.slot_use.owner)?;
        }
        Ok(next_step)
    }

    /// Records that the owner holds this side by `hold`. Returns the share of the first guard.
    pub(crate) fn enter(self, side: Side, hold: impl Into<HoldKind>) -> HoldShare {
        let hold = hold.into();
        let Self { slot, slot_use, .. } = self;
        let (registry, path) = (&slot_use.lock.0.registry, slot_use.lock.path());
        let entry = registry.enter(path, &slot_use.owner, Holding::Shared(side), hold.hold());
        let guard = Arc::default();
        let shared = Arc::new(SharedHold { entry, hold, slot_use, guards: Arc::downgrade(&guard) });
        slot.put(side, &shared);
        HoldShare { guard, shared }
    }
}

impl SharedHold {
    pub(crate) fn hold(&self) -> &Hold {
        self.hold.hold()
    }

    /// The hold, if a guard has it.
    fn active(shared: &Weak<Self>) -> Option<Arc<Self>> {
        shared.upgrade().filter(|shared| shared.guards.strong_count() > 0)
    }
}

/// One guard's share of a hold.
#[derive(Debug)]
pub(crate) struct HoldShare {
    // Dropped in this order.
    pub(super) guard: Arc<()>,
    pub(super) shared: Arc<SharedHold>,
}

impl HoldShare {
    /// `None` if the hold has no guard any more, and is being released.
    pub(crate) fn of(shared: Arc<SharedHold>) -> Option<Self> {
        Some(Self { guard: shared.guards.upgrade()?, shared })
    }

    pub(crate) fn hold(&self) -> &Hold {
        self.shared.hold()
    }

    /// The lock of the hold, and its owner.
    pub(crate) fn lock_and_owner(&self) -> (&OwnerHolds, &Owner) {
        (&self.shared.slot_use.lock, &self.shared.slot_use.owner)
    }

    /// Returns the hold, if no other guard shares it and no other task reads it now.
    pub(crate) fn into_sole(self) -> Result<SharedHold, Self> {
        let Self { guard, shared } = self;
        Arc::try_unwrap(shared).map_err(|shared| Self { guard, shared })
    }

    /// Ends the share. Returns the hold if this was its last guard. Waits for the owner's tasks that read the
    /// hold at this moment, but no longer than a request may take.
    pub(crate) async fn into_hold(self) -> Result<Option<Box<Hold>>, ReleaseError> {
        let Self { guard, mut shared } = self;
        let checked = shared.hold().check().map_err(ReleaseError::Lost);
        // Of guards that are released at the same time, exactly one is the last.
        if Arc::into_inner(guard).is_none() {
            return checked.map(|()| None);
        }
        let (lock, owner) = (shared.slot_use.lock.clone(), shared.slot_use.owner.clone());
        let limit = lock.limit();
        loop {
            shared = match Arc::try_unwrap(shared) {
                Ok(SharedHold { entry, hold, slot_use, .. }) => {
                    drop((entry, slot_use));
                    return Ok(hold.into_hold());
                }
                Err(shared) => shared,
            };
            // The owner's tasks send their requests one after another.
            if let Err(error) = lock.reserve(&owner, limit).await {
                let (path, cause) = (shared.hold().whole_path(), error.to_string());
                return Err(ReleaseError::Unconfirmed { path, cause });
            }
            tokio::task::yield_now().await;
        }
    }
}
