use std::time::Duration;

use futures::future::BoxFuture;
use lockkeeper::{ConnectionManager, Error, LockGuard, MultiLock, MultiLockError, Mutex, ReleaseError};

use lockkeeper_testserver::Op;

use super::{Granted, Recipe};
use crate::oracle::{Claim, Grant};
use crate::server_fixture::LOCK;

/// Two mutexes at once, in order or in place.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Several {
    InOrder,
    AtOnce,
}

impl Several {
    fn of(self, manager: &ConnectionManager) -> Result<MultiLock, Error> {
        let builder = MultiLock::builder().lock(&member(manager, "two")?).lock(&member(manager, "one")?);
        match self {
            Self::InOrder => builder.build(),
            Self::AtOnce => builder.atomic().build(),
        }
    }
}

fn member(manager: &ConnectionManager, name: &str) -> Result<Mutex, Error> {
    Mutex::new(manager, format!("{LOCK}/{name}").as_str())
}

fn cause(error: MultiLockError) -> Error {
    error.cause().clone()
}

impl Recipe for Several {
    const CREATES: &'static [Op] = &[Op::Multi];

    async fn acquire(self, manager: ConnectionManager) -> Result<Granted, Error> {
        Ok(Box::new(self.of(&manager)?.acquire().await.map_err(cause)?))
    }

    async fn acquire_timeout(self, manager: ConnectionManager, timeout: Duration) -> Result<Granted, Error> {
        Ok(Box::new(self.of(&manager)?.acquire_timeout(timeout).await.map_err(cause)?))
    }

    async fn try_acquire(self, manager: ConnectionManager) -> Result<Option<Granted>, Error> {
        let guard = self.of(&manager)?.try_acquire().await.map_err(cause)?;
        Ok(guard.map(|guard| Box::new(guard) as Granted))
    }
}

impl Grant for LockGuard {
    fn claims(&self) -> Vec<Claim<'_>> {
        self.members().map(|(_, hold)| Claim::exclusive(hold)).collect()
    }

    fn release(self: Box<Self>) -> BoxFuture<'static, Result<(), ReleaseError>> {
        Box::pin(async move { (*self).release().await.map_err(|errors| errors.errors()[0].clone()) })
    }
}
