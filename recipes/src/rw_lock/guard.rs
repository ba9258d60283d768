use std::ops::Deref;
use std::sync::Arc;

use lockkeeper_core::{Deadline, Error, ExchangeError, Exchanged, Hold, Operation, ReleaseError};
use thiserror::Error as ThisError;

use super::reservation::{OwnerReservation, Turn};
use super::side::Side;
use super::slot::{HoldShare, SharedSideHold};

/// An [`RwLock`](crate::RwLock) held for reading. What it can do is told by [`Hold`], to which it dereferences.
///
/// Its fencing token is greater than every earlier writer's. Readers need not be fenced against each other.
///
/// Dropping the owner's last one releases the lock in the background.
#[derive(Debug)]
#[must_use = "a guard that is not kept gives its hold back at once"]
#[clippy::has_significant_drop]
pub struct ReadGuard {
    share: HoldShare,
}

/// An [`RwLock`](crate::RwLock) held for writing. What it can do is told by [`Hold`], to which it dereferences.
///
/// Its fencing token is greater than that of every earlier grant.
///
/// Dropping the owner's last one releases the lock in the background. A read guard of the same owner stays.
#[derive(Debug)]
#[must_use = "a guard that is not kept gives its hold back at once"]
#[clippy::has_significant_drop]
pub struct WriteGuard {
    share: HoldShare,
}

/// Why a read was not turned into a write. The read guard is in it, as it was.
#[derive(Debug, ThisError)]
pub enum UpgradeError {
    /// Somebody else reads, or waits to write: two who wait for this would wait for each other.
    #[error(
        "somebody else reads or waits to write; release the read guard, write(), and read again what was read"
    )]
    NotAlone {
        /// The read guard.
        guard: ReadGuard,
    },
    /// The try did not come to an answer.
    #[error("{error}")]
    Failed {
        /// The read guard.
        guard: ReadGuard,
        /// Why.
        #[source]
        error: Error,
    },
}

impl UpgradeError {
    /// The read guard.
    pub fn into_guard(self) -> ReadGuard {
        match self {
            Self::NotAlone { guard } | Self::Failed { guard, .. } => guard,
        }
    }

    /// Whether somebody else was in front.
    #[must_use]
    pub fn is_not_alone(&self) -> bool {
        matches!(self, Self::NotAlone { .. })
    }
}

impl ReadGuard {
    pub(super) fn of(shared: Arc<SharedSideHold>) -> Self {
        Self { share: HoldShare::of(shared) }
    }

    /// Turns this guard into one for writing if nobody else reads or waits in front now; never waits.
    ///
    /// What was read under it is still so: no writer came between. The owner's other read guards stay; its last one
    /// is released in the background.
    ///
    /// One round trip; none if the owner holds the lock for writing.
    ///
    /// # Ordering and fairness
    ///
    /// Of two readers that try at the same time, both may fail, and at most one does not.
    ///
    /// # Errors
    ///
    /// [`UpgradeError::NotAlone`] when somebody is in front, be it with a try of its own. [`UpgradeError::Failed`]
    /// with [`Error::Lost`] when the owner keeps a guard that was lost, else as
    /// [`RwLock::try_write`](crate::RwLock::try_write). Both give the guard back.
    ///
    /// # Cancel safety
    ///
    /// Dropped, it gives up this guard; no node is left behind.
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

    /// Gives this guard back; the owner's last one releases the lock and waits until the server has done so.
    ///
    /// # Errors
    ///
    /// As [`Hold::release`]; for all but the last one only [`ReleaseError::Lost`].
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the release goes on in the background.
    pub async fn release(self) -> Result<(), ReleaseError> {
        self.share.release().await
    }
}

impl WriteGuard {
    pub(super) fn of(shared: Arc<SharedSideHold>) -> Self {
        Self { share: HoldShare::of(shared) }
    }

    /// Turns this guard into one for reading. The owner's other write guards stay.
    ///
    /// For its last one that is one transaction: at no instant is the lock free, so no writer comes between, not even
    /// one that waits already. Readers that wait up to the next writer come in. The fencing token stays.
    ///
    /// One round trip; two while the owner has other write guards, one if it has a read guard from under this write.
    ///
    /// # Errors
    ///
    /// [`Error::Lost`] when the lock is, or the owner keeps another guard that is. [`Error::Refused`] when the server
    /// will not have the node (access list, quota). This guard is given up then.
    ///
    /// # Cancel safety
    ///
    /// Dropped, it gives up this guard, and what was made in its place; no node is left behind.
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

    /// Gives this guard back; the owner's last one releases the lock and waits until the server has done so.
    ///
    /// # Errors
    ///
    /// As [`Hold::release`]; for all but the last one only [`ReleaseError::Lost`].
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the release goes on in the background.
    pub async fn release(self) -> Result<(), ReleaseError> {
        self.share.release().await
    }
}

/// Gives a share of a write back that has a read beside it.
async fn release_write(write: HoldShare, read: Arc<SharedSideHold>) -> Result<ReadGuard, Error> {
    match write.release().await {
        Err(ReleaseError::Lost(lost)) => Err(lost.into()),
        // Without an answer the manager goes on.
        _ => Ok(ReadGuard::of(read)),
    }
}

/// The one transaction that makes a reader of a writer, as often as it takes.
async fn downgrade_to_read(mut write: Hold, data: &[u8]) -> Result<Hold, Error> {
    loop {
        let exchange = write.exchange().downgrade_to(Side::Read.label(), data);
        match exchange.commit(Deadline::never()).await {
            Ok(Exchanged { hold: Some(read), .. }) => return Ok(read),
            Ok(Exchanged { hold: None, .. }) => return Err(Error::Closed),
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
