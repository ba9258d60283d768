use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use lockkeeper::{ConnectionManager, Error, Lease, Mutex, ReleaseError, Semaphore, SharedLimit};

use super::{Granted, Recipe};
use crate::oracle::{Claim, Grant, Share};
use crate::server_fixture::LOCK;

/// How many permits there are.
const LIMIT: usize = 3;

/// So many permits of a semaphore, where the others want all of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Permits(pub(crate) usize);

/// The same, with a limit that is kept in a node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SharedPermits(pub(crate) usize);

/// The mutex in the layout of a semaphore.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InSemaphoreLayout;

impl Recipe for Permits {
    /// At the head of the line: on the leases.
    const WATCHES: usize = 1;

    async fn acquire(self, manager: ConnectionManager) -> Result<Granted, Error> {
        Ok(Box::new(Semaphore::new(&manager, LOCK, LIMIT)?.acquire_many(self.0).await?))
    }

    async fn acquire_timeout(self, manager: ConnectionManager, timeout: Duration) -> Result<Granted, Error> {
        Ok(Box::new(Semaphore::new(&manager, LOCK, LIMIT)?.acquire_many_timeout(self.0, timeout).await?))
    }

    async fn try_acquire(self, manager: ConnectionManager) -> Result<Option<Granted>, Error> {
        let lease = Semaphore::new(&manager, LOCK, LIMIT)?.try_acquire_many(self.0).await?;
        Ok(lease.map(|lease| Box::new(lease) as Granted))
    }

    async fn exclude(self, manager: ConnectionManager) -> Result<Granted, Error> {
        Self(LIMIT).acquire(manager).await
    }
}

fn shared(manager: &ConnectionManager) -> Result<Semaphore, Error> {
    Semaphore::with_shared_limit(manager, LOCK, &limit(manager)?)
}

fn limit(manager: &ConnectionManager) -> Result<SharedLimit, Error> {
    SharedLimit::new(manager, "/limits/lock")
}

impl Recipe for SharedPermits {
    /// At the head of the line: on the leases, and on the limit.
    const WATCHES: usize = 2;

    async fn prepare(self, manager: ConnectionManager) -> Result<(), Error> {
        limit(&manager)?.set(LIMIT).await
    }

    async fn acquire(self, manager: ConnectionManager) -> Result<Granted, Error> {
        Ok(Box::new(shared(&manager)?.acquire_many(self.0).await?))
    }

    async fn acquire_timeout(self, manager: ConnectionManager, timeout: Duration) -> Result<Granted, Error> {
        Ok(Box::new(shared(&manager)?.acquire_many_timeout(self.0, timeout).await?))
    }

    async fn try_acquire(self, manager: ConnectionManager) -> Result<Option<Granted>, Error> {
        let lease = shared(&manager)?.try_acquire_many(self.0).await?;
        Ok(lease.map(|lease| Box::new(lease) as Granted))
    }

    async fn exclude(self, manager: ConnectionManager) -> Result<Granted, Error> {
        Self(LIMIT).acquire(manager).await
    }
}

impl Grant for Lease {
    fn claims(&self) -> Vec<Claim<'_>> {
        vec![Claim { share: Share::Permits { taken: self.permits(), limit: LIMIT }, held: self.hold() }]
    }

    fn release(self: Box<Self>) -> BoxFuture<'static, Result<(), ReleaseError>> {
        (*self).release().boxed()
    }
}

impl Recipe for InSemaphoreLayout {
    const WATCHES: usize = 1;

    async fn acquire(self, manager: ConnectionManager) -> Result<Granted, Error> {
        Ok(Mutex::in_semaphore_layout(&manager, LOCK)?.acquire().await?.into())
    }

    async fn acquire_timeout(self, manager: ConnectionManager, timeout: Duration) -> Result<Granted, Error> {
        Ok(Mutex::in_semaphore_layout(&manager, LOCK)?.acquire_timeout(timeout).await?.into())
    }

    async fn try_acquire(self, manager: ConnectionManager) -> Result<Option<Granted>, Error> {
        Ok(Mutex::in_semaphore_layout(&manager, LOCK)?.try_acquire().await?.map(Granted::from))
    }
}
