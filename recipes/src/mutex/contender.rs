use std::sync::Arc;

use futures::future::BoxFuture;
use lockkeeper_core::{ConnectionManager, Deadline, Error, Hold, Line, ReleaseError, ZnodePath};

use super::keeper::Left;
use super::{Layout, Mutex, OwnedMutexGuard};
use crate::inspection::Inspection;
use crate::lock::{Contender, Entered, Entrance, Keep, Kept, Lock, LockGuard, Seal, Share};
use crate::owner::Owner;
use crate::semaphore::Lease;

impl Lock for Mutex {
    fn contender(&self) -> Seal<'_> {
        Seal(self)
    }
}

impl Contender for Mutex {
    fn path(&self) -> &ZnodePath {
        self.path()
    }

    fn shared(&self) -> Arc<dyn Contender> {
        Arc::new(self.clone())
    }

    fn manager(&self) -> &ConnectionManager {
        match &self.layout {
            Layout::Line(line) => line.manager(),
            Layout::Semaphore(semaphore) => semaphore.manager(),
        }
    }

    fn acquire(&self, deadline: Deadline) -> BoxFuture<'_, Result<LockGuard, Error>> {
        Box::pin(async move { Ok(LockGuard::of(Kept::new(self.path(), self.lock(deadline).await?))) })
    }

    fn try_acquire(&self) -> BoxFuture<'_, Result<Option<LockGuard>, Error>> {
        let kept = |guard| LockGuard::of(Kept::new(self.path(), guard));
        Box::pin(async move { Ok(self.try_lock().await?.map(kept)) })
    }

    fn lines(&self) -> (Line, Vec<Line>) {
        let line = match &self.layout {
            Layout::Line(line) => line,
            Layout::Semaphore(semaphore) => semaphore.leases_line(),
        };
        (line.clone(), Vec::new())
    }

    fn inspect(&self) -> BoxFuture<'_, Result<Vec<Inspection>, Error>> {
        Box::pin(async move { Ok(vec![self.inspect().await?]) })
    }

    fn share(&self) -> Option<Share> {
        Some(match &self.layout {
            Layout::Line(_) => Share::Mutex,
            Layout::Semaphore(_) => Share::MutexBySemaphore,
        })
    }

    fn owner(&self) -> Option<Owner> {
        Owner::current()
    }

    fn merged_with(&self, other: Share) -> Option<Arc<dyn Contender>> {
        (self.share() == Some(other)).then(|| self.shared())
    }

    fn entrance(&self) -> Option<Box<dyn Entrance>> {
        let owner = self.owner().ok()?;
        let line = match &self.layout {
            Layout::Line(line) => Self::signed(line, owner.as_ref()),
            Layout::Semaphore(semaphore) => semaphore.line(),
        };
        Some(Box::new(WayIn { mutex: self.clone(), owner, line }))
    }
}

/// The way into a mutex for one who takes several locks at once.
struct WayIn {
    mutex: Mutex,
    owner: Option<Owner>,
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
            let hold = match &self.mutex.layout {
                Layout::Line(_) => Some(hold),
                Layout::Semaphore(semaphore) => semaphore.enter(hold, 1, wait).await?.map(Lease::into_hold),
            };
            let guard = hold.map(|hold| self.mutex.guard(hold.into(), self.owner.as_ref()));
            Ok(guard.map(|guard| Kept::new(self.mutex.path(), guard)))
        })
    }
}

impl Keep for OwnedMutexGuard {
    fn hold(&self) -> &Hold {
        self
    }

    fn give_up(self: Box<Self>) -> BoxFuture<'static, Result<Option<Hold>, ReleaseError>> {
        Box::pin(async move {
            match self.give_back() {
                Some(Left::Hold(hold)) => Ok(Some(*hold)),
                Some(parked) => parked.release().await.map(|()| None),
                None => Ok(None),
            }
        })
    }
}
