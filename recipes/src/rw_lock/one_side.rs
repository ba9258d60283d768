use std::future::ready;
use std::sync::Arc;

use futures::future::BoxFuture;
use lockkeeper_core::{ConnectionManager, Deadline, Error, Hold, LockQueue, ZnodePath};

use super::guard::{ReadGuard, WriteGuard};
use super::lock::RwLock;
use super::reservation::{OwnerReservation, Turn};
use super::side::Side;
use super::slot::SharedSideHold;
use crate::inspection::Inspection;
use crate::lock::{BatchEntry, Entered, Lock, LockGuard, LockRequest, MemberGuard, Recipe, Sealed};
use crate::owner::Owner;

/// One side of an [`RwLock`], as a [`Lock`]: made by [`RwLock::reader`] and [`RwLock::writer`].
#[derive(Clone, Debug)]
pub struct RwLockSide {
    lock: RwLock,
    side: Side,
}

impl RwLock {
    /// The reading side, as a [`Lock`].
    #[must_use]
    pub fn reader(&self) -> RwLockSide {
        RwLockSide { lock: self.clone(), side: Side::Read }
    }

    /// The writing side, as a [`Lock`].
    #[must_use]
    pub fn writer(&self) -> RwLockSide {
        RwLockSide { lock: self.clone(), side: Side::Write }
    }
}

impl RwLockSide {
    fn member(&self, shared: Arc<SharedSideHold>) -> MemberGuard {
        match self.side {
            Side::Read => MemberGuard::new(self.lock.path(), ReadGuard::on(shared)),
            Side::Write => MemberGuard::new(self.lock.path(), WriteGuard::on(shared)),
        }
    }
}

impl Lock for RwLockSide {
    fn as_recipe(&self) -> Sealed<'_> {
        Sealed(self)
    }
}

impl Recipe for RwLockSide {
    fn path(&self) -> &ZnodePath {
        self.lock.path()
    }

    fn shared(&self) -> Arc<dyn Recipe> {
        Arc::new(self.clone())
    }

    fn manager(&self) -> &ConnectionManager {
        self.lock.manager()
    }

    fn acquire(&self, deadline: Deadline) -> BoxFuture<'_, Result<LockGuard, Error>> {
        Box::pin(
            async move { Ok(LockGuard::of_one(self.member(self.lock.lock(self.side, deadline).await?))) },
        )
    }

    fn try_acquire(&self) -> BoxFuture<'_, Result<Option<LockGuard>, Error>> {
        let guard = |shared| LockGuard::of_one(self.member(shared));
        Box::pin(async move { Ok(self.lock.try_lock(self.side).await?.map(guard)) })
    }

    fn queues(&self) -> (LockQueue, Vec<LockQueue>) {
        (self.lock.queue_of(&self.lock.owner(), self.side), Vec::new())
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
        let owner = self.lock.owner();
        let reservation = OwnerReservation::try_of(&self.lock, &owner)?;
        match reservation.turn(self.side) {
            Ok(Turn::Queue) => Some(Box::new(SideBatchEntry { side: self.clone(), owner, reservation })),
            _ => None,
        }
    }
}

/// The way in for one who takes several locks at once: the owner's other tasks wait meanwhile.
struct SideBatchEntry {
    side: RwLockSide,
    owner: Owner,
    reservation: OwnerReservation,
}

impl BatchEntry for SideBatchEntry {
    fn queue(&self) -> LockQueue {
        self.side.lock.queue_of(&self.owner, self.side.side)
    }

    fn enter(self: Box<Self>, hold: Hold, _: Option<Deadline>) -> BoxFuture<'static, Result<Entered, Error>> {
        let Self { side, reservation, .. } = *self;
        let shared = reservation.enter(side.side, hold);
        Box::pin(ready(Ok(Some(side.member(shared)))))
    }
}
