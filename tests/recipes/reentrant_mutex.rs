//! [`ReentrantMutex`].

use futures::future::BoxFuture;
use lockkeeper::locks::ZooKeeperLock;
use lockkeeper::{Error, FencingToken, Hold, Owner, ReentrantMutex, ReentrantMutexGuard, ReleaseError, Txn};

use crate::mutex::granted;
use crate::{AcquireMode, Adapter, Grant, Taking, Target};

/// A reentrant mutex, for the owner of the target. Without one, each time for another owner.
#[derive(Clone, Copy, Debug)]
pub struct Reentrant;

impl Adapter for Reentrant {
    fn take(&self, target: Target, mode: AcquireMode) -> Taking {
        Box::pin(async move {
            let (owner, mutex) = (owner(&target), ReentrantMutex::new(&target.manager, target.path)?);
            granted(match mode {
                AcquireMode::Wait => mutex.acquire(&owner).await.map(Some),
                AcquireMode::WaitAtMost(limit) => mutex.acquire_timeout(&owner, limit).await.map(Some),
                AcquireMode::Try => mutex.try_acquire(&owner).await,
            })
        })
    }

    fn as_lock(&self, target: Target) -> Result<Option<Box<dyn ZooKeeperLock>>, Error> {
        let owner = owner(&target);
        Ok(Some(Box::new(ReentrantMutex::new(&target.manager, target.path)?.for_owner(&owner))))
    }
}

/// The owner of the target, or another one each time.
fn owner(target: &Target) -> Owner {
    target.owner.clone().unwrap_or_else(|| Owner::new("one"))
}

impl Grant for ReentrantMutexGuard {
    fn holds(&self) -> Vec<&Hold> {
        vec![self.hold()]
    }

    fn release(self: Box<Self>) -> BoxFuture<'static, Result<(), ReleaseError>> {
        Box::pin((*self).release())
    }

    fn txn(&self) -> Option<Txn<'_>> {
        Some(self.hold().txn())
    }

    fn acquire_again(&self, target: Target) -> BoxFuture<'_, Result<Option<FencingToken>, Error>> {
        Box::pin(async move {
            let owner = owner(&target);
            let again = ReentrantMutex::new(&target.manager, target.path)?.try_acquire(&owner).await?;
            Ok(again.map(|again| again.fencing_token()))
        })
    }

    /// A second hold has the token of the first.
    fn check_owner(&self, target: Target) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(async move {
            match self.acquire_again(target).await {
                Ok(Some(token)) if token != self.fencing_token() => {
                    Err("promise 3: a second hold has its own token".to_owned())
                }
                _ => Ok(()),
            }
        })
    }
}
