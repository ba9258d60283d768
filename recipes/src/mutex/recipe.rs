use std::sync::Arc;

use futures::future::BoxFuture;
use lockkeeper_core::{ConnectionManager, Deadline, Error, Hold, LockQueue, ZnodePath};

use super::handle::{Mutex, MutexLayout};
use crate::inspection::Inspection;
use crate::lock::any_engine::any_lock;
use crate::lock::{BatchEntry, Entered, LockRequest, MemberGuard, MultiLockGuard, Recipe};
use crate::owner::Owner;
use crate::semaphore::Lease;

any_lock!(Mutex);

impl Recipe for Mutex {
    fn path(&self) -> &ZnodePath {
        self.path()
    }

    fn shared(&self) -> Arc<dyn Recipe> {
        Arc::new(self.clone())
    }

    fn manager(&self) -> &ConnectionManager {
        match &self.layout {
            MutexLayout::Queue(queue) => queue.manager(),
            MutexLayout::Semaphore(semaphore) => semaphore.manager(),
        }
    }

    fn acquire(&self, deadline: Deadline) -> BoxFuture<'_, Result<MultiLockGuard, Error>> {
        Box::pin(async move { Ok(MultiLockGuard::of_one(self.path(), self.lock(deadline).await?)) })
    }

    fn try_acquire(&self) -> BoxFuture<'_, Result<Option<MultiLockGuard>, Error>> {
        let member = |guard| MultiLockGuard::of_one(self.path(), guard);
        Box::pin(async move { Ok(self.try_lock().await?.map(member)) })
    }

    fn queues(&self) -> (LockQueue, Vec<LockQueue>) {
        let queue = match &self.layout {
            MutexLayout::Queue(queue) => queue,
            MutexLayout::Semaphore(semaphore) => semaphore.leases_queue(),
        };
        (queue.clone(), Vec::new())
    }

    fn inspect(&self) -> BoxFuture<'_, Result<Vec<Inspection>, Error>> {
        Box::pin(async move { Ok(vec![self.inspect().await?]) })
    }

    fn request(&self) -> Option<LockRequest> {
        Some(match &self.layout {
            MutexLayout::Queue(_) => LockRequest::Mutex,
            MutexLayout::Semaphore(_) => LockRequest::MutexBySemaphore,
        })
    }

    fn owner(&self) -> Option<Owner> {
        Owner::current()
    }

    fn merged_with(&self, other: LockRequest) -> Option<Arc<dyn Recipe>> {
        (self.request() == Some(other)).then(|| self.shared())
    }

    fn batch_entry(&self) -> Option<Box<dyn BatchEntry>> {
        let owner = self.owner().ok()?;
        Some(Box::new(MutexBatchEntry { mutex: self.clone(), owner }))
    }
}

/// The entry of a mutex in a batch of several locks.
struct MutexBatchEntry {
    mutex: Mutex,
    owner: Option<Owner>,
}

impl BatchEntry for MutexBatchEntry {
    fn queue(&self, deadline: Deadline) -> LockQueue {
        match (&self.mutex.layout, &self.owner) {
            (MutexLayout::Queue(queue), Some(owner)) => self.mutex.waiter_queue(queue, owner, deadline),
            (MutexLayout::Queue(queue), None) => queue.clone(),
            (MutexLayout::Semaphore(semaphore), _) => semaphore.waiter_queue(deadline),
        }
    }

    fn enter(
        self: Box<Self>,
        hold: Hold,
        wait: Option<Deadline>,
    ) -> BoxFuture<'static, Result<Entered, Error>> {
        Box::pin(async move {
            let hold = match &self.mutex.layout {
                MutexLayout::Queue(_) => Some(hold.into()),
                MutexLayout::Semaphore(semaphore) => {
                    semaphore.enter(hold, 1, wait).await?.map(Lease::into_held)
                }
            };
            let guard = hold.map(|hold| self.mutex.guard(hold, self.owner.as_ref()));
            Ok(guard.map(|guard| MemberGuard::new(self.mutex.path(), guard)))
        })
    }
}
