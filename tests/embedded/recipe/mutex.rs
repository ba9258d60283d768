use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use lockkeeper::{ConnectionManager, Error, Mutex, MutexGuard, ReleaseError};

use super::{Granted, Recipe};
use crate::oracle::{Claim, Grant};
use crate::server_fixture::LOCK;

/// The mutex.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plain;

impl Recipe for Plain {
    async fn acquire(self, manager: ConnectionManager) -> Result<Granted, Error> {
        Ok(Mutex::new(&manager, LOCK)?.acquire().await?.into())
    }

    async fn acquire_timeout(self, manager: ConnectionManager, timeout: Duration) -> Result<Granted, Error> {
        Ok(Mutex::new(&manager, LOCK)?.acquire_timeout(timeout).await?.into())
    }

    async fn try_acquire(self, manager: ConnectionManager) -> Result<Option<Granted>, Error> {
        Ok(Mutex::new(&manager, LOCK)?.try_acquire().await?.map(Granted::from))
    }
}

impl Grant for MutexGuard {
    fn claims(&self) -> Vec<Claim<'_>> {
        vec![Claim::exclusive(self.hold())]
    }

    fn release(self: Box<Self>) -> BoxFuture<'static, Result<(), ReleaseError>> {
        (*self).release().boxed()
    }
}

impl From<MutexGuard> for Granted {
    fn from(guard: MutexGuard) -> Self {
        Box::new(guard)
    }
}
