use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;

use lockkeeper_core::{DetachedNode, Hold};

use super::acquire_slot::AcquireSlot;
use super::contention::NodeTenure;

/// The hold of a guard whose node may be handed off. Its drop gives the node back.
pub(crate) struct SharedHold {
    // Dropped first: then the other reference is the only one.
    hold: Arc<Hold>,
    tenure_of_guard: GuardTenure,
}

/// The time for which one guard has the node.
struct GuardTenure {
    hold: Option<Arc<Hold>>,
    tenure: Arc<NodeTenure>,
    slot: AcquireSlot,
}

/// The node of a guard that was not handed off.
pub(crate) enum Remainder {
    Hold(Box<Hold>),
    Detached(Box<DetachedNode>),
}

impl SharedHold {
    pub(super) fn new(hold: Hold, tenure: Arc<NodeTenure>, slot: AcquireSlot) -> Self {
        let hold = Arc::new(hold);
        if let Some(sharing) = slot.sharing() {
            sharing.mark_held(slot.number, tenure.contention());
            // The loss may have been reported before the slot was marked as held.
            if !hold.is_valid() {
                sharing.mark_lost(tenure.contention());
            }
        }
        Self { tenure_of_guard: GuardTenure { hold: Some(Arc::clone(&hold)), tenure, slot }, hold }
    }

    pub(crate) fn hold(&self) -> &Hold {
        &self.hold
    }

    /// Gives the node back. The caller releases the remainder.
    pub(crate) fn give_back(self) -> Option<Remainder> {
        let Self { hold, mut tenure_of_guard } = self;
        drop(hold);
        tenure_of_guard.give_back()
    }
}

impl GuardTenure {
    fn give_back(&mut self) -> Option<Remainder> {
        let hold = self.hold.take().and_then(Arc::into_inner)?;
        match self.slot.sharing() {
            Some(sharing) => sharing.give_back(self.slot.number, hold, &self.tenure),
            None => Some(Remainder::Hold(Box::new(hold))),
        }
    }
}

impl Drop for GuardTenure {
    fn drop(&mut self) {
        if let Some(hold) = &self.hold {
            hold.count_as_dropped();
        }
        drop(self.give_back());
    }
}

impl Debug for SharedHold {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        self.hold.fmt(formatter)
    }
}
