use std::sync::Arc;

use futures::future::BoxFuture;
use lockkeeper_core::{ConnectionManager, Deadline, Error, LockQueue, ZnodePath};

use super::handle::Election;
use crate::inspection::Inspection;
use crate::lock::any_engine::any_lock;
use crate::lock::{MultiLockGuard, Recipe};

any_lock!(
    /// An acquire is a campaign. An election is no member of a [`MultiLock`](crate::MultiLock).
    Election
);

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

    fn acquire(&self, deadline: Deadline) -> BoxFuture<'_, Result<MultiLockGuard, Error>> {
        Box::pin(async move {
            let leadership = self.campaign_until(deadline).await?;
            Ok(MultiLockGuard::of_one(self.path(), leadership))
        })
    }

    fn try_acquire(&self) -> BoxFuture<'_, Result<Option<MultiLockGuard>, Error>> {
        let member = |leadership| MultiLockGuard::of_one(self.path(), leadership);
        Box::pin(async move { Ok(self.try_campaign().await?.map(member)) })
    }

    fn queues(&self) -> (LockQueue, Vec<LockQueue>) {
        (self.queue.clone(), Vec::new())
    }

    fn inspect(&self) -> BoxFuture<'_, Result<Vec<Inspection>, Error>> {
        Box::pin(async move { Ok(vec![self.inspect().await?]) })
    }
}
