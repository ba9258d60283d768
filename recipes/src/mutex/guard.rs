use lockkeeper_core::{Hold, ReleaseError};

use super::sharing::{Remainder, SharedHold};
use crate::lock::{Guard, HoldSet, SingleHold};
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
    held: Held,
}

/// A hold of one guard alone, or one whose node the guards of this process share.
#[derive(Debug)]
pub(super) enum Held {
    Plain(Box<Hold>),
    Shared(Box<SharedHold>),
}

impl MutexHold {
    pub(super) fn new(entry: Option<OwnerEntry>, held: Held) -> Self {
        Self { entry, held }
    }
}

impl HoldSet for MutexHold {
    fn first(&self) -> &Hold {
        self.held.hold()
    }
}

impl SingleHold for MutexHold {
    async fn into_hold(self) -> Result<Option<Box<Hold>>, ReleaseError> {
        drop(self.entry);
        let remainder = match self.held {
            Held::Plain(hold) => return Ok(Some(hold)),
            Held::Shared(shared) => shared.give_back(),
        };
        match remainder {
            Some(Remainder::Hold(hold)) => Ok(Some(hold)),
            // Boxed, or every task that releases would be as large as this.
            Some(Remainder::Detached(node)) => Box::pin(node.release()).await.map(|()| None),
            None => Ok(None),
        }
    }
}

impl Held {
    pub(super) fn hold(&self) -> &Hold {
        match self {
            Self::Plain(hold) => hold,
            Self::Shared(shared) => shared.hold(),
        }
    }
}

impl From<Hold> for Held {
    fn from(hold: Hold) -> Self {
        Self::Plain(Box::new(hold))
    }
}
