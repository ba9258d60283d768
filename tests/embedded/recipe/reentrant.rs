use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use lockkeeper::{ConnectionManager, Error, Owner, ReentrantMutex, ReentrantMutexGuard, ReleaseError};

use super::{Granted, Recipe};
use crate::oracle::{Claim, Grant};
use crate::server_fixture::LOCK;

/// The reentrant mutex, each time for another owner.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reentrant;

impl Recipe for Reentrant {
    async fn acquire(self, manager: ConnectionManager) -> Result<Granted, Error> {
        Ok(ReentrantMutex::new(&manager, LOCK)?.acquire(&Owner::new("one")).await?.into())
    }

    async fn acquire_timeout(self, manager: ConnectionManager, timeout: Duration) -> Result<Granted, Error> {
        let mutex = ReentrantMutex::new(&manager, LOCK)?;
        Ok(mutex.acquire_timeout(&Owner::new("one"), timeout).await?.into())
    }

    async fn try_acquire(self, manager: ConnectionManager) -> Result<Option<Granted>, Error> {
        let mutex = ReentrantMutex::new(&manager, LOCK)?;
        Ok(mutex.try_acquire(&Owner::new("one")).await?.map(Granted::from))
    }
}

impl Grant for ReentrantMutexGuard {
    fn claims(&self) -> Vec<Claim<'_>> {
        vec![Claim::exclusive(self.hold())]
    }

    fn release(self: Box<Self>) -> BoxFuture<'static, Result<(), ReleaseError>> {
        (*self).release().boxed()
    }
}

impl From<ReentrantMutexGuard> for Granted {
    fn from(guard: ReentrantMutexGuard) -> Self {
        Box::new(guard)
    }
}
