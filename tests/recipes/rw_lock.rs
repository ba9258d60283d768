//! [`RwLock`].

use futures::future::BoxFuture;
use lockkeeper::error::UpgradeError;
use lockkeeper::locks::ZooKeeperLock;
use lockkeeper::{Error, Hold, ReadGuard, ReleaseError, RwLock, Txn, WriteGuard};

use crate::mutex::granted;
use crate::{AcquireMode, Adapter, AnyAdapter, Claim, Grant, Granted, Share, Taking, Target};

/// The reading side.
#[derive(Clone, Copy, Debug)]
pub struct Reading;

/// The writing side.
#[derive(Clone, Copy, Debug)]
pub struct Writing;

/// A write that is downgraded to a read.
#[derive(Clone, Copy, Debug)]
pub struct Downgrading;

/// A read under a write, and both are kept.
#[derive(Clone, Copy, Debug)]
pub struct ReadingUnderWrite;

/// A read that is upgraded to a write if nobody else reads.
#[derive(Clone, Copy, Debug)]
pub struct Upgrading;

/// The guards of one owner: at least one.
#[derive(Debug)]
pub struct Sides {
    write: Option<WriteGuard>,
    read: Option<ReadGuard>,
    /// The read has the token of a write.
    is_inherited: bool,
    /// The node of the reader that became a writer: its delete is in flight, or it is kept.
    upgraded: Option<String>,
}

impl From<ReadGuard> for Sides {
    fn from(read: ReadGuard) -> Self {
        Self { write: None, read: Some(read), is_inherited: false, upgraded: None }
    }
}

impl From<WriteGuard> for Sides {
    fn from(write: WriteGuard) -> Self {
        Self { write: Some(write), read: None, is_inherited: false, upgraded: None }
    }
}

fn lock(target: &Target) -> Result<RwLock, Error> {
    let lock = RwLock::new(&target.manager, target.path.as_str())?;
    Ok(match &target.owner {
        Some(owner) => lock.for_owner(owner),
        None => lock,
    })
}

pub(crate) async fn read(lock: &RwLock, mode: AcquireMode) -> Result<Option<ReadGuard>, Error> {
    match mode {
        AcquireMode::Wait => lock.read().await.map(Some),
        AcquireMode::WaitAtMost(limit) => lock.read_timeout(limit).await.map(Some),
        AcquireMode::Try => lock.try_read().await,
    }
}

async fn write(lock: &RwLock, mode: AcquireMode) -> Result<Option<WriteGuard>, Error> {
    match mode {
        AcquireMode::Wait => lock.write().await.map(Some),
        AcquireMode::WaitAtMost(limit) => lock.write_timeout(limit).await.map(Some),
        AcquireMode::Try => lock.try_write().await,
    }
}

impl Adapter for Reading {
    fn take(&self, target: Target, mode: AcquireMode) -> Taking {
        Box::pin(async move { granted(read(&lock(&target)?, mode).await.map(|read| read.map(Sides::from))) })
    }

    fn as_lock(&self, target: Target) -> Result<Option<Box<dyn ZooKeeperLock>>, Error> {
        Ok(Some(Box::new(lock(&target)?.reader())))
    }

    fn exclusion(&self) -> Option<AnyAdapter> {
        Some(&Writing)
    }
}

impl Adapter for Writing {
    fn take(&self, target: Target, mode: AcquireMode) -> Taking {
        Box::pin(
            async move { granted(write(&lock(&target)?, mode).await.map(|write| write.map(Sides::from))) },
        )
    }

    fn as_lock(&self, target: Target) -> Result<Option<Box<dyn ZooKeeperLock>>, Error> {
        Ok(Some(Box::new(lock(&target)?.writer())))
    }
}

/// Takes it in steps, and once more if the first step's hold was lost before the last step.
fn in_steps(
    target: Target,
    mode: AcquireMode,
    steps: impl Fn(RwLock) -> BoxFuture<'static, Result<Option<Sides>, Error>> + Send + 'static,
) -> Taking {
    Box::pin(async move {
        let lock = lock(&target)?;
        loop {
            match steps(lock.clone()).await {
                Err(Error::Lost(_)) if mode == AcquireMode::Wait => {}
                Err(Error::Lost(_)) => return Ok(None),
                taken => return granted(taken),
            }
        }
    })
}

impl Adapter for Downgrading {
    fn take(&self, target: Target, mode: AcquireMode) -> Taking {
        in_steps(target, mode, move |lock| {
            Box::pin(async move {
                let Some(write) = write(&lock, mode).await? else { return Ok(None) };
                let read = write.downgrade().await?;
                Ok(Some(Sides { is_inherited: true, ..Sides::from(read) }))
            })
        })
    }
}

impl Adapter for ReadingUnderWrite {
    fn take(&self, target: Target, mode: AcquireMode) -> Taking {
        in_steps(target, mode, move |lock| {
            Box::pin(async move {
                let Some(write) = write(&lock, mode).await? else { return Ok(None) };
                let read = lock.read().await?;
                Ok(Some(Sides { read: Some(read), is_inherited: true, ..Sides::from(write) }))
            })
        })
    }
}

impl Adapter for Upgrading {
    fn take(&self, mut target: Target, mode: AcquireMode) -> Taking {
        // A second read guard, or none.
        let keeps = target.draw(100, 0) < 50;
        in_steps(target, mode, move |lock| {
            Box::pin(async move {
                let Some(first) = read(&lock, mode).await? else { return Ok(None) };
                let upgraded = Some(first.path().to_string());
                let kept = if keeps { Some(lock.read().await?) } else { None };
                match first.try_upgrade().await {
                    Ok(write) => Ok(Some(Sides { read: kept, upgraded, ..Sides::from(write) })),
                    Err(UpgradeError::Failed { error: error @ Error::Lost(_), .. }) => Err(error),
                    // The reader reads on, without a connection to ask for more.
                    Err(UpgradeError::Failed { guard, error }) if error.is_timeout() => {
                        // Unless the read was lost meanwhile, and another contender has the lock by now.
                        guard.check()?;
                        Ok(Some(Sides::from(guard)))
                    }
                    Err(UpgradeError::Failed { error, .. }) => Err(error),
                    Err(UpgradeError::NotAlone { guard }) => Ok(Some(Sides::from(guard))),
                }
            })
        })
    }
}

impl Grant for Sides {
    fn holds(&self) -> Vec<&Hold> {
        let (write, read) = (self.write.iter().map(WriteGuard::hold), self.read.iter().map(ReadGuard::hold));
        if self.is_inherited { write.chain(read).collect() } else { read.chain(write).collect() }
    }

    fn claims(&self) -> Vec<Claim> {
        let read = self
            .read
            .iter()
            .map(|read| Claim { is_inherited: self.is_inherited, ..Claim::of(read.hold(), Share::Shared) });
        let own = self.read.iter().map(|read| read.path().to_string()).chain(self.upgraded.clone());
        let ignored: Vec<String> = own.collect();
        let write = self
            .write
            .iter()
            .map(|write| Claim { ignored: ignored.clone(), ..Claim::exclusive(write.hold()) });
        if self.is_inherited { write.chain(read).collect() } else { read.chain(write).collect() }
    }

    fn release(self: Box<Self>) -> BoxFuture<'static, Result<(), ReleaseError>> {
        Box::pin(async move {
            if let Some(write) = self.write {
                write.release().await?;
            }
            match self.read {
                Some(read) => read.release().await,
                None => Ok(()),
            }
        })
    }

    fn txn(&self) -> Option<Txn<'_>> {
        self.write.as_ref().map(WriteGuard::txn)
    }

    fn can_convert(&self) -> bool {
        self.write.is_none() || self.read.is_none()
    }

    fn convert(self: Box<Self>) -> BoxFuture<'static, Result<Option<Granted>, Error>> {
        Box::pin(async move {
            let converted = match *self {
                Self { write: Some(write), .. } => {
                    Self { is_inherited: true, ..Self::from(write.downgrade().await?) }
                }
                Self { read: Some(read), .. } => match read.try_upgrade().await {
                    Ok(write) => Self::from(write),
                    Err(UpgradeError::NotAlone { guard } | UpgradeError::Failed { guard, .. }) => {
                        Self::from(guard)
                    }
                },
                Self { .. } => return Ok(None),
            };
            Ok(Some(Box::new(converted) as Granted))
        })
    }

    /// A reader may read again, and may not wait to write. A writer may read, with the writer's token.
    fn check_owner(&self, target: Target) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(async move {
            let lock = lock(&target).map_err(|error| error.to_string())?;
            match (&self.write, lock.try_read().await) {
                (_, Ok(None)) => return Err("a reader or writer may not read again".to_owned()),
                (Some(write), Ok(Some(read))) if read.fencing_token() < write.fencing_token() => {
                    return Err("promise 3: a read under a write has an older token".to_owned());
                }
                (None, Ok(Some(read))) if self.holds().iter().any(|own| own.path() != read.path()) => {
                    return Err("a second read has a node of its own".to_owned());
                }
                _ => {}
            }
            match lock.try_write().await {
                Ok(None) => Err("the answer to a holder is to come back later".to_owned()),
                Ok(Some(_)) if self.write.is_none() => Err("a reader was let in to write".to_owned()),
                _ => Ok(()),
            }
        })
    }
}
