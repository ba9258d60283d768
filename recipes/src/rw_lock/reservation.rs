use std::sync::Arc;

use lockkeeper_core::{Deadline, Error, Hold, Phase};
use tokio::sync::OwnedMutexGuard;

use super::lock::RwLock;
use super::side::{Side, Way};
use super::slot::{Seat, Shared, Slot, Standing};
use crate::owner::Owner;

/// The right to go over the network for an owner: its tasks do so one after another.
#[derive(Debug)]
pub(crate) struct Reservation {
    // Dropped in this order.
    _acquiring: OwnedMutexGuard<()>,
    slot: Arc<Slot>,
    seat: Seat,
}

/// What is left to do for an acquire.
#[derive(Debug)]
pub(super) enum Turn {
    /// Nothing: here is the hold.
    Again(Arc<Shared>),
    /// A read node beside this write.
    Beside(Arc<Shared>),
    /// A place in the line.
    Line,
}

impl Turn {
    /// What the owner holds already decides.
    pub(super) fn of(standing: Standing, side: Side, lock: &RwLock, owner: &Owner) -> Result<Self, Error> {
        standing.check()?;
        let shared = match standing.way(side) {
            Way::Again => standing.newest(side).map(Self::Again),
            Way::Beside => standing.write.map(Self::Beside),
            Way::Line => None,
            Way::Never => {
                return Err(Error::WouldDeadlock {
                    path: lock.path().to_string(),
                    owner: owner.to_string(),
                    advice: "release the read guard first, or turn it into a write guard with try_upgrade()",
                });
            }
        };
        Ok(shared.unwrap_or(Self::Line))
    }
}

impl Reservation {
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

    pub(super) fn standing(&self) -> Standing {
        self.slot.standing()
    }

    pub(super) fn turn(&self, side: Side) -> Result<Turn, Error> {
        Turn::of(self.standing(), side, &self.seat.lock, &self.seat.owner)
    }

    /// The owner holds this side now, by `held`.
    pub(super) fn enter(self, side: Side, held: Hold) -> Arc<Shared> {
        let Self { slot, seat, .. } = self;
        let entry = seat.lock.holders().enter(seat.lock.path(), &seat.owner);
        let shared = Shared::new(entry, held, seat);
        slot.put(side, &shared);
        shared
    }
}
