//! [`Semaphore`], and the [`Mutex`] in its layout.

use futures::future::BoxFuture;
use lockkeeper::locks::SharedLimit;
use lockkeeper::locks::ZooKeeperLock;
use lockkeeper::{Error, Hold, Lease, Mutex, ReleaseError, Semaphore};

use crate::mutex::{acquire, granted};
use crate::{AcquireMode, Adapter, AnyAdapter, Claim, Grant, Share, Taking, Target};

/// The number of permits of every semaphore.
pub const LIMIT: u32 = 3;

/// So many permits of a semaphore. `None`: some of them; without chance, two.
#[derive(Clone, Copy, Debug)]
pub struct Permits(pub Option<u32>);

/// The same, with a limit that is stored in a node.
#[derive(Clone, Copy, Debug)]
pub struct SharedPermits(pub Option<u32>);

/// The mutex in the layout of a semaphore.
#[derive(Clone, Copy, Debug)]
pub struct InSemaphoreLayout;

impl Permits {
    /// Some permits.
    pub const DRAWN: Self = Self(None);
}

impl SharedPermits {
    /// Some permits.
    pub const DRAWN: Self = Self(None);
}

fn plain(target: &Target) -> Result<Semaphore, Error> {
    Semaphore::new(&target.manager, target.path.as_str(), LIMIT)
}

fn shared(target: &Target) -> Result<Semaphore, Error> {
    Semaphore::new_shared(&target.manager, target.path.as_str(), &shared_limit(target)?)
}

fn shared_limit(target: &Target) -> Result<SharedLimit, Error> {
    SharedLimit::new(&target.manager, format!("/limits{}", target.path).as_str())
}

/// So many permits, or some.
fn permits(permits: Option<u32>, target: &mut Target) -> u32 {
    permits.unwrap_or_else(|| target.draw_count(LIMIT, 2))
}

fn take(semaphore: Result<Semaphore, Error>, permits: u32, mode: AcquireMode) -> Taking {
    Box::pin(async move { granted(permits_of(&semaphore?, permits, mode).await) })
}

pub(crate) async fn permits_of(
    semaphore: &Semaphore,
    permits: u32,
    mode: AcquireMode,
) -> Result<Option<Lease>, Error> {
    match mode {
        AcquireMode::Wait => semaphore.acquire_many(permits).await.map(Some),
        AcquireMode::WaitAtMost(limit) => semaphore.acquire_many_timeout(permits, limit).await.map(Some),
        AcquireMode::Try => semaphore.try_acquire_many(permits).await,
    }
}

impl Adapter for Permits {
    fn take(&self, mut target: Target, mode: AcquireMode) -> Taking {
        take(plain(&target), permits(self.0, &mut target), mode)
    }

    fn as_lock(&self, mut target: Target) -> Result<Option<Box<dyn ZooKeeperLock>>, Error> {
        Ok(Some(Box::new(plain(&target)?.permits(permits(self.0, &mut target)))))
    }

    fn exclusion(&self) -> Option<AnyAdapter> {
        Some(&Self(Some(LIMIT)))
    }
}

impl Adapter for SharedPermits {
    fn take(&self, mut target: Target, mode: AcquireMode) -> Taking {
        take(shared(&target), permits(self.0, &mut target), mode)
    }

    fn as_lock(&self, mut target: Target) -> Result<Option<Box<dyn ZooKeeperLock>>, Error> {
        Ok(Some(Box::new(shared(&target)?.permits(permits(self.0, &mut target)))))
    }

    fn prepare(&self, target: Target) -> BoxFuture<'static, Result<(), Error>> {
        Box::pin(async move { shared_limit(&target)?.set(LIMIT).await })
    }

    fn exclusion(&self) -> Option<AnyAdapter> {
        Some(&Self(Some(LIMIT)))
    }

    /// On the leases, on its own node, and on the limit.
    fn watches(&self) -> usize {
        3
    }
}

impl Adapter for InSemaphoreLayout {
    fn take(&self, target: Target, mode: AcquireMode) -> Taking {
        Box::pin(async move {
            granted(acquire(&Mutex::in_semaphore_layout(&target.manager, target.path)?, mode).await)
        })
    }

    fn as_lock(&self, target: Target) -> Result<Option<Box<dyn ZooKeeperLock>>, Error> {
        Ok(Some(Box::new(Mutex::in_semaphore_layout(&target.manager, target.path)?)))
    }
}

impl Grant for Lease {
    fn holds(&self) -> Vec<&Hold> {
        vec![self.hold()]
    }

    fn claims(&self) -> Vec<Claim> {
        vec![Claim::of(self.hold(), Share::Permits { permits: self.permits(), limit: LIMIT })]
    }

    fn release(self: Box<Self>) -> BoxFuture<'static, Result<(), ReleaseError>> {
        Box::pin((*self).release())
    }
}
