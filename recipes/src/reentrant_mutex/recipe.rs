use std::sync::Arc;

use futures::future::BoxFuture;
use lockkeeper_core::{ConnectionManager, Deadline, Error, LockQueue, ZnodePath};

use super::handle::ReentrantMutex;
use crate::inspection::Inspection;
use crate::lock::any_engine::any_lock;
use crate::lock::{BatchEntry, LockRequest, MultiLockGuard, Recipe};
use crate::owner::{Owner, Side};

any_lock!(ReentrantMutex);

impl Recipe for ReentrantMutex {
    fn path(&self) -> &ZnodePath {
        self.path()
    }

    fn shared(&self) -> Arc<dyn Recipe> {
        Arc::new(self.clone())
    }

    fn manager(&self) -> &ConnectionManager {
        self.holds.manager()
    }

    fn acquire(&self, deadline: Deadline) -> BoxFuture<'_, Result<MultiLockGuard, Error>> {
        Box::pin(async move {
            let guard = self.lock(&self.resolve_owner()?, deadline).await?;
            Ok(MultiLockGuard::of_one(self.path(), guard))
        })
    }

    fn try_acquire(&self) -> BoxFuture<'_, Result<Option<MultiLockGuard>, Error>> {
        let member = |guard| MultiLockGuard::of_one(self.path(), guard);
        Box::pin(async move { Ok(self.try_lock(&self.resolve_owner()?).await?.map(member)) })
    }

    fn queues(&self) -> (LockQueue, Vec<LockQueue>) {
        (self.holds.queue(Side::Write).clone(), Vec::new())
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
        Some(Box::new(self.holds.entrance(Side::Write, &owner)?))
    }
}
