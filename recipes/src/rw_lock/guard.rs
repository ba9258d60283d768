use std::sync::Arc;

use lockkeeper_core::{Deadline, Error, ExchangeError, Exchanged, Hold, Operation, ReleaseError};
use thiserror::Error as ThisError;

use super::reservation::{OwnerReservation, Turn};
use super::side::Side;
use super::slot::{HoldShare, SharedSideHold};
use crate::lock::{Guard, HoldSet, SingleHold};

/// An [`RwLock`](crate::RwLock) held for reading.
///
/// Its fencing token is greater than that of every earlier writer. Readers need no fence against each other.
///
/// A drop of the owner's last guard releases the lock in the background.
pub type ReadGuard = Guard<ReadHold>;

/// An [`RwLock`](crate::RwLock) held for writing.
///
/// Its fencing token is greater than that of every earlier grant.
///
/// A drop of the owner's last guard releases the lock in the background. A read guard of the same owner
/// stays.
pub type WriteGuard = Guard<WriteHold>;

/// A share of a reader's hold.
#[derive(Debug)]
pub struct ReadHold(pub(super) HoldShare);

/// A share of a writer's hold.
#[derive(Debug)]
pub struct WriteHold(pub(super) HoldShare);

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
    pub(super) fn on(shared: Arc<SharedSideHold>) -> Self {
        Self::of(ReadHold(HoldShare::of(shared)))
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
            Ok(Some(write)) => Ok(WriteGuard::on(write)),
            Ok(None) => Err(UpgradeError::NotAlone { guard: self }),
            Err(error) => Err(UpgradeError::Failed { guard: self, error }),
        }
    }

    async fn upgraded(&self) -> Result<Option<Arc<SharedSideHold>>, Error> {
        let seat = &self.holds.0.seat;
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
        self.check()?;
        Ok(held.map(|held| reservation.enter(Side::Write, held)))
    }
}

impl WriteGuard {
    pub(super) fn on(shared: Arc<SharedSideHold>) -> Self {
        Self::of(WriteHold(HoldShare::of(shared)))
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
        let share = self.holds.0;
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
                Ok(ReadGuard::on(read))
            }
            Err(share) => {
                let held = lock.add_reader(&share.held, &owner, Deadline::never()).await?;
                let read = reservation.enter(Side::Read, held);
                release_write(share, read).await
            }
        }
    }
}

/// Releases one of a writer's guards while a read exists beside it.
async fn release_write(write: HoldShare, read: Arc<SharedSideHold>) -> Result<ReadGuard, Error> {
    match write.release().await {
        Err(ReleaseError::Lost(lost)) => Err(lost.into()),
        // Without an answer the manager goes on.
        _ => Ok(ReadGuard::on(read)),
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

impl HoldSet for ReadHold {
    fn first(&self) -> &Hold {
        &self.0.held
    }
}

impl SingleHold for ReadHold {
    async fn into_hold(self) -> Result<Option<Box<Hold>>, ReleaseError> {
        Ok(self.0.into_hold().await?.map(Box::new))
    }
}

impl HoldSet for WriteHold {
    fn first(&self) -> &Hold {
        &self.0.held
    }
}

impl SingleHold for WriteHold {
    async fn into_hold(self) -> Result<Option<Box<Hold>>, ReleaseError> {
        Ok(self.0.into_hold().await?.map(Box::new))
    }
}
