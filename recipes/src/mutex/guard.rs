use std::marker::PhantomData;
use std::ops::Deref;

use lockkeeper_core::{Hold, ReleaseError};

use super::Mutex;
use super::sharing::{Remainder, SharedHold};
use crate::owner::OwnerEntry;

/// A held [`Mutex`]. What it can do is told by [`Hold`], to which it dereferences: `is_valid()`, `lost()`,
/// `valid_until()`, `fencing_token()`, `txn()`, `run()`.
///
/// Dropping it releases the lock in the background.
#[derive(Debug)]
#[must_use = "a guard that is not kept releases the lock at once"]
#[clippy::has_significant_drop]
pub struct MutexGuard<'a> {
    guard: OwnedMutexGuard,
    mutex: PhantomData<&'a Mutex>,
}

/// A held [`Mutex`] that borrows nothing: it may be kept anywhere. See [`MutexGuard`].
#[derive(Debug)]
#[must_use = "a guard that is not kept releases the lock at once"]
#[clippy::has_significant_drop]
pub struct OwnedMutexGuard {
    // Dropped first.
    entry: Option<OwnerEntry>,
    held: Held,
}

/// What a guard rests on.
#[derive(Debug)]
pub(super) enum Held {
    Plain(Box<Hold>),
    SharedHold(Box<SharedHold>),
}

impl MutexGuard<'_> {
    pub(super) fn borrowed(guard: OwnedMutexGuard) -> Self {
        Self { guard, mutex: PhantomData }
    }

    /// Releases the lock and waits until the server has done so; of a mutex that [keeps](Mutex::with_handoff) its node, until it is
    /// passed on, lingers, or is released.
    ///
    /// # Errors
    ///
    /// As [`Hold::release`].
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the release goes on in the background.
    pub async fn release(self) -> Result<(), ReleaseError> {
        self.guard.release().await
    }
}

impl OwnedMutexGuard {
    pub(super) fn new(entry: Option<OwnerEntry>, held: Held) -> Self {
        Self { entry, held }
    }

    /// Gives it back; what is left is to be released.
    pub(super) fn give_back(self) -> Option<Remainder> {
        drop(self.entry);
        match self.held {
            Held::Plain(hold) => Some(Remainder::Hold(hold)),
            Held::SharedHold(kept) => kept.give_back(),
        }
    }

    /// Releases the lock and waits until the server has done so; of a mutex that [keeps](Mutex::with_handoff) its node, until it is
    /// passed on, lingers, or is released.
    ///
    /// # Errors
    ///
    /// As [`Hold::release`].
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the release goes on in the background.
    pub async fn release(self) -> Result<(), ReleaseError> {
        match self.give_back() {
            Some(remainder) => remainder.release().await,
            None => Ok(()),
        }
    }
}

impl Deref for MutexGuard<'_> {
    type Target = Hold;

    fn deref(&self) -> &Hold {
        &self.guard
    }
}

impl Deref for OwnedMutexGuard {
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
