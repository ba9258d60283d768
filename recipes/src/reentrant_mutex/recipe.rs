use std::future::ready;
use std::sync::Arc;

use futures::future::BoxFuture;
use lockkeeper_core::{ConnectionManager, Deadline, Error, Hold, LockQueue, ZnodePath};
use tokio::sync::OwnedMutexGuard;

use super::{ReentrantMutex, ReentrantSlot, ReentrantSlotEntry};
use crate::inspection::Inspection;
use crate::lock::{BatchEntry, Entered, Lock, LockGuard, LockRequest, MemberGuard, Recipe, Sealed};
use crate::owner::Owner;

impl Lock for ReentrantMutex {
    fn as_recipe(&self) -> Sealed<'_> {
        Sealed(self)
    }
}

impl Recipe for ReentrantMutex {
    fn path(&self) -> &ZnodePath {
        self.path()
    }

    fn shared(&self) -> Arc<dyn Recipe> {
        Arc::new(self.clone())
    }

    fn manager(&self) -> &ConnectionManager {
        self.queue.manager()
    }

    fn acquire(&self, deadline: Deadline) -> BoxFuture<'_, Result<LockGuard, Error>> {
        Box::pin(async move {
            let guard = self.lock(&self.resolve_owner()?, deadline).await?;
            Ok(LockGuard::of_one(MemberGuard::new(self.path(), guard)))
        })
    }

    fn try_acquire(&self) -> BoxFuture<'_, Result<Option<LockGuard>, Error>> {
        let member = |guard| LockGuard::of_one(MemberGuard::new(self.path(), guard));
        Box::pin(async move { Ok(self.try_lock(&self.resolve_owner()?).await?.map(member)) })
    }

    fn queues(&self) -> (LockQueue, Vec<LockQueue>) {
        (self.queue.clone(), Vec::new())
    }

    fn inspect(&self) -> BoxFuture<'_, Result<Vec<Inspection>, Error>> {
        Box::pin(async move { Ok(vec![self.inspect().await?]) })
    }

    fn request(&self) -> Option<LockRequest> {
        Some(LockRequest::Reentrant(self.resolve_owner().ok()?.id()))
    }

    fn owner(&self) -> Option<Owner> {
        self.resolve_owner().ok()
    }

    fn merged_with(&self, other: LockRequest) -> Option<Arc<dyn Recipe>> {
        (self.request() == Some(other)).then(|| self.shared())
    }

    fn batch_entry(&self) -> Option<Box<dyn BatchEntry>> {
        let owner = self.resolve_owner().ok()?;
        let (entry, slot) = self.slot(&owner);
        let acquiring = Arc::clone(&slot.acquiring).try_lock_owned().ok()?;
        if slot.hold_count() > 0 || self.holders.check(self.path(), &owner).is_err() {
            return None;
        }
        Some(Box::new(ReentrantBatchEntry { mutex: self.clone(), owner, slot, entry, _acquiring: acquiring }))
    }
}

/// The way into a mutex for one who takes several locks at once: its owner's other tasks wait meanwhile.
struct ReentrantBatchEntry {
    mutex: ReentrantMutex,
    owner: Owner,
    _acquiring: OwnedMutexGuard<()>,
    // Dropped in this order, as everywhere.
    slot: Arc<ReentrantSlot>,
    entry: ReentrantSlotEntry,
}

impl BatchEntry for ReentrantBatchEntry {
    fn queue(&self) -> LockQueue {
        self.mutex.queue_of(&self.owner)
    }

    fn enter(self: Box<Self>, hold: Hold, _: Option<Deadline>) -> BoxFuture<'static, Result<Entered, Error>> {
        let Self { mutex, owner, slot, entry, .. } = *self;
        let guard = mutex.guard(&slot, hold, &owner, entry);
        Box::pin(ready(Ok(Some(MemberGuard::new(mutex.path(), guard)))))
    }
}
