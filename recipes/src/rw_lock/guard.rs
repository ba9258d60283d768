use std::ops::Deref;
use std::sync::Arc;

use lockkeeper_core::{Deadline, Error, ExchangeError, Exchanged, Hold, Operation, ReleaseError};
use thiserror::Error as ThisError;

use super::reservation::{OwnerReservation, Turn};
use super::side::Side;
use super::slot::{HoldShare, SharedSideHold};

/// An [`RwLock`](crate::RwLock) held for reading. It dereferences to [`Hold`], which has its methods.
///
/// Its fencing token is greater than that of every earlier writer. Readers need no fence against each other.
///
/// A drop of the owner's last guard releases the lock in the background.
#[derive(Debug)]
#[must_use = "a guard that is not kept gives its hold back at once"]
#[clippy::has_significant_drop]
pub struct ReadGuard {
    share: HoldShare,
}

/// An [`RwLock`](crate::RwLock) held for writing. It dereferences to [`Hold`], which has its methods.
///
/// Its fencing token is greater than that of every earlier grant.
///
/// A drop of the owner's last guard releases the lock in the background. A read guard of the same owner
/// stays.
#[derive(Debug)]
#[must_use = "a guard that is not kept gives its hold back at once"]
#[clippy::has_significant_drop]
pub struct WriteGuard {
    share: HoldShare,
}

/// The reason why an upgrade failed. It has the read guard, unchanged: that of the async lock, or of the
/// blocking one.
#[derive(Debug, ThisError)]
pub enum UpgradeError<G = ReadGuard> {
    /// Another contender reads, or waits to write. Two readers that waited for an upgrade would wait for each
    /// other.
    #[error(
        "somebody else reads or waits to write; release the read guard, write(), and read again what was read"
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
        /// The reason.
        #[source]
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

impl ReadGuard {
    pub(super) fn of(shared: Arc<SharedSideHold>) -> Self {
        Self { share: HoldShare::of(shared) }
    }

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
    pub async fn try_upgrade(self) -> Result<WriteGuard, UpgradeError> {
        match self.upgraded().await {
            Ok(Some(write)) => Ok(WriteGuard::of(write)),
            Ok(None) => Err(UpgradeError::NotAlone { guard: self }),
            Err(error) => Err(UpgradeError::Failed { guard: self, error }),
        }
    }

    async fn upgraded(&self) -> Result<Option<Arc<SharedSideHold>>, Error> {
        let seat = &self.share.seat;
        let reservation = OwnerReservation::of(&seat.lock, &seat.owner, seat.lock.limit()).await?;
        let active = reservation.active();
        active.check()?;
        if active.write.is_some() {
            return Ok(active.write);
        }
        let queue = seat.lock.queue_of(&seat.owner, Side::Write);
        let queue = active.reads.iter().fold(queue, |queue, read| queue.ignoring(&read.held));
        // Nobody's release is to wait for this.
        drop(active);
        let held = queue.try_acquire(seat.lock.limit()).await?;
        // The read stood all the time, so nobody wrote.
        self.share.held.check()?;
        Ok(held.map(|held| reservation.enter(Side::Write, held)))
    }

    /// Ends this guard. The owner's last one releases the lock, and waits until the server has deleted the
    /// node.
    ///
    /// # Errors
    ///
    /// As [`Hold::release`]. For all guards but the last, only [`ReleaseError::Lost`].
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the release continues in the background.
    pub async fn release(self) -> Result<(), ReleaseError> {
        self.share.release().await
    }
}

impl WriteGuard {
    pub(super) fn of(shared: Arc<SharedSideHold>) -> Self {
        Self { share: HoldShare::of(shared) }
    }

    /// Turns this guard into a read guard. The owner's other write guards stay.
    ///
    /// For the owner's last write guard this is one transaction: the lock is not free at any instant, so no
    /// writer is granted in between, not even one that waits already. The readers that wait before the next
    /// writer are granted. The fencing token stays.
    ///
    /// One round trip. While the owner has other write guards, two; one if it has a read guard under this
    /// write.
    ///
    /// # Errors
    ///
    /// [`Error::Lost`] if the lock is lost, or if the owner keeps another lost guard. [`Error::Refused`] if
    /// the server refuses the node (access list, quota). This guard is released then.
    ///
    /// # Cancel safety
    ///
    /// A drop of the future releases this guard, and the node that replaces it. No node is left behind.
    pub async fn downgrade(self) -> Result<ReadGuard, Error> {
        let Self { share } = self;
        let (lock, owner) = (share.seat.lock.clone(), share.seat.owner.clone());
        let reservation = OwnerReservation::of(&lock, &owner, Deadline::never()).await?;
        if let Turn::Again(read) = reservation.turn(Side::Read)? {
            drop(reservation);
            return release_write(share, read).await;
        }
        match share.into_sole() {
            Ok(SharedSideHold { entry, held, seat, .. }) => {
                let held = downgrade_to_read(held, &lock.data_of(&owner)).await?;
                let read = reservation.enter(Side::Read, held);
                drop((entry, seat));
                Ok(ReadGuard::of(read))
            }
            Err(share) => {
                let held = lock.add_reader(&share.held, &owner, Deadline::never()).await?;
                let read = reservation.enter(Side::Read, held);
                release_write(share, read).await
            }
        }
    }

    /// Ends this guard. The owner's last one releases the lock, and waits until the server has deleted the
    /// node.
    ///
    /// # Errors
    ///
    /// As [`Hold::release`]. For all guards but the last, only [`ReleaseError::Lost`].
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the release continues in the background.
    pub async fn release(self) -> Result<(), ReleaseError> {
        self.share.release().await
    }
}

/// Releases one of a writer's guards while a read exists beside it.
async fn release_write(write: HoldShare, read: Arc<SharedSideHold>) -> Result<ReadGuard, Error> {
    match write.release().await {
        Err(ReleaseError::Lost(lost)) => Err(lost.into()),
        // Without an answer the manager goes on.
        _ => Ok(ReadGuard::of(read)),
    }
}

/// The transaction that turns a writer into a reader, tried until its outcome is known.
async fn downgrade_to_read(mut write: Hold, data: &[u8]) -> Result<Hold, Error> {
    loop {
        let path = write.path().to_owned();
        let exchange = write.exchange().downgrade_to(Side::Read.label(), data);
        match exchange.commit(Deadline::never()).await {
            Ok(Exchanged { hold: Some(read), .. }) => return Ok(read),
            Ok(Exchanged { hold: None, .. }) => {
                let (operation, cause) = (Operation::Create, "the answer names no node".to_owned());
                return Err(Error::Unknown { operation, path, cause });
            }
            Err(ExchangeError::NotDone { hold, refused: None }) => write = *hold,
            Err(ExchangeError::NotDone { refused: Some((path, refusal)), .. }) => {
                return Err(Error::Refused { operation: Operation::Create, path, refusal });
            }
            Err(ExchangeError::Failed(error)) => return Err(error),
        }
    }
}

impl Deref for ReadGuard {
    type Target = Hold;

    fn deref(&self) -> &Hold {
        &self.share.held
    }
}

impl Deref for WriteGuard {
    type Target = Hold;

    fn deref(&self) -> &Hold {
        &self.share.held
    }
}
