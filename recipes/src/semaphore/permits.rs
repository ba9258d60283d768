use std::sync::Arc;

use futures::future::BoxFuture;
use lockkeeper_core::{ConnectionManager, Deadline, Error, Hold, LockQueue, ZnodePath};

use super::handle::Semaphore;
use crate::inspection::Inspection;
use crate::lock::any_engine::any_lock;
use crate::lock::{BatchEntry, Entered, LockRequest, MemberGuard, MultiLockGuard, Recipe};
use crate::owner::Owner;

/// A number of permits of a [`Semaphore`] as one [`Lock`](crate::Lock), such as a member of a
/// [`MultiLock`](crate::MultiLock).
///
/// Made by [`Semaphore::permits`]. If one multi-lock names a semaphore twice, the permits add up.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = lockkeeper_testserver::TestServer::start().await?;
/// # let manager = lockkeeper::ConnectionManager::connect(&server.connect_string()).await?;
/// use lockkeeper::{MultiLock, Mutex, Semaphore};
///
/// let report = Mutex::new(&manager, "/locks/report")?;
/// let workers = Semaphore::new(&manager, "/semaphores/workers", 8)?;
/// let both = MultiLock::builder().lock(&report).lock(&workers.permits(3)).build()?;
/// let guard = both.acquire().await?;
/// assert_eq!(workers.available().await?, 5);
/// guard.release().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Permits {
    semaphore: Semaphore,
    count: u32,
}

impl Semaphore {
    /// Returns `permits` permits as a [`Lock`](crate::Lock), to take them together with other locks.
    #[must_use]
    pub fn permits(&self, permits: u32) -> Permits {
        Permits::of(self, permits)
    }
}

impl Permits {
    pub(super) fn of(semaphore: &Semaphore, count: u32) -> Self {
        Self { semaphore: semaphore.clone(), count }
    }
}

any_lock!(Permits);

impl Recipe for Permits {
    fn path(&self) -> &ZnodePath {
        self.semaphore.path()
    }

    fn shared(&self) -> Arc<dyn Recipe> {
        Arc::new(self.clone())
    }

    fn manager(&self) -> &ConnectionManager {
        self.semaphore.manager()
    }

    fn check(&self) -> Result<(), Error> {
        self.semaphore.check(self.count)
    }

    fn acquire(&self, deadline: Deadline) -> BoxFuture<'_, Result<MultiLockGuard, Error>> {
        Box::pin(async move {
            let lease = self.semaphore.acquire_by(self.count, deadline).await?;
            Ok(MultiLockGuard::of_one(self.semaphore.path(), lease))
        })
    }

    fn try_acquire(&self) -> BoxFuture<'_, Result<Option<MultiLockGuard>, Error>> {
        Box::pin(async move {
            let lease = self.semaphore.try_acquire_many(self.count).await?;
            Ok(lease.map(|lease| MultiLockGuard::of_one(self.semaphore.path(), lease)))
        })
    }

    fn queues(&self) -> (LockQueue, Vec<LockQueue>) {
        (self.semaphore.leases_queue().clone(), Vec::new())
    }

    fn inspect(&self) -> BoxFuture<'_, Result<Vec<Inspection>, Error>> {
        Box::pin(async move { Ok(vec![self.semaphore.inspect().await?]) })
    }

    fn request(&self) -> Option<LockRequest> {
        Some(LockRequest::Permits(self.count))
    }

    fn owner(&self) -> Option<Owner> {
        Owner::current()
    }

    fn merged_with(&self, other: LockRequest) -> Option<Arc<dyn Recipe>> {
        let LockRequest::Permits(more) = other else { return None };
        Some(Arc::new(Self { count: self.count.saturating_add(more), ..self.clone() }))
    }

    fn batch_entry(&self) -> Option<Box<dyn BatchEntry>> {
        Some(Box::new(self.clone()))
    }
}

impl BatchEntry for Permits {
    fn queue(&self, deadline: Deadline) -> LockQueue {
        self.semaphore.waiter_queue(deadline)
    }

    fn enter(
        self: Box<Self>,
        hold: Hold,
        wait: Option<Deadline>,
    ) -> BoxFuture<'static, Result<Entered, Error>> {
        Box::pin(async move {
            let lease = self.semaphore.enter(hold, self.count, wait).await?;
            Ok(lease.map(|lease| MemberGuard::new(self.semaphore.path(), lease)))
        })
    }
}
