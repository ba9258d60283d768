use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;

use lockkeeper_core::{Hold, HoldExt};

use super::node_sharing::AcquireSlot;
use super::tenure::NodeTenure;

/// The hold of a guard whose node may be handed off. Its drop hands the node off, or releases it.
pub(crate) struct HandOffHold {
    // Dropped first: then the other reference is the only one.
    hold: Arc<Hold>,
    tenure_of_guard: GuardTenure,
}

/// The time for which one guard has the node.
struct GuardTenure {
    hold: Option<Arc<Hold>>,
    /// Empty once the node is handed off.
    tenure: Option<NodeTenure>,
    slot: AcquireSlot,
}

impl HandOffHold {
    pub(super) fn new(hold: Hold, tenure: NodeTenure, slot: AcquireSlot) -> Self {
        let hold = Arc::new(hold);
        let tenure_of_guard = GuardTenure { hold: Some(Arc::clone(&hold)), tenure: Some(tenure), slot };
        Self { tenure_of_guard, hold }
    }

    /// The task with the slot has a guard.
    pub(crate) fn mark_held(&self) {
        let GuardTenure { tenure, slot, .. } = &self.tenure_of_guard;
        let (Some(sharing), Some(tenure)) = (slot.sharing(), tenure) else { return };
        sharing.mark_held(slot.number);
        // The loss may have been reported before the slot was marked as held.
        if !self.hold.is_valid() {
            sharing.mark_lost(tenure.number);
        }
    }

    /// The number of its slot.
    pub(crate) fn slot(&self) -> u64 {
        self.tenure_of_guard.slot.number
    }

    /// From now on the node is for its present guards alone.
    pub(crate) fn end_sharing(&self) {
        let GuardTenure { tenure, slot, .. } = &self.tenure_of_guard;
        if let (Some(sharing), Some(tenure)) = (slot.sharing(), tenure) {
            sharing.end_sharing(tenure.number);
        }
    }

    pub(crate) fn hold(&self) -> &Hold {
        &self.hold
    }

    /// Hands the node off, or keeps it idle. Otherwise returns the hold, which the caller releases.
    pub(crate) fn into_hold(self) -> Option<Box<Hold>> {
        let Self { hold, mut tenure_of_guard } = self;
        drop(hold);
        tenure_of_guard.end()
    }
}

impl GuardTenure {
    fn end(&mut self) -> Option<Box<Hold>> {
        let hold = self.hold.take().and_then(Arc::into_inner).map(Box::new)?;
        match self.slot.sharing() {
            Some(sharing) => sharing.end_hold(self.slot.number, hold, &mut self.tenure),
            None => Some(hold),
        }
    }
}

impl Drop for GuardTenure {
    fn drop(&mut self) {
        if let Some(hold) = &self.hold {
            hold.count_as_dropped();
        }
        drop(self.end());
    }
}

impl Debug for HandOffHold {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        self.hold.fmt(formatter)
    }
}
