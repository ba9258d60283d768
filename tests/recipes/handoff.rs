//! Recipes that keep their nodes (`with_handoff`): mutexes, permits and readers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use lockkeeper::config::HandOffPolicy;
use lockkeeper::locks::ZooKeeperLock;
use lockkeeper::{
    ConnectionManager, Error, Hold, Lease, Mutex, MutexGuard, ReadGuard, ReleaseError, RwLock, Semaphore, Txn,
};
use lockkeeper_core::{HoldExt, NodeMonitor};

use crate::mutex::{Plain, acquire, granted};
use crate::rw_lock::{Writing, read};
use crate::semaphore::{LIMIT, Permits, permits_of};
use crate::{AcquireMode, Adapter, AnyAdapter, Claim, Grant, Granted, Share, Taking, Target};

/// The locks that the tasks of one process share, by path: they hand their nodes off to each other.
#[derive(Clone, Debug, Default)]
pub struct SharedLocks(Arc<BTreeMap<String, SharedLock>>);

/// What is shared at one path. Those that are not used there send nothing.
#[derive(Clone, Debug)]
pub struct SharedLock {
    mutex: Mutex,
    permits: Semaphore,
    readers: RwLock,
}

impl FromIterator<(String, SharedLock)> for SharedLocks {
    fn from_iter<I: IntoIterator<Item = (String, SharedLock)>>(locks: I) -> Self {
        Self(Arc::new(locks.into_iter().collect()))
    }
}

impl SharedLocks {
    fn at(&self, path: &str) -> Option<&SharedLock> {
        self.0.get(path)
    }
}

impl SharedLock {
    /// The locks at `path`, which keep their nodes by this policy.
    ///
    /// # Errors
    ///
    /// As the constructors.
    pub fn new(manager: &ConnectionManager, path: &str, policy: HandOffPolicy) -> Result<Self, Error> {
        Ok(Self {
            mutex: Mutex::new(manager, path)?.with_handoff(policy)?,
            permits: Semaphore::new(manager, path, LIMIT)?.with_handoff(policy)?,
            readers: RwLock::new(manager, path)?.with_handoff(policy)?,
        })
    }

    /// Those of the process; without them, its own.
    fn of(target: &Target) -> Result<Self, Error> {
        if let Some(shared) = target.shared.at(&target.path) {
            return Ok(shared.clone());
        }
        let policy = HandOffPolicy::default().idle_time(Duration::from_millis(300));
        Self::new(&target.manager, &target.path, policy)
    }
}

/// The mutex that the tasks of the process share. Without one, a mutex of its own: an acquire without a limit
/// takes and releases it first, so that it gets the idle node.
#[derive(Clone, Copy, Debug)]
pub struct Keeping;

impl Adapter for Keeping {
    fn take(&self, target: Target, mode: AcquireMode) -> Taking {
        Box::pin(async move {
            if let Some(SharedLock { mutex, .. }) = target.shared.at(&target.path) {
                let guard = acquire(mutex, mode).await?;
                return Ok(guard.map(|guard| Box::new(HandOffGrant { guard, mutex: None }) as Granted));
            }
            let SharedLock { mutex, .. } = SharedLock::of(&target)?;
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
        Ok(Some(Box::new(SharedLock::of(&target)?.mutex)))
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

/// A permit of the semaphore that the tasks of the process share.
#[derive(Clone, Copy, Debug)]
pub struct KeepingPermits;

impl Adapter for KeepingPermits {
    fn take(&self, target: Target, mode: AcquireMode) -> Taking {
        Box::pin(async move {
            let SharedLock { permits, .. } = SharedLock::of(&target)?;
            let lease = permits_of(&permits, 1, mode).await?;
            Ok(lease.map(|lease| Box::new(LentPermit { lease, semaphore: permits }) as Granted))
        })
    }

    fn as_lock(&self, target: Target) -> Result<Option<Box<dyn ZooKeeperLock>>, Error> {
        Ok(Some(Box::new(SharedLock::of(&target)?.permits.permits(1))))
    }

    fn exclusion(&self) -> Option<AnyAdapter> {
        Some(&Permits(Some(LIMIT)))
    }

    fn waits_for_task(&self) -> bool {
        true
    }
}

/// A lease, and the semaphore by which its node is kept.
#[derive(Debug)]
struct LentPermit {
    lease: Lease,
    semaphore: Semaphore,
}

impl Grant for LentPermit {
    fn holds(&self) -> Vec<&Hold> {
        vec![self.lease.hold()]
    }

    fn claims(&self) -> Vec<Claim> {
        vec![Claim::of(self.lease.hold(), Share::Permits { permits: 1, limit: LIMIT })]
    }

    fn release(self: Box<Self>) -> BoxFuture<'static, Result<(), ReleaseError>> {
        let Self { lease, semaphore } = *self;
        // Without a handle of the process, this was the last one: the node is not kept.
        drop(semaphore);
        Box::pin(lease.release())
    }

    fn may_outlive_release(&self) -> bool {
        true
    }

    fn monitor(&self) -> Option<NodeMonitor> {
        Some(self.lease.hold().monitor())
    }
}

/// A reader that joins the readers of its process.
#[derive(Clone, Copy, Debug)]
pub struct Joining;

impl Adapter for Joining {
    fn take(&self, target: Target, mode: AcquireMode) -> Taking {
        Box::pin(async move {
            let SharedLock { readers, .. } = SharedLock::of(&target)?;
            granted(read(&readers, mode).await.map(|guard| guard.map(|guard| Joined { guard, readers })))
        })
    }

    fn as_lock(&self, target: Target) -> Result<Option<Box<dyn ZooKeeperLock>>, Error> {
        Ok(Some(Box::new(SharedLock::of(&target)?.readers.reader())))
    }

    fn exclusion(&self) -> Option<AnyAdapter> {
        Some(&Writing)
    }
}

/// A read guard, and the lock by which its node is kept.
#[derive(Debug)]
struct Joined {
    guard: ReadGuard,
    readers: RwLock,
}

impl Grant for Joined {
    fn holds(&self) -> Vec<&Hold> {
        vec![self.guard.hold()]
    }

    fn claims(&self) -> Vec<Claim> {
        vec![Claim::of(self.guard.hold(), Share::Shared)]
    }

    fn release(self: Box<Self>) -> BoxFuture<'static, Result<(), ReleaseError>> {
        let Self { guard, readers } = *self;
        drop(readers);
        Box::pin(guard.release())
    }

    fn may_outlive_release(&self) -> bool {
        true
    }

    fn monitor(&self) -> Option<NodeMonitor> {
        Some(self.guard.hold().monitor())
    }
}
