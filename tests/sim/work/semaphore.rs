use futures::FutureExt;
use futures::future::BoxFuture;
use lockkeeper::{BootInstant, Error, Lease, Mutex, ReleaseError, Semaphore};

use super::{Claim, Hold, Kind, Share, Site, Way, mutex};

/// How many permits there are.
pub(super) const LIMIT: usize = 3;

/// [`Semaphore`], one permit.
pub(super) struct One;

/// [`Semaphore`], one permit to all of them.
pub(super) struct Many;

/// [`Mutex::in_semaphore_layout`].
pub(super) struct InLayout;

impl Kind for One {
    fn take(&self, site: Site, way: Way) -> BoxFuture<'static, Result<Option<Box<dyn Hold>>, Error>> {
        Box::pin(take(site, way, 1))
    }
}

impl Kind for Many {
    fn take(&self, mut site: Site, way: Way) -> BoxFuture<'static, Result<Option<Box<dyn Hold>>, Error>> {
        let permits = site.rng.index(LIMIT) + 1;
        Box::pin(take(site, way, permits))
    }
}

async fn take(site: Site, way: Way, permits: usize) -> Result<Option<Box<dyn Hold>>, Error> {
    let semaphore = Semaphore::new(&site.manager, site.path, LIMIT)?;
    let lease = match way {
        Way::Wait => Some(semaphore.acquire_many(permits).await?),
        Way::WaitAtMost(limit) => Some(semaphore.acquire_many_timeout(permits, limit).await?),
        Way::Try => semaphore.try_acquire_many(permits).await?,
    };
    Ok(lease.map(|lease| Box::new(lease) as Box<dyn Hold>))
}

impl Kind for InLayout {
    fn take(&self, site: Site, way: Way) -> BoxFuture<'static, Result<Option<Box<dyn Hold>>, Error>> {
        Box::pin(async move { mutex::take(Mutex::in_semaphore_layout(&site.manager, site.path)?, way).await })
    }
}

impl Hold for Lease {
    fn claims(&self) -> Vec<Claim> {
        vec![Claim::of(self.hold(), Share::Permits { permits: self.permits(), limit: LIMIT })]
    }

    fn is_valid(&self) -> bool {
        self.hold().is_valid()
    }

    fn valid_until(&self) -> BootInstant {
        self.hold().valid_until()
    }

    fn lost(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.hold().lost().map(drop))
    }

    fn release(self: Box<Self>) -> BoxFuture<'static, Result<(), ReleaseError>> {
        Box::pin((*self).release())
    }
}
