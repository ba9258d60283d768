use futures::FutureExt;
use futures::future::BoxFuture;
use lockkeeper::{
    BootInstant, Error, Hold as Held, ReadGuard, ReleaseError, RwLock, Txn, UpgradeError, WriteGuard,
};

use super::{Claim, Hold, Kind, Share, Site, Way};

/// [`RwLock::read`].
pub(super) struct Read;

/// [`RwLock::write`].
pub(super) struct Write;

/// A write that is turned into a read.
pub(super) struct Downgrade;

/// A read under a write; both are kept.
pub(super) struct Under;

/// A read, and a write if nobody else reads.
pub(super) struct Upgrade;

/// What is had of it.
#[derive(Debug)]
struct Sides {
    write: Option<WriteGuard>,
    read: Option<ReadGuard>,
    /// The read has the token of a write.
    is_inherited: bool,
    /// What it read by when it became a writer: on its way out, or kept.
    upgraded: Option<String>,
}

impl Sides {
    fn of_read(read: ReadGuard) -> Self {
        Self { write: None, read: Some(read), is_inherited: false, upgraded: None }
    }

    fn of_write(write: WriteGuard) -> Self {
        Self { write: Some(write), read: None, is_inherited: false, upgraded: None }
    }

    fn holds(&self) -> impl Iterator<Item = &Held> {
        self.write.iter().map(WriteGuard::hold).chain(self.read.iter().map(ReadGuard::hold))
    }
}

type Taking = BoxFuture<'static, Result<Option<Sides>, Error>>;

/// Takes it by `take`, and once more where it was lost on the way.
fn taken(
    site: Site,
    way: Way,
    take: impl Fn(RwLock, Way) -> Taking + Send + 'static,
) -> BoxFuture<'static, Result<Option<Box<dyn Hold>>, Error>> {
    Box::pin(async move {
        let lock = RwLock::new(&site.manager, site.path.as_str())?.for_owner(&site.owner);
        loop {
            match take(lock.clone(), way).await {
                Err(Error::Lost(_)) if way == Way::Wait => {}
                Err(Error::Lost(_)) => return Ok(None),
                taken => return Ok(taken?.map(|sides| Box::new(sides) as Box<dyn Hold>)),
            }
        }
    })
}

async fn read(lock: &RwLock, way: Way) -> Result<Option<ReadGuard>, Error> {
    match way {
        Way::Wait => lock.read().await.map(Some),
        Way::WaitAtMost(limit) => lock.read_timeout(limit).await.map(Some),
        Way::Try => lock.try_read().await,
    }
}

async fn write(lock: &RwLock, way: Way) -> Result<Option<WriteGuard>, Error> {
    match way {
        Way::Wait => lock.write().await.map(Some),
        Way::WaitAtMost(limit) => lock.write_timeout(limit).await.map(Some),
        Way::Try => lock.try_write().await,
    }
}

impl Kind for Read {
    fn take(&self, site: Site, way: Way) -> BoxFuture<'static, Result<Option<Box<dyn Hold>>, Error>> {
        taken(site, way, |lock, way| Box::pin(async move { Ok(read(&lock, way).await?.map(Sides::of_read)) }))
    }
}

impl Kind for Write {
    fn take(&self, site: Site, way: Way) -> BoxFuture<'static, Result<Option<Box<dyn Hold>>, Error>> {
        taken(site, way, |lock, way| {
            Box::pin(async move { Ok(write(&lock, way).await?.map(Sides::of_write)) })
        })
    }
}

impl Kind for Downgrade {
    fn take(&self, site: Site, way: Way) -> BoxFuture<'static, Result<Option<Box<dyn Hold>>, Error>> {
        taken(site, way, |lock, way| {
            Box::pin(async move {
                let Some(write) = write(&lock, way).await? else { return Ok(None) };
                let read = write.downgrade().await?;
                Ok(Some(Sides { is_inherited: true, ..Sides::of_read(read) }))
            })
        })
    }
}

impl Kind for Under {
    fn take(&self, site: Site, way: Way) -> BoxFuture<'static, Result<Option<Box<dyn Hold>>, Error>> {
        taken(site, way, |lock, way| {
            Box::pin(async move {
                let Some(write) = write(&lock, way).await? else { return Ok(None) };
                let read = lock.read().await?;
                Ok(Some(Sides { read: Some(read), is_inherited: true, ..Sides::of_write(write) }))
            })
        })
    }
}

impl Kind for Upgrade {
    fn take(&self, site: Site, way: Way) -> BoxFuture<'static, Result<Option<Box<dyn Hold>>, Error>> {
        // Its last read guard, or not.
        let keeps = site.rng.clone().percent(50);
        taken(site, way, move |lock, way| {
            Box::pin(async move {
                let Some(first) = read(&lock, way).await? else { return Ok(None) };
                let upgraded = Some(first.path().to_owned());
                let kept = if keeps { Some(lock.read().await?) } else { None };
                match first.try_upgrade().await {
                    Ok(write) => Ok(Some(Sides { read: kept, upgraded, ..Sides::of_write(write) })),
                    Err(UpgradeError::Failed { error: error @ Error::Lost(_), .. }) => Err(error),
                    // It reads on, with no connection to ask for more.
                    Err(UpgradeError::Failed { guard, error }) if error.is_timeout() => {
                        // Unless that was lost while it asked, and another has it by now.
                        guard.check()?;
                        Ok(Some(Sides::of_read(guard)))
                    }
                    Err(UpgradeError::Failed { error, .. }) => Err(error),
                    Err(UpgradeError::NotAlone { guard }) => Ok(Some(Sides::of_read(guard))),
                }
            })
        })
    }
}

impl Hold for Sides {
    fn claims(&self) -> Vec<Claim> {
        let read = self.read.as_ref().map(|read| Claim {
            share: Share::Shared,
            is_inherited: self.is_inherited,
            ..Claim::exclusive(read.hold())
        });
        let write = self.write.as_ref().map(|write| Claim {
            beside: self
                .read
                .iter()
                .map(|read| read.path().to_owned())
                .chain(self.upgraded.clone())
                .collect(),
            ..Claim::exclusive(write.hold())
        });
        // In the order in which they were granted.
        match self.is_inherited {
            true => write.into_iter().chain(read).collect(),
            false => read.into_iter().chain(write).collect(),
        }
    }

    fn is_valid(&self) -> bool {
        self.holds().all(Held::is_valid)
    }

    fn valid_until(&self) -> BootInstant {
        self.holds().map(Held::valid_until).min().expect("a side")
    }

    fn lost(&self) -> BoxFuture<'_, ()> {
        Box::pin(async { Held::lost_any(&self.holds().collect::<Vec<_>>()).map(drop).await })
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
        self.write.as_ref().map(|write| write.txn())
    }

    /// Who reads may read again, and not wait to write; who writes may read, with the writer's token.
    fn meanwhile(&self, site: Site) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(async move {
            let lock = RwLock::new(&site.manager, site.path.as_str()).map_err(|error| error.to_string())?;
            let lock = lock.for_owner(&site.owner);
            match (&self.write, lock.try_read().await) {
                (_, Ok(None)) => return Err("a reader or writer may not read again".to_owned()),
                (Some(write), Ok(Some(read))) if read.fencing_token() < write.fencing_token() => {
                    return Err("promise 3: a read under a write has an older token".to_owned());
                }
                (None, Ok(Some(read))) if self.holds().any(|own| own.path() != read.path()) => {
                    return Err("a second read has a node of its own".to_owned());
                }
                _ => {}
            }
            match lock.try_write().await {
                Ok(None) => Err("who holds it is told to come back later".to_owned()),
                Ok(Some(_)) if self.write.is_none() => Err("a reader was let in to write".to_owned()),
                _ => Ok(()),
            }
        })
    }
}
