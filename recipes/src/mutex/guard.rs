use lockkeeper_core::{Hold, ReleaseError};

use crate::lock::{Guard, HoldAccess, HoldRelease};
use crate::owner::OwnerEntry;
use crate::sharing::HoldKind;

/// A held [`Mutex`](super::Mutex).
///
/// A drop of the guard releases the lock in the background.
///
/// # Methods
///
/// Those of every [`Guard`](crate::Guard).
pub type MutexGuard = Guard<MutexHold>;

/// The hold of a mutex.
#[derive(Debug)]
pub struct MutexHold {
    // Dropped first.
    entry: Option<OwnerEntry>,
    held: HoldKind,
}

impl MutexHold {
    pub(super) fn new(entry: Option<OwnerEntry>, held: HoldKind) -> Self {
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
        Ok(self.held.into_hold())
    }
}
