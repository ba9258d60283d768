use std::sync::Arc;

use lockkeeper_core::{Deadline, Error, Hold, Phase};
use tokio::sync::OwnedMutexGuard;

use super::lock::RwLock;
use super::side::{Side, Way};
use super::slot::{ActiveHolds, Seat, SharedSideHold, SideSlot};
use crate::owner::Owner;

/// The right to go over the network for an owner: its tasks do so one after another.
#[derive(Debug)]
pub(crate) struct OwnerReservation {
    // Dropped in this order.
    _acquiring: OwnedMutexGuard<()>,
    slot: Arc<SideSlot>,
    seat: Seat,
}

/// What is left to do for an acquire.
#[derive(Debug)]
pub(super) enum Turn {
    /// Nothing: here is the hold.
    Again(Arc<SharedSideHold>),
    /// A read node beside this write.
    Beside(Arc<SharedSideHold>),
    /// A place in the line.
    Queue,
}

impl Turn {
    /// What the owner holds already decides.
    pub(super) fn of(active: ActiveHolds, side: Side, lock: &RwLock, owner: &Owner) -> Result<Self, Error> {
        active.check()?;
        let shared = match active.way(side) {
            Way::Again => active.newest(side).map(Self::Again),
            Way::Beside => active.write.map(Self::Beside),
            Way::Queue => None,
            Way::Never => {
                return Err(Error::WouldDeadlock {
                    path: lock.path().to_string(),
                    owner: owner.to_string(),
                    advice: "release the read guard first, or turn it into a write guard with try_upgrade()",
                });
            }
        };
        Ok(shared.unwrap_or(Self::Queue))
    }
}

impl OwnerReservation {
    /// Waits until no other task of the owner goes over the network.
    pub(crate) async fn of(lock: &RwLock, owner: &Owner, deadline: Deadline) -> Result<Self, Error> {
        let (seat, slot) = Seat::at(lock, owner);
        let acquiring = tokio::select! {
            biased;
            acquiring = Arc::clone(&slot.acquiring).lock_owned() => acquiring,
            () = deadline.passed() => {
                let (path, waited) = (lock.path().to_string(), deadline.waited());
                return Err(Error::Timeout { phase: Phase::SameOwner, path, waited });
            }
        };
        Ok(Self { _acquiring: acquiring, slot, seat })
    }

    /// `None` when another task of the owner goes over the network.
    pub(crate) fn try_of(lock: &RwLock, owner: &Owner) -> Option<Self> {
        let (seat, slot) = Seat::at(lock, owner);
        let acquiring = Arc::clone(&slot.acquiring).try_lock_owned().ok()?;
        Some(Self { _acquiring: acquiring, slot, seat })
    }

    pub(super) fn active(&self) -> ActiveHolds {
        self.slot.active()
    }

    pub(super) fn turn(&self, side: Side) -> Result<Turn, Error> {
        Turn::of(self.active(), side, &self.seat.lock, &self.seat.owner)
    }

    /// The owner holds this side now, by `held`.
    pub(super) fn enter(self, side: Side, held: Hold) -> Arc<SharedSideHold> {
        let Self { slot, seat, .. } = self;
        let entry = seat.lock.holders().enter(seat.lock.path(), &seat.owner);
        let shared = SharedSideHold::new(entry, held, seat);
        slot.put(side, &shared);
        shared
    }
}
