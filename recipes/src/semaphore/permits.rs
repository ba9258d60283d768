use std::sync::Arc;

use futures::future::BoxFuture;
use lockkeeper_core::{ConnectionManager, Deadline, Error, Hold, Line, Lost, ZnodePath};

use super::{Lease, NotTaken, Semaphore};
use crate::lock::{Contender, Entered, Entrance, Keep, Kept, Lock, LockGuard, Seal, Share};
use crate::owner::Owner;

/// So many permits of a [`Semaphore`], as a [`Lock`]: made by [`Semaphore::permits`].
#[derive(Clone, Debug)]
pub struct Permits {
    semaphore: Semaphore,
    permits: usize,
}

impl Semaphore {
    /// So many permits at once, as a [`Lock`].
    #[must_use]
    pub fn permits(&self, permits: usize) -> Permits {
        Permits { semaphore: self.clone(), permits }
    }
}

impl Permits {
    fn kept(&self, lease: Lease) -> Kept {
        Kept::new(self.semaphore.path(), lease)
    }
}

impl Lock for Permits {
    fn contender(&self) -> Seal<'_> {
        Seal(self)
    }
}

impl Contender for Permits {
    fn path(&self) -> &ZnodePath {
        self.semaphore.path()
    }

    fn shared(&self) -> Arc<dyn Contender> {
        Arc::new(self.clone())
    }

    fn manager(&self) -> &ConnectionManager {
        &self.semaphore.manager
    }

    fn acquire(&self, deadline: Deadline) -> BoxFuture<'_, Result<LockGuard, Error>> {
        let lease = self.semaphore.acquire_by(self.permits, deadline);
        Box::pin(async move { Ok(LockGuard::of(self.kept(lease.await?))) })
    }

    fn try_acquire(&self) -> BoxFuture<'_, Result<Option<LockGuard>, Error>> {
        let guard = |lease| LockGuard::of(self.kept(lease));
        Box::pin(async move { Ok(self.semaphore.try_acquire_many(self.permits).await?.map(guard)) })
    }

    fn lines(&self) -> (Line, Vec<Line>) {
        (self.semaphore.leases_line.clone(), Vec::new())
    }

    fn share(&self) -> Option<Share> {
        Some(Share::Permits(self.permits))
    }

    fn owner(&self) -> Option<Owner> {
        Owner::current()
    }

    fn merged_with(&self, other: Share) -> Option<Arc<dyn Contender>> {
        let Share::Permits(more) = other else { return None };
        let permits = self.permits.saturating_add(more);
        Some(Arc::new(Self { semaphore: self.semaphore.clone(), permits }))
    }

    fn entrance(&self) -> Option<Box<dyn Entrance>> {
        self.semaphore.check(self.permits).ok()?;
        let line = self.semaphore.line().ok()?;
        Some(Box::new(WayIn { permits: self.clone(), line }))
    }
}

/// The way in for one who takes several locks at once: a turn first, and then the permits.
struct WayIn {
    permits: Permits,
    line: Line,
}

impl Entrance for WayIn {
    fn line(&self) -> Line {
        self.line.clone()
    }

    fn enter(
        self: Box<Self>,
        hold: Hold,
        wait: Option<Deadline>,
    ) -> BoxFuture<'static, Result<Entered, Error>> {
        Box::pin(async move {
            let Permits { semaphore, permits } = &self.permits;
            Ok(semaphore.spend(hold, *permits, wait).await?.map(|lease| self.permits.kept(lease)))
        })
    }
}

impl Semaphore {
    /// Spends a turn that was had with others. `None` when it is not enough and may not wait, or was lost.
    pub(crate) async fn spend(
        &self,
        hold: Hold,
        permits: usize,
        wait: Option<Deadline>,
    ) -> Result<Option<Lease>, Error> {
        let taken = match wait {
            Some(deadline) => self.take(hold, permits, deadline).await.map(Ok),
            None => {
                let limit = Deadline::after(self.manager.operation_timeout());
                self.try_take(hold, permits, limit).await
            }
        };
        match taken {
            Ok(lease) => Ok(lease.ok()),
            Err(NotTaken::TurnLost) => Ok(None),
            Err(NotTaken::Failed(error)) => Err(error),
        }
    }

    pub(crate) fn manager(&self) -> &ConnectionManager {
        &self.manager
    }

    pub(crate) fn leases_line(&self) -> &Line {
        &self.leases_line
    }
}

impl Keep for Lease {
    fn hold(&self) -> &Hold {
        self
    }

    fn give_up(self: Box<Self>) -> Result<Option<Hold>, Lost> {
        Ok(Some(self.into_hold()))
    }
}
