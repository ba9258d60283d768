use std::sync::Arc;

use futures::future::BoxFuture;
use lockkeeper_core::{ConnectionManager, Deadline, Error, LockQueue, ZnodePath};

use super::{Election, Leadership};
use crate::inspection::Inspection;
use crate::lock::{BatchEntry, Lock, LockGuard, LockRequest, MemberGuard, Recipe, Sealed};
use crate::owner::Owner;

/// An acquire is a campaign. An election is no member of a [`MultiLock`](crate::MultiLock).
impl Lock for Election {
    fn as_recipe(&self) -> Sealed<'_> {
        Sealed(self)
    }
}

impl Recipe for Election {
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
            let leadership = Leadership::new(self.queue.acquire(deadline).await?);
            Ok(LockGuard::of_one(MemberGuard::new(self.path(), leadership)))
        })
    }

    fn try_acquire(&self) -> BoxFuture<'_, Result<Option<LockGuard>, Error>> {
        let member = |leadership| LockGuard::of_one(MemberGuard::new(self.path(), leadership));
        Box::pin(async move { Ok(self.try_campaign().await?.map(member)) })
    }

    fn queues(&self) -> (LockQueue, Vec<LockQueue>) {
        (self.queue.clone(), Vec::new())
    }

    fn inspect(&self) -> BoxFuture<'_, Result<Vec<Inspection>, Error>> {
        Box::pin(async move { Ok(vec![self.inspect().await?]) })
    }

    fn request(&self) -> Option<LockRequest> {
        None
    }

    fn owner(&self) -> Option<Owner> {
        None
    }

    fn merged_with(&self, _: LockRequest) -> Option<Arc<dyn Recipe>> {
        None
    }

    fn batch_entry(&self) -> Option<Box<dyn BatchEntry>> {
        None
    }
}
