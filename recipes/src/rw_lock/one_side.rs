use std::future::ready;
use std::sync::Arc;

use futures::future::BoxFuture;
use lockkeeper_core::{ConnectionManager, Deadline, Error, Hold, Line, ReleaseError, ZnodePath};

use super::lock::RwLock;
use super::reservation::{Reservation, Turn};
use super::side::Side;
use super::slot::{self, Shared};
use crate::inspection::Inspection;
use crate::lock::{Contender, Entered, Entrance, Keep, Kept, Lock, LockGuard, Seal, Share};
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
    fn kept(&self, shared: Arc<Shared>) -> Kept {
        Kept::new(self.lock.path(), Guard(slot::Share::of(shared)))
    }
}

impl Lock for RwLockSide {
    fn contender(&self) -> Seal<'_> {
        Seal(self)
    }
}

impl Contender for RwLockSide {
    fn path(&self) -> &ZnodePath {
        self.lock.path()
    }

    fn shared(&self) -> Arc<dyn Contender> {
        Arc::new(self.clone())
    }

    fn manager(&self) -> &ConnectionManager {
        self.lock.manager()
    }

    fn acquire(&self, deadline: Deadline) -> BoxFuture<'_, Result<LockGuard, Error>> {
        Box::pin(async move { Ok(LockGuard::of(self.kept(self.lock.lock(self.side, deadline).await?))) })
    }

    fn try_acquire(&self) -> BoxFuture<'_, Result<Option<LockGuard>, Error>> {
        let guard = |shared| LockGuard::of(self.kept(shared));
        Box::pin(async move { Ok(self.lock.try_lock(self.side).await?.map(guard)) })
    }

    fn lines(&self) -> (Line, Vec<Line>) {
        (self.lock.line_of(&self.lock.owner(), self.side), Vec::new())
    }

    fn inspect(&self) -> BoxFuture<'_, Result<Vec<Inspection>, Error>> {
        Box::pin(async move { Ok(vec![self.lock.inspect().await?]) })
    }

    fn share(&self) -> Option<Share> {
        let owner = self.owner().map(|owner| owner.id());
        Some(match self.side {
            Side::Read => Share::Read(owner),
            Side::Write => Share::Write(owner),
        })
    }

    fn owner(&self) -> Option<Owner> {
        self.lock.named_owner()
    }

    fn merged_with(&self, other: Share) -> Option<Arc<dyn Contender>> {
        let side = match (self.side, other) {
            (Side::Read, Share::Read(_)) => Side::Read,
            (_, Share::Read(_) | Share::Write(_)) => Side::Write,
            _ => return None,
        };
        let (Share::Read(owner) | Share::Write(owner)) = other else { return None };
        let is_same = owner == self.owner().map(|owner| owner.id());
        is_same.then(|| Arc::new(Self { lock: self.lock.clone(), side }) as Arc<dyn Contender>)
    }

    fn entrance(&self) -> Option<Box<dyn Entrance>> {
        let owner = self.lock.owner();
        let reservation = Reservation::try_of(&self.lock, &owner)?;
        match reservation.turn(self.side) {
            Ok(Turn::Line) => Some(Box::new(WayIn { side: self.clone(), owner, reservation })),
            _ => None,
        }
    }
}

/// The way in for one who takes several locks at once: the owner's other tasks wait meanwhile.
struct WayIn {
    side: RwLockSide,
    owner: Owner,
    reservation: Reservation,
}

impl Entrance for WayIn {
    fn line(&self) -> Line {
        self.side.lock.line_of(&self.owner, self.side.side)
    }

    fn enter(self: Box<Self>, hold: Hold, _: Option<Deadline>) -> BoxFuture<'static, Result<Entered, Error>> {
        let Self { side, reservation, .. } = *self;
        let shared = reservation.enter(side.side, hold);
        Box::pin(ready(Ok(Some(side.kept(shared)))))
    }
}

/// A guard of either side.
struct Guard(slot::Share);

impl Keep for Guard {
    fn hold(&self) -> &Hold {
        &self.0.held
    }

    fn give_up(self: Box<Self>) -> BoxFuture<'static, Result<Option<Hold>, ReleaseError>> {
        Box::pin(self.0.give_up())
    }
}
