use std::ops::Deref;

use lockkeeper_core::{Hold, ReleaseError};

use super::sharing::{Remainder, SharedHold};
use crate::owner::OwnerEntry;

/// A held [`Mutex`](super::Mutex). It dereferences to [`Hold`], which has its methods: `is_valid()`, `lost()`,
/// `valid_until()`, `fencing_token()`, `txn()`, `run()`.
///
/// A drop of the guard releases the lock in the background.
#[derive(Debug)]
#[must_use = "a guard that is not kept releases the lock at once"]
#[clippy::has_significant_drop]
pub struct MutexGuard {
    // Dropped first.
    entry: Option<OwnerEntry>,
    held: Held,
}

/// The hold behind a guard.
#[derive(Debug)]
pub(super) enum Held {
    Plain(Box<Hold>),
    SharedHold(Box<SharedHold>),
}

impl MutexGuard {
    pub(super) fn new(entry: Option<OwnerEntry>, held: Held) -> Self {
        Self { entry, held }
    }

    /// Ends the guard. Returns what has to be released, if its node is not kept.
    pub(super) fn give_back(self) -> Option<Remainder> {
        drop(self.entry);
        match self.held {
            Held::Plain(hold) => Some(Remainder::Hold(hold)),
            Held::SharedHold(kept) => kept.give_back(),
        }
    }

    /// Releases the lock, and waits until the server has deleted the node. For a mutex that
    /// [keeps its node](super::Mutex::with_handoff), it waits until the lock is handed off, idle or released.
    ///
    /// # Errors
    ///
    /// As [`Hold::release`].
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the release continues in the background.
    pub async fn release(self) -> Result<(), ReleaseError> {
        match self.give_back() {
            Some(remainder) => remainder.release().await,
            None => Ok(()),
        }
    }
}

impl Deref for MutexGuard {
    type Target = Hold;

    fn deref(&self) -> &Hold {
        match &self.held {
            Held::Plain(hold) => hold,
            Held::SharedHold(kept) => kept.hold(),
        }
    }
}

impl From<Hold> for Held {
    fn from(hold: Hold) -> Self {
        Self::Plain(Box::new(hold))
    }
}
