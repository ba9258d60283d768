use std::future::ready;
use std::sync::Arc;

use futures::future::BoxFuture;
use lockkeeper_core::{ConnectionManager, Deadline, Error, Hold, Line, ReleaseError, ZnodePath};
use tokio::sync::OwnedMutexGuard;

use super::{OwnedReentrantMutexGuard, ReentrantMutex, Shared, Slot, SlotEntry};
use crate::inspection::Inspection;
use crate::lock::{Contender, Entered, Entrance, Keep, Kept, Lock, LockGuard, Seal, Share};
use crate::owner::Owner;

impl Lock for ReentrantMutex {
    fn contender(&self) -> Seal<'_> {
        Seal(self)
    }
}

impl Contender for ReentrantMutex {
    fn path(&self) -> &ZnodePath {
        self.path()
    }

    fn shared(&self) -> Arc<dyn Contender> {
        Arc::new(self.clone())
    }

    fn manager(&self) -> &ConnectionManager {
        self.line.manager()
    }

    fn acquire(&self, deadline: Deadline) -> BoxFuture<'_, Result<LockGuard, Error>> {
        Box::pin(async move {
            let guard = self.lock(&self.whose()?, deadline).await?;
            Ok(LockGuard::of(Kept::new(self.path(), guard)))
        })
    }

    fn try_acquire(&self) -> BoxFuture<'_, Result<Option<LockGuard>, Error>> {
        let kept = |guard| LockGuard::of(Kept::new(self.path(), guard));
        Box::pin(async move { Ok(self.try_lock(&self.whose()?).await?.map(kept)) })
    }

    fn lines(&self) -> (Line, Vec<Line>) {
        (self.line.clone(), Vec::new())
    }

    fn inspect(&self) -> BoxFuture<'_, Result<Vec<Inspection>, Error>> {
        Box::pin(async move { Ok(vec![self.inspect().await?]) })
    }

    fn share(&self) -> Option<Share> {
        Some(Share::Reentrant(self.whose().ok()?.id()))
    }

    fn owner(&self) -> Option<Owner> {
        self.whose().ok()
    }

    fn merged_with(&self, other: Share) -> Option<Arc<dyn Contender>> {
        (self.share() == Some(other)).then(|| self.shared())
    }

    fn entrance(&self) -> Option<Box<dyn Entrance>> {
        let owner = self.whose().ok()?;
        let (entry, slot) = self.slot(&owner);
        let acquiring = Arc::clone(&slot.acquiring).try_lock_owned().ok()?;
        if slot.hold_count() > 0 || self.holders.check(self.path(), &owner).is_err() {
            return None;
        }
        Some(Box::new(WayIn { mutex: self.clone(), owner, slot, entry, _acquiring: acquiring }))
    }
}

/// The way into a mutex for one who takes several locks at once: its owner's other tasks wait meanwhile.
struct WayIn {
    mutex: ReentrantMutex,
    owner: Owner,
    _acquiring: OwnedMutexGuard<()>,
    // Dropped in this order, as everywhere.
    slot: Arc<Slot>,
    entry: SlotEntry,
}

impl Entrance for WayIn {
    fn line(&self) -> Line {
        self.mutex.line_of(&self.owner)
    }

    fn enter(self: Box<Self>, hold: Hold, _: Option<Deadline>) -> BoxFuture<'static, Result<Entered, Error>> {
        let Self { mutex, owner, slot, entry, .. } = *self;
        let guard = mutex.guard(&slot, hold, &owner, entry);
        Box::pin(ready(Ok(Some(Kept::new(mutex.path(), guard)))))
    }
}

impl Keep for OwnedReentrantMutexGuard {
    fn hold(&self) -> &Hold {
        &self.shared.held
    }

    fn give_up(self: Box<Self>) -> BoxFuture<'static, Result<Option<Hold>, ReleaseError>> {
        let checked = self.shared.held.check();
        Box::pin(ready(match Arc::into_inner(self.shared) {
            None => checked.map(|()| None).map_err(ReleaseError::Lost),
            Some(Shared { held, entry, slot }) => {
                drop((entry, slot));
                Ok(Some(held))
            }
        }))
    }
}
