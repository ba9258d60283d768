//! The two conversions of a hold: a reader to a writer, and a writer to a reader.

use lockkeeper_core::{Deadline, Error, ExchangeError, Exchanged, Hold, Operation, ReleaseError};

use super::holds::{HoldShare, NextStep, SharedHold};
use super::side::Side;

impl HoldShare {
    /// Acquires the side to write for the owner of this read, if no other contender is ahead. Returns `None`
    /// otherwise. Never waits.
    pub(crate) async fn try_upgrade(&self) -> Result<Option<Self>, Error> {
        let (lock, owner) = (&self.shared.slot_use.lock, &self.shared.slot_use.owner);
        let reservation = lock.reserve(owner, lock.limit()).await?;
        let active = reservation.active();
        active.check()?;
        if let Some(write) = active.write.and_then(Self::of) {
            return Ok(Some(write));
        }
        let queue = lock.queue_of(Side::Write, owner);
        let queue = active.reads.iter().fold(queue, |queue, read| queue.ignoring(&read.hold));
        // A release must not wait for this request.
        drop(active.reads);
        let hold = queue.try_acquire(lock.limit()).await?;
        // The read was held all the time, so no writer was granted.
        self.hold().check()?;
        Ok(hold.map(|hold| reservation.enter(Side::Write, hold)))
    }

    /// Turns this share of a write hold into a share of a read hold.
    pub(crate) async fn downgrade(self) -> Result<Self, Error> {
        let (lock, owner) = (self.shared.slot_use.lock.clone(), self.shared.slot_use.owner.clone());
        let reservation = lock.reserve(&owner, Deadline::never()).await?;
        if let NextStep::Share(read) = reservation.next_step(Side::Read)? {
            drop(reservation);
            return self.exchanged_for(read).await;
        }
        match self.into_sole() {
            Ok(SharedHold { entry, hold, slot_use, .. }) => {
                let hold = downgrade_to_read(hold, &lock.data_of(&owner)).await?;
                let read = reservation.enter(Side::Read, hold);
                drop((entry, slot_use));
                Ok(read)
            }
            Err(write) => {
                let hold = lock.add_reader(write.hold(), &owner, Deadline::never()).await?;
                let read = reservation.enter(Side::Read, hold);
                write.exchanged_for(read).await
            }
        }
    }

    /// Releases this share of a write hold, while a read exists beside it.
    async fn exchanged_for(self, read: Self) -> Result<Self, Error> {
        match self.release().await {
            Err(ReleaseError::Lost(lost)) => Err(lost.into()),
            // Without an answer the release continues in the background.
            _ => Ok(read),
        }
    }

    async fn release(self) -> Result<(), ReleaseError> {
        match self.into_hold().await? {
            Some(hold) => hold.release().await,
            None => Ok(()),
        }
    }
}

/// The transaction that turns a writer into a reader, repeated until its outcome is known.
async fn downgrade_to_read(mut write: Hold, data: &[u8]) -> Result<Hold, Error> {
    loop {
        let path = write.whole_path();
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
