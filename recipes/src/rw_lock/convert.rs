//! The two conversions of a hold: a reader to a writer, and a writer to a reader.

use lockkeeper_core::{Deadline, Error, ExchangeError, Exchanged, Hold, Label, Operation, ReleaseError};

use crate::owner::{HoldShare, NextStep, SharedHold, Side};

/// Acquires the side to write for the owner of this read, if no other contender is ahead. Returns `None`
/// otherwise. Never waits.
pub(super) async fn try_upgrade(read: &HoldShare) -> Result<Option<HoldShare>, Error> {
    if let Some(shared) = read.hand_off() {
        // No further reader joins. The present ones are in the way.
        shared.end_sharing();
        if !read.is_last() {
            return Ok(None);
        }
    }
    let (lock, owner) = read.lock_and_owner();
    let reservation = lock.reserve(owner, lock.limit()).await?;
    let active = reservation.active();
    active.check()?;
    if let Some(write) = active.write.and_then(HoldShare::of) {
        return Ok(Some(write));
    }
    let queue = lock.queue_of(Side::Write, owner);
    let queue = active.reads.iter().fold(queue, |queue, read| queue.ignoring(read.hold()));
    // A release must not wait for this request.
    drop(active.reads);
    let hold = queue.try_acquire(lock.limit()).await?;
    // The read was held all the time, so no writer was granted.
    read.hold().check()?;
    Ok(hold.map(|hold| reservation.enter(Side::Write, hold)))
}

/// Turns this share of a write hold into a share of a read hold.
pub(super) async fn downgrade(write: HoldShare) -> Result<HoldShare, Error> {
    let (lock, owner) = write.lock_and_owner();
    let (lock, owner) = (lock.clone(), owner.clone());
    let reservation = lock.reserve(&owner, Deadline::never()).await?;
    if let NextStep::Share(read) = reservation.next_step(Side::Read)? {
        drop(reservation);
        return release_beside(read, write).await;
    }
    match write.into_sole() {
        Ok(SharedHold { entry, hold, slot_use, .. }) => {
            let path = lock.whole_path();
            // A write hold is never handed off.
            let Some(hold) = hold.into_hold() else {
                let cause = "the hold has ended".to_owned();
                return Err(Error::Unknown { operation: Operation::Create, path, cause });
            };
            let hold = downgrade_to_read(*hold, &lock.data_of(&owner)).await?;
            let read = reservation.enter(Side::Read, hold);
            drop((entry, slot_use));
            Ok(read)
        }
        Err(write) => {
            let hold = lock.add_reader(write.hold(), &owner, Deadline::never()).await?;
            let read = reservation.enter(Side::Read, hold);
            release_beside(read, write).await
        }
    }
}

/// Releases a share of a write hold, while the read exists beside it. Returns the read.
async fn release_beside(read: HoldShare, write: HoldShare) -> Result<HoldShare, Error> {
    match release(write).await {
        Err(ReleaseError::Lost(lost)) => Err(lost.into()),
        // Without an answer the release continues in the background.
        _ => Ok(read),
    }
}

async fn release(write: HoldShare) -> Result<(), ReleaseError> {
    match write.into_hold().await? {
        Some(hold) => hold.release().await,
        None => Ok(()),
    }
}

/// The transaction that turns a writer into a reader, repeated until its outcome is known.
async fn downgrade_to_read(mut write: Hold, data: &[u8]) -> Result<Hold, Error> {
    loop {
        let path = write.whole_path();
        let exchange = write.exchange().downgrade_to(Label::READ, data);
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
