use std::panic::Location;

use lockkeeper_core::{Error, RecipeError};
use thiserror::Error as ThisError;

use super::convert;
use crate::lock::{AcquiredAt, Guard, OwnerShare, Reading, Writing};

/// An [`RwLock`](crate::RwLock) held for reading.
///
/// Its fencing token is greater than that of every earlier writer. Readers need no fence against each other.
///
/// A drop of the owner's last guard releases the lock in the background.
///
/// # Methods
///
/// Those of every [`Guard`](crate::Guard), and [`try_upgrade`](Self::try_upgrade).
pub type ReadGuard = Guard<OwnerShare<Reading>>;

/// An [`RwLock`](crate::RwLock) held for writing.
///
/// Its fencing token is greater than that of every earlier grant.
///
/// A drop of the owner's last guard releases the lock in the background. A read guard of the same owner
/// stays.
///
/// # Methods
///
/// Those of every [`Guard`](crate::Guard), and [`downgrade`](Self::downgrade).
pub type WriteGuard = Guard<OwnerShare<Writing>>;

/// The reason why an upgrade failed. It has the read guard, unchanged: that of the async lock, or of the
/// blocking one.
#[derive(Debug, ThisError)]
pub enum UpgradeError<G = ReadGuard> {
    /// Another contender reads, or waits to write. Two readers that waited for an upgrade would wait for each
    /// other.
    #[error(
        "another contender reads or waits to write; release the read guard, write(), and read the data again"
    )]
    NotAlone {
        /// The read guard.
        guard: G,
    },
    /// The try failed.
    #[error("{error}")]
    Failed {
        /// The read guard.
        guard: G,
        /// The reason. The text has it, so it is no source.
        error: Error,
    },
}

impl<G> UpgradeError<G> {
    /// The read guard.
    pub fn into_guard(self) -> G {
        match self {
            Self::NotAlone { guard } | Self::Failed { guard, .. } => guard,
        }
    }

    /// Whether another contender was ahead.
    #[must_use]
    pub fn is_not_alone(&self) -> bool {
        matches!(self, Self::NotAlone { .. })
    }
}

/// Another contender reads, or waits to write, so a read guard cannot become a write guard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ThisError)]
#[error("another contender reads or waits to write; write(), and read the data again")]
pub struct NotAlone;

impl RecipeError for NotAlone {}

/// Drops the read guard, which releases it in the background.
impl<G> From<UpgradeError<G>> for Error {
    fn from(error: UpgradeError<G>) -> Self {
        match error {
            UpgradeError::NotAlone { .. } => NotAlone.into(),
            UpgradeError::Failed { error, .. } => error,
        }
    }
}

impl ReadGuard {
    /// Turns this guard into a write guard, if no other contender reads or is ahead now. Never waits.
    ///
    /// The data that was read under it is unchanged: no writer was granted in between. The owner's other read
    /// guards stay; if this was the last one, its node is deleted in the background.
    ///
    /// One round trip; none if the owner holds the lock for writing.
    ///
    /// # Ordering and fairness
    ///
    /// If two readers try at the same time, at most one succeeds, and both may fail.
    ///
    /// # Errors
    ///
    /// [`UpgradeError::NotAlone`] if any contender is ahead, including another try in progress.
    /// [`UpgradeError::Failed`] with [`Error::Lost`] if the owner keeps a lost guard, and otherwise as
    /// [`RwLock::try_write`](crate::RwLock::try_write). Both return the guard.
    ///
    /// # Cancel safety
    ///
    /// A drop of the future releases this guard. No node is left behind.
    #[track_caller]
    pub fn try_upgrade(self) -> impl Future<Output = Result<WriteGuard, UpgradeError>> + Send {
        let place = Location::caller();
        async move {
            match convert::try_upgrade(&self.holds.share).await {
                Ok(Some(write)) => Ok(Guard::sharing(write).acquired_at(place)),
                Ok(None) => Err(UpgradeError::NotAlone { guard: self }),
                Err(error) => Err(UpgradeError::Failed { guard: self, error }),
            }
        }
    }
}

impl WriteGuard {
    /// Turns this guard into a read guard. The owner's other write guards stay.
    ///
    /// For the owner's last write guard this is one transaction: the lock is not free at any instant, so no
    /// writer is granted in between, not even one that waits already. The readers that wait before the next
    /// writer are granted. The fencing token stays.
    ///
    /// One round trip. While the owner has other write guards, two; one if it has a read guard under this
    /// write. No timeout bounds it: after a gap in the connection it continues, as long as the hold is valid.
    ///
    /// # Errors
    ///
    /// [`Error::Lost`] if the lock is lost, or if the owner keeps another lost guard. [`Error::Refused`] if
    /// the server refuses the node (access list, quota). [`Error::Unknown`] if no answer came, and this
    /// client may not list the lock's directory. This guard is released then.
    ///
    /// # Cancel safety
    ///
    /// A drop of the future releases this guard, and the node that replaces it. No node is left behind.
    #[track_caller]
    pub fn downgrade(self) -> impl Future<Output = Result<ReadGuard, Error>> + Send {
        let place = Location::caller();
        async move { Ok(Guard::sharing(convert::downgrade(self.holds.share).await?).acquired_at(place)) }
    }
}
