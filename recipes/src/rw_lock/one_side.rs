use std::sync::Arc;

use futures::future::BoxFuture;
use lockkeeper_core::{ConnectionManager, Deadline, Error, LockQueue, ZnodePath};

use super::guard::WriteGuard;
use super::lock::RwLock;
use crate::inspection::Inspection;
use crate::lock::any_engine::any_lock;
use crate::lock::{BatchEntry, LockRequest, MultiLockGuard, Recipe};
use crate::owner::{HoldShare, Owner, Side};

/// One side of an [`RwLock`], as a [`Lock`](crate::Lock): made by [`RwLock::reader`] and [`RwLock::writer`].
#[derive(Clone, Debug)]
pub struct RwLockSide {
    lock: RwLock,
    side: Side,
}

impl RwLock {
    /// The reading side, as a [`Lock`](crate::Lock).
    #[must_use]
    pub fn reader(&self) -> RwLockSide {
        RwLockSide { lock: self.clone(), side: Side::Read }
    }

    /// The writing side, as a [`Lock`](crate::Lock).
    #[must_use]
    pub fn writer(&self) -> RwLockSide {
        RwLockSide { lock: self.clone(), side: Side::Write }
    }
}

impl RwLockSide {
    fn guard(&self, share: HoldShare) -> MultiLockGuard {
        MultiLockGuard::of_one(self.lock.path(), WriteGuard::sharing(share))
    }
}

any_lock!(RwLockSide);

impl Recipe for RwLockSide {
    fn path(&self) -> &ZnodePath {
        self.lock.path()
    }

    fn shared(&self) -> Arc<dyn Recipe> {
        Arc::new(self.clone())
    }

    fn manager(&self) -> &ConnectionManager {
        self.lock.holds().manager()
    }

    fn acquire(&self, deadline: Deadline) -> BoxFuture<'_, Result<MultiLockGuard, Error>> {
        Box::pin(async move {
            let share = self.lock.acquire_share(self.side, deadline).await?;
            Ok(self.guard(share))
        })
    }

    fn try_acquire(&self) -> BoxFuture<'_, Result<Option<MultiLockGuard>, Error>> {
        Box::pin(async move {
            let share = self.lock.try_share(self.side).await?;
            Ok(share.map(|share| self.guard(share)))
        })
    }

    fn queues(&self) -> (LockQueue, Vec<LockQueue>) {
        (self.lock.holds().queue(self.side).clone(), Vec::new())
    }

    fn inspect(&self) -> BoxFuture<'_, Result<Vec<Inspection>, Error>> {
        Box::pin(async move { Ok(vec![self.lock.inspect().await?]) })
    }

    fn request(&self) -> Option<LockRequest> {
        let owner = self.owner().map(|owner| owner.id());
        Some(match self.side {
            Side::Read => LockRequest::Read(owner),
            Side::Write => LockRequest::Write(owner),
        })
    }

    fn owner(&self) -> Option<Owner> {
        self.lock.named_owner()
    }

    fn merged_with(&self, other: LockRequest) -> Option<Arc<dyn Recipe>> {
        let side = match (self.side, other) {
            (Side::Read, LockRequest::Read(_)) => Side::Read,
            (_, LockRequest::Read(_) | LockRequest::Write(_)) => Side::Write,
            _ => return None,
        };
        let (LockRequest::Read(owner) | LockRequest::Write(owner)) = other else { return None };
        let is_same = owner == self.owner().map(|owner| owner.id());
        is_same.then(|| Arc::new(Self { lock: self.lock.clone(), side }) as Arc<dyn Recipe>)
    }

    fn batch_entry(&self) -> Option<Box<dyn BatchEntry>> {
        Some(Box::new(self.lock.holds().entrance(self.side, &self.lock.owner())?))
    }
}
