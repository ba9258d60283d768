use futures::FutureExt;
use futures::future::BoxFuture;
use lockkeeper::{BootInstant, Error, ReentrantMutex, ReentrantMutexGuard, ReleaseError, Txn};

use super::{Claim, Hold, Kind, Site, Way};

/// [`ReentrantMutex`].
pub(super) struct Reentrant;

impl Kind for Reentrant {
    fn take(&self, site: Site, way: Way) -> BoxFuture<'static, Result<Option<Box<dyn Hold>>, Error>> {
        Box::pin(async move {
            let (mutex, owner) = (ReentrantMutex::new(&site.manager, site.path)?, site.owner);
            let guard = match way {
                Way::Wait => Some(mutex.acquire(&owner).await?),
                Way::WaitAtMost(limit) => Some(mutex.acquire_timeout(&owner, limit).await?),
                Way::Try => mutex.try_acquire(&owner).await?,
            };
            Ok(guard.map(|guard| Box::new(guard) as Box<dyn Hold>))
        })
    }
}

impl Hold for ReentrantMutexGuard {
    fn claims(&self) -> Vec<Claim> {
        vec![Claim::exclusive(self.hold())]
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

    fn txn(&self) -> Option<Txn<'_>> {
        Some(self.hold().txn())
    }

    /// A second hold has the token of the first.
    fn meanwhile(&self, site: Site) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(async move {
            let mutex = ReentrantMutex::new(&site.manager, site.path).map_err(|error| error.to_string())?;
            match mutex.try_acquire(&site.owner).await {
                Ok(Some(again)) if again.fencing_token() != self.fencing_token() => {
                    Err("promise 3: a second hold has its own token".to_owned())
                }
                _ => Ok(()),
            }
        })
    }
}
