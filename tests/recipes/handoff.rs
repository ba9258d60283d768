//! A [`Mutex`] that keeps its node ([`Mutex::with_handoff`]).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use lockkeeper::config::HandOffPolicy;
use lockkeeper::locks::ZooKeeperLock;
use lockkeeper::{Error, Hold, Mutex, MutexGuard, ReleaseError, Txn};
use lockkeeper_core::{HoldExt, NodeMonitor};

use crate::mutex::{Plain, acquire};
use crate::{AcquireMode, Adapter, AnyAdapter, Grant, Granted, Taking, Target};

/// The mutexes that the tasks of one process share, by path: they hand their nodes off to each other.
#[derive(Clone, Debug, Default)]
pub struct SharedMutexes(Arc<BTreeMap<String, Mutex>>);

impl FromIterator<(String, Mutex)> for SharedMutexes {
    fn from_iter<I: IntoIterator<Item = (String, Mutex)>>(mutexes: I) -> Self {
        Self(Arc::new(mutexes.into_iter().collect()))
    }
}

impl SharedMutexes {
    /// The mutex of this path.
    #[must_use]
    pub fn get(&self, path: &str) -> Option<&Mutex> {
        self.0.get(path)
    }
}

fn mutex_of(target: Target) -> Result<Mutex, Error> {
    if let Some(mutex) = target.shared.get(&target.path) {
        return Ok(mutex.clone());
    }
    let policy = HandOffPolicy::default().idle_time(Duration::from_millis(300));
    Mutex::new(&target.manager, target.path)?.with_handoff(policy)
}

/// The mutex that the tasks of the process share. Without one, a mutex of its own: an acquire without a limit
/// takes and releases it first, so that it gets the idle node.
#[derive(Clone, Copy, Debug)]
pub struct Keeping;

impl Adapter for Keeping {
    fn take(&self, target: Target, mode: AcquireMode) -> Taking {
        Box::pin(async move {
            if let Some(mutex) = target.shared.get(&target.path) {
                let guard = acquire(mutex, mode).await?;
                return Ok(guard.map(|guard| Box::new(HandOffGrant { guard, mutex: None }) as Granted));
            }
            let mutex = mutex_of(target)?;
            let mut released = None;
            if mode == AcquireMode::Wait {
                let first = mutex.acquire().await?;
                released = Some(first.fencing_token());
                // Another contender may get the lock next, or it is lost.
                let _ = first.release().await;
            }
            let guard = acquire(&mutex, mode).await?;
            let token = guard.as_ref().map(MutexGuard::fencing_token);
            assert!(token.is_none() || token > released, "{token:?} after {released:?}");
            Ok(guard.map(|guard| Box::new(HandOffGrant { guard, mutex: Some(mutex) }) as Granted))
        })
    }

    fn as_lock(&self, target: Target) -> Result<Option<Box<dyn ZooKeeperLock>>, Error> {
        Ok(Some(Box::new(mutex_of(target)?)))
    }

    fn exclusion(&self) -> Option<AnyAdapter> {
        Some(&Plain)
    }
}

/// A guard, and the mutex by which its node is kept if no other task has it.
#[derive(Debug)]
struct HandOffGrant {
    guard: MutexGuard,
    mutex: Option<Mutex>,
}

impl Grant for HandOffGrant {
    fn holds(&self) -> Vec<&Hold> {
        vec![self.guard.hold()]
    }

    fn release(self: Box<Self>) -> BoxFuture<'static, Result<(), ReleaseError>> {
        let Self { guard, mutex } = *self;
        // The last handle: the node is not kept.
        drop(mutex);
        Box::pin(guard.release())
    }

    fn may_outlive_release(&self) -> bool {
        self.mutex.is_none()
    }

    fn monitor(&self) -> Option<NodeMonitor> {
        Some(self.guard.hold().monitor())
    }

    fn txn(&self) -> Option<Txn<'_>> {
        Some(self.guard.hold().txn())
    }
}
