use std::sync::{Arc, Weak};

use lockkeeper_core::{Deadline, Error, HoldExt};
use parking_lot::Mutex;

use crate::owner::{HoldShare, OwnerHolds, SharedHold, Side, anonymous};
use crate::sharing::{Beside, HandOffPolicy, SharingHandle};

/// The nodes that the readers of this process share.
#[derive(Clone, Debug)]
pub(super) struct ReadSharing {
    nodes: SharingHandle,
    /// The hold that was granted last, and the number of its slot.
    newest: Arc<Mutex<(u64, Weak<SharedHold>)>>,
}

impl ReadSharing {
    pub(super) fn new(policy: HandOffPolicy) -> Self {
        Self { nodes: SharingHandle::of_readers(policy), newest: Arc::default() }
    }

    /// Waits until no writer is ahead.
    pub(super) async fn acquire(&self, holds: &OwnerHolds, deadline: Deadline) -> Result<HoldShare, Error> {
        if holds.manager().is_closing() {
            return Err(Error::Closed);
        }
        let reader = anonymous();
        let queue = holds.queue_of(Side::Read, &reader);
        let hold = match self.nodes.acquire_beside(queue, deadline, |slot| self.share(slot)).await? {
            Beside::Joined(share) => return Ok(share),
            Beside::Alone(hold) => hold,
        };
        let slot = hold.slot();
        // No other task has this owner.
        let share = holds.reserve(&reader, Deadline::never()).await?.enter(Side::Read, hold);
        *self.newest.lock() = (slot, share.downgrade());
        if let Some(hold) = share.hand_off() {
            hold.mark_held();
        }
        Ok(share)
    }

    /// Joins the readers of this process, if no writer waits.
    pub(super) async fn join(&self, holds: &OwnerHolds) -> Result<Option<HoldShare>, Error> {
        match holds.manager().is_closing() {
            true => Err(Error::Closed),
            false => Ok(self.nodes.join(|slot| self.share(slot)).await),
        }
    }

    /// A writer of this process waits.
    pub(super) fn end_for_writer(&self) {
        self.nodes.end_all_sharing();
    }

    /// A writer of this process tries.
    pub(super) fn end_idle(&self) {
        self.nodes.end_all_idle();
    }

    /// A share of the hold that has this slot. Otherwise the hold, which its last guard is giving up: its
    /// drop changes the state of the nodes.
    fn share(&self, slot: u64) -> Result<HoldShare, Option<Arc<SharedHold>>> {
        let newest = self.newest.lock().clone();
        let hold = if newest.0 == slot { newest.1.upgrade() } else { None };
        let Some(hold) = hold else { return Err(None) };
        match HoldShare::of(Arc::clone(&hold)) {
            Some(share) if hold.hold().is_valid() && !hold.hold().is_revoke_requested() => Ok(share),
            _ => Err(Some(hold)),
        }
    }
}
