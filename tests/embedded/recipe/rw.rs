use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use lockkeeper::{ConnectionManager, Error, ReadGuard, ReleaseError, RwLock, WriteGuard};

use super::{Granted, Recipe};
use crate::oracle::{Claim, Grant, Share};
use crate::server_fixture::LOCK;

/// The reading side of the read/write lock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading;

/// Its writing side.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Writing;

impl Recipe for Reading {
    async fn acquire(self, manager: ConnectionManager) -> Result<Granted, Error> {
        Ok(RwLock::new(&manager, LOCK)?.read().await?.into())
    }

    async fn acquire_timeout(self, manager: ConnectionManager, timeout: Duration) -> Result<Granted, Error> {
        Ok(RwLock::new(&manager, LOCK)?.read_timeout(timeout).await?.into())
    }

    async fn try_acquire(self, manager: ConnectionManager) -> Result<Option<Granted>, Error> {
        Ok(RwLock::new(&manager, LOCK)?.try_read().await?.map(Granted::from))
    }

    async fn exclude(self, manager: ConnectionManager) -> Result<Granted, Error> {
        Writing.acquire(manager).await
    }
}

impl Recipe for Writing {
    async fn acquire(self, manager: ConnectionManager) -> Result<Granted, Error> {
        Ok(RwLock::new(&manager, LOCK)?.write().await?.into())
    }

    async fn acquire_timeout(self, manager: ConnectionManager, timeout: Duration) -> Result<Granted, Error> {
        Ok(RwLock::new(&manager, LOCK)?.write_timeout(timeout).await?.into())
    }

    async fn try_acquire(self, manager: ConnectionManager) -> Result<Option<Granted>, Error> {
        Ok(RwLock::new(&manager, LOCK)?.try_write().await?.map(Granted::from))
    }
}

impl Grant for ReadGuard {
    fn claims(&self) -> Vec<Claim<'_>> {
        vec![Claim { share: Share::Shared, held: self.hold() }]
    }

    fn release(self: Box<Self>) -> BoxFuture<'static, Result<(), ReleaseError>> {
        (*self).release().boxed()
    }
}

impl Grant for WriteGuard {
    fn claims(&self) -> Vec<Claim<'_>> {
        vec![Claim::exclusive(self.hold())]
    }

    fn release(self: Box<Self>) -> BoxFuture<'static, Result<(), ReleaseError>> {
        (*self).release().boxed()
    }
}

impl From<ReadGuard> for Granted {
    fn from(guard: ReadGuard) -> Self {
        Box::new(guard)
    }
}

impl From<WriteGuard> for Granted {
    fn from(guard: WriteGuard) -> Self {
        Box::new(guard)
    }
}
