//! A guard of any type.

use std::time::Duration;

use lockkeeper::{
    Error, Hold, LockGuard, Owner, ReadGuard, ReentrantMutex, ReentrantMutexGuard, UpgradeError, WriteGuard,
};

use super::locks::Taken;
use crate::history::Token;

/// What was taken, until it is given back.
#[derive(Debug)]
pub(super) enum Kept {
    Any(LockGuard),
    Read(ReadGuard),
    Write(WriteGuard),
    Reentrant(ReentrantMutexGuard, ReentrantMutex, Owner),
}

/// How it is asked for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Asking {
    /// Only if it is free.
    Try,
    /// For at most so long.
    For(Duration),
}

impl Taken {
    /// Asks for it; `None` if it was not free.
    pub(super) async fn take(&self, asking: Asking) -> Result<Option<Kept>, Error> {
        Ok(match (self, asking) {
            (Self::Any(lock), Asking::Try) => lock.try_acquire().await?.map(Kept::Any),
            (Self::Any(lock), Asking::For(limit)) => Some(Kept::Any(lock.acquire_timeout(limit).await?)),
            (Self::Read(lock), Asking::Try) => lock.try_read().await?.map(Kept::Read),
            (Self::Read(lock), Asking::For(limit)) => Some(Kept::Read(lock.read_timeout(limit).await?)),
            (Self::Write(lock), Asking::Try) => lock.try_write().await?.map(Kept::Write),
            (Self::Write(lock), Asking::For(limit)) => Some(Kept::Write(lock.write_timeout(limit).await?)),
            (Self::Reentrant(lock, owner), asking) => {
                let guard = match asking {
                    Asking::Try => lock.try_acquire(owner).await?,
                    Asking::For(limit) => Some(lock.acquire_timeout(owner, limit).await?),
                };
                guard.map(|guard| Kept::Reentrant(guard, lock.clone(), owner.clone()))
            }
        })
    }
}

impl Kept {
    /// The hold of each lock in it, with the lock's path.
    pub(super) fn holds(&self) -> Vec<(Option<&str>, &Hold)> {
        match self {
            Self::Any(guard) => guard.members().map(|(path, hold)| (Some(path.as_str()), hold)).collect(),
            Self::Read(guard) => vec![(None, guard.hold())],
            Self::Write(guard) => vec![(None, guard.hold())],
            Self::Reentrant(guard, ..) => vec![(None, guard.hold())],
        }
    }

    /// Gives it back; says how that ended.
    pub(super) async fn release(self) -> String {
        let outcome = match self {
            Self::Any(guard) => guard.release().await.map_err(|errors| errors.to_string()),
            Self::Read(guard) => guard.release().await.map_err(|error| error.to_string()),
            Self::Write(guard) => guard.release().await.map_err(|error| error.to_string()),
            Self::Reentrant(guard, ..) => guard.release().await.map_err(|error| error.to_string()),
        };
        outcome.err().unwrap_or_else(|| "released".to_owned())
    }

    /// Takes a reentrant one once more, and gives that back.
    pub(super) async fn nest(&self) -> Option<Result<Token, Error>> {
        let Self::Reentrant(_, lock, owner) = self else { return None };
        let nested = match lock.acquire(owner).await {
            Ok(nested) => nested,
            Err(error) => return Some(Err(error)),
        };
        let token = nested.fencing_token().into();
        // Not the last one: there is nothing to wait for.
        drop(nested);
        Some(Ok(token))
    }

    /// Makes a writer a reader, or a reader a writer if it can be; `Ok(None)` for what is neither.
    pub(super) async fn turn(self) -> Result<Option<Self>, Error> {
        match self {
            Self::Write(guard) => guard.downgrade().await.map(|read| Some(Self::Read(read))),
            Self::Read(guard) => match guard.try_upgrade().await {
                Ok(write) => Ok(Some(Self::Write(write))),
                Err(UpgradeError::NotAlone { guard } | UpgradeError::Failed { guard, .. }) => {
                    Ok(Some(Self::Read(guard)))
                }
            },
            _ => Ok(None),
        }
    }
}
