//! [`Mutex`].

use futures::future::BoxFuture;
use lockkeeper::locks::ZooKeeperLock;
use lockkeeper::{Error, Hold, Mutex, MutexGuard, ReleaseError, Txn};
use lockkeeper_core::{HoldExt, NodeMonitor};

use crate::{AcquireMode, Adapter, Grant, Granted, Taking, Target};

/// A mutex.
#[derive(Clone, Copy, Debug)]
pub struct Plain;

impl Adapter for Plain {
    fn take(&self, target: Target, mode: AcquireMode) -> Taking {
        Box::pin(async move { granted(acquire(&Mutex::new(&target.manager, target.path)?, mode).await) })
    }

    fn as_lock(&self, target: Target) -> Result<Option<Box<dyn ZooKeeperLock>>, Error> {
        Ok(Some(Box::new(Mutex::new(&target.manager, target.path)?)))
    }
}

pub(crate) async fn acquire(mutex: &Mutex, mode: AcquireMode) -> Result<Option<MutexGuard>, Error> {
    match mode {
        AcquireMode::Wait => mutex.acquire().await.map(Some),
        AcquireMode::WaitAtMost(limit) => mutex.acquire_timeout(limit).await.map(Some),
        AcquireMode::Try => mutex.try_acquire().await,
    }
}

/// A guard of any type as a [`Granted`].
pub(crate) fn granted<G: Grant>(taken: Result<Option<G>, Error>) -> Result<Option<Granted>, Error> {
    Ok(taken?.map(|grant| Box::new(grant) as Granted))
}

impl Grant for MutexGuard {
    fn holds(&self) -> Vec<&Hold> {
        vec![self.hold()]
    }

    fn release(self: Box<Self>) -> BoxFuture<'static, Result<(), ReleaseError>> {
        Box::pin((*self).release())
    }

    fn monitor(&self) -> Option<NodeMonitor> {
        Some(self.hold().monitor())
    }

    fn txn(&self) -> Option<Txn<'_>> {
        Some(self.hold().txn())
    }
}
