use lockkeeper_core::{Hold, ReleaseError};

use super::sharing::HandOffHold;
use crate::lock::{Guard, HoldAccess, HoldRelease};
use crate::owner::OwnerEntry;

/// A held [`Mutex`](super::Mutex).
///
/// A drop of the guard releases the lock in the background.
pub type MutexGuard = Guard<MutexHold>;

/// The hold of a mutex.
#[derive(Debug)]
pub struct MutexHold {
    // Dropped first.
    entry: Option<OwnerEntry>,
    held: MutexHoldKind,
}

/// A hold of one guard alone, or one whose node the guards of this process share.
#[derive(Debug)]
pub(super) enum MutexHoldKind {
    Plain(Box<Hold>),
    HandOff(Box<HandOffHold>),
}

impl MutexHold {
    pub(super) fn new(entry: Option<OwnerEntry>, held: MutexHoldKind) -> Self {
        Self { entry, held }
    }
}

impl HoldAccess for MutexHold {
    fn first(&self) -> &Hold {
        self.held.hold()
    }
}

impl HoldRelease for MutexHold {
    async fn into_hold(self) -> Result<Option<Box<Hold>>, ReleaseError> {
        drop(self.entry);
        Ok(match self.held {
            MutexHoldKind::Plain(hold) => Some(hold),
            MutexHoldKind::HandOff(hold) => hold.into_hold(),
        })
    }
}

impl MutexHoldKind {
    pub(super) fn hold(&self) -> &Hold {
        match self {
            Self::Plain(hold) => hold,
            Self::HandOff(hold) => hold.hold(),
        }
    }
}

impl From<Hold> for MutexHoldKind {
    fn from(hold: Hold) -> Self {
        Self::Plain(Box::new(hold))
    }
}
