//! A share of a hold that tasks of other owners share.

use std::sync::{Arc, Weak};

use super::owner_slot::{HoldShare, SharedHold};
use crate::sharing::{HandOffHold, HoldKind};

impl HoldShare {
    /// The hold, for those that find it otherwise.
    pub(crate) fn downgrade(&self) -> Weak<SharedHold> {
        Arc::downgrade(&self.shared)
    }

    /// The hold, if tasks of other owners share it.
    pub(crate) fn hand_off(&self) -> Option<&HandOffHold> {
        match &self.shared.hold {
            HoldKind::HandOff(hold) => Some(hold),
            HoldKind::Plain(_) => None,
        }
    }

    /// Whether this is the last guard of the hold.
    pub(crate) fn is_last(&self) -> bool {
        Arc::strong_count(&self.guard) == 1
    }
}
