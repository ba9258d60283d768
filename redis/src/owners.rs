//! The holds of each owner in this process.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use lockkeeper_lock::{Deadline, Owner, OwnerId, count_of};
use parking_lot::Mutex;
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

use crate::error::{Error, Phase};
use crate::hold::Hold;
use crate::manager::ConnectionManager;
use crate::name::LockName;

/// The owners of holds, within one manager.
#[derive(Debug, Default)]
pub(crate) struct OwnerTable(Mutex<HashMap<(LockName, OwnerId), Slot>>);

/// What one owner holds of one lock.
#[derive(Debug)]
struct Slot {
    // The key of an owner is its address, so the owner lives as long as its key is in the table.
    _owner: Owner,
    uses: u32,
    /// The guards of plain mutexes.
    plain: u32,
    shared: Weak<SharedHold>,
    /// Locked by the task that acquires for the owner.
    acquiring: Arc<AsyncMutex<()>>,
}

/// One hold of an owner, shared by its guards.
#[derive(Debug)]
pub(crate) struct SharedHold {
    pub(crate) hold: Hold,
    _slot: SlotUse,
}

impl SharedHold {
    pub(crate) fn into_hold(self) -> Hold {
        self.hold
    }
}

/// An owner at a lock. Its drop removes the slot from the table if nothing else uses it.
#[derive(Debug)]
pub(crate) struct SlotUse {
    table: Arc<OwnerTable>,
    key: (LockName, OwnerId),
    is_plain: bool,
}

impl SlotUse {
    fn at(manager: &ConnectionManager, name: &LockName, owner: &Owner) -> Self {
        let key = (name.clone(), owner.id());
        let table: Arc<OwnerTable> = manager.shared_table();
        let mut slots = table.0.lock();
        let slot = slots.entry(key.clone()).or_insert_with(|| Slot {
            _owner: owner.clone(),
            uses: 0,
            plain: 0,
            shared: Weak::new(),
            acquiring: Arc::default(),
        });
        slot.uses += 1;
        drop(slots);
        Self { table, key, is_plain: false }
    }

    fn with<T: Default>(&self, read: impl FnOnce(&mut Slot) -> T) -> T {
        self.table.0.lock().get_mut(&self.key).map(read).unwrap_or_default()
    }

    /// The number of guards that share the owner's hold.
    fn shared_guards(&self) -> u32 {
        self.with(|slot| count_of(slot.shared.strong_count()))
    }
}

impl Drop for SlotUse {
    fn drop(&mut self) {
        let mut slots = self.table.0.lock();
        let Some(slot) = slots.get_mut(&self.key) else { return };
        slot.uses -= 1;
        slot.plain -= u32::from(self.is_plain);
        if slot.uses == 0 {
            slots.remove(&self.key);
        }
    }
}

fn would_deadlock(name: &LockName, owner: &Owner, advice: &'static str) -> Error {
    Error::WouldDeadlock { name: name.to_string(), owner: owner.to_string(), advice }
}

/// Refuses a plain acquire for an owner that holds the lock already. Returns its entry for the guard.
pub(crate) fn check_plain(
    manager: &ConnectionManager,
    name: &LockName,
    owner: &Owner,
) -> Result<SlotUse, Error> {
    let slot_use = SlotUse::at(manager, name, owner);
    if slot_use.with(|slot| slot.plain > 0 || slot.shared.strong_count() > 0) {
        return Err(would_deadlock(name, owner, "use a ReentrantMutex for calls that lock again"));
    }
    Ok(slot_use)
}

/// Records that the owner has a guard of a plain mutex.
pub(crate) fn enter_plain(mut slot_use: SlotUse) -> SlotUse {
    slot_use.with(|slot| slot.plain += 1);
    slot_use.is_plain = true;
    slot_use
}

/// The number of guards that `owner` has of a reentrant lock.
pub(crate) fn hold_count(manager: &ConnectionManager, name: &LockName, owner: &Owner) -> u32 {
    SlotUse::at(manager, name, owner).shared_guards()
}

/// The right to acquire for an owner: its tasks do so one after another.
#[derive(Debug)]
pub(crate) struct Reservation {
    _acquiring: OwnedMutexGuard<()>,
    slot_use: SlotUse,
}

/// What an owner has to do for one more guard.
pub(crate) enum Next {
    /// Nothing: the guard has this share.
    Share(Arc<SharedHold>),
    /// Acquire, and [enter](Reservation::enter) the hold.
    Acquire(Reservation),
}

/// Decides what an acquire means for the owner. Waits for other tasks of the owner that acquire.
pub(crate) async fn reserve(
    manager: &ConnectionManager,
    name: &LockName,
    owner: &Owner,
    deadline: Deadline,
) -> Result<Next, Error> {
    let slot_use = SlotUse::at(manager, name, owner);
    if let Some(shared) = slot_use.share()? {
        return Ok(Next::Share(shared));
    }
    let acquiring = slot_use.with(|slot| Some(Arc::clone(&slot.acquiring)));
    let Some(acquiring) = acquiring else { return Err(Error::Closed) };
    let acquiring = tokio::select! {
        biased;
        acquiring = acquiring.lock_owned() => acquiring,
        () = deadline.passed() => {
            let (name, waited) = (name.to_string(), deadline.waited());
            return Err(Error::Timeout { phase: Phase::SameOwner, name, waited });
        }
    };
    // The task before may have acquired it.
    if let Some(shared) = slot_use.share()? {
        return Ok(Next::Share(shared));
    }
    if slot_use.with(|slot| slot.plain > 0) {
        return Err(would_deadlock(name, owner, "release the guard of the plain Mutex first"));
    }
    Ok(Next::Acquire(Reservation { _acquiring: acquiring, slot_use }))
}

impl SlotUse {
    /// One more share of the owner's hold. Fails if that is lost.
    fn share(&self) -> Result<Option<Arc<SharedHold>>, Error> {
        let shared = self.with(|slot| slot.shared.upgrade());
        if let Some(shared) = &shared {
            shared.hold.check()?;
        }
        Ok(shared)
    }
}

impl Reservation {
    /// Records the owner's hold. Returns the share of its first guard.
    pub(crate) fn enter(self, hold: Hold) -> Arc<SharedHold> {
        let Self { _acquiring, slot_use } = self;
        let key_use =
            SlotUse { table: Arc::clone(&slot_use.table), key: slot_use.key.clone(), is_plain: false };
        key_use.with(|slot| slot.uses += 1);
        let shared = Arc::new(SharedHold { hold, _slot: key_use });
        slot_use.with(|slot| slot.shared = Arc::downgrade(&shared));
        shared
    }
}
