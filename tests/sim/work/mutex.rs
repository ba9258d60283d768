use futures::FutureExt;
use futures::future::BoxFuture;
use lockkeeper::{BootInstant, Error, Mutex, MutexGuard, ReleaseError, Txn};
use lockkeeper_core::NodeMonitor;

use super::{Claim, Hold, Kind, Site, Way};

/// [`Mutex`].
pub(super) struct Plain;

impl Kind for Plain {
    fn take(&self, site: Site, way: Way) -> BoxFuture<'static, Result<Option<Box<dyn Hold>>, Error>> {
        Box::pin(async move { take(Mutex::new(&site.manager, site.path)?, way).await })
    }
}

pub(super) async fn take(mutex: Mutex, way: Way) -> Result<Option<Box<dyn Hold>>, Error> {
    let guard = match way {
        Way::Wait => Some(mutex.acquire().await?),
        Way::WaitAtMost(limit) => Some(mutex.acquire_timeout(limit).await?),
        Way::Try => mutex.try_acquire().await?,
    };
    Ok(guard.map(|guard| Box::new(guard) as Box<dyn Hold>))
}

impl Hold for MutexGuard {
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

    fn monitor(&self) -> Option<NodeMonitor> {
        Some(self.hold().monitor())
    }

    fn txn(&self) -> Option<Txn<'_>> {
        Some(self.hold().txn())
    }
}
