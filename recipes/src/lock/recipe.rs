use std::fmt::Debug;
use std::sync::Arc;

use futures::future::BoxFuture;
use lockkeeper_core::{ConnectionManager, Deadline, Error, Hold, LockQueue, ZnodePath};

use super::guard::MemberGuard;
use super::multi_lock_guard::MultiLockGuard;
use crate::inspection::Inspection;
use crate::owner::{Owner, OwnerId};

/// The seal of [`ZooKeeperLock`](super::ZooKeeperLock): only this crate can make one.
#[derive(Debug)]
pub struct Sealed<'a>(pub(crate) &'a dyn Recipe);

/// A recipe, for the code that acquires several of them.
pub(crate) trait Recipe: Debug + Send + Sync {
    /// The path of the lock, below the manager's chroot.
    fn path(&self) -> &ZnodePath;
    /// Another handle of the same lock.
    fn shared(&self) -> Arc<dyn Recipe>;
    /// The connection manager of the lock.
    fn manager(&self) -> &ConnectionManager;
    /// Refuses a request that can never be granted, before anything is sent.
    fn check(&self) -> Result<(), Error> {
        Ok(())
    }
    /// Waits for the lock.
    fn acquire(&self, deadline: Deadline) -> BoxFuture<'_, Result<MultiLockGuard, Error>>;
    /// Takes the lock if it is free.
    fn try_acquire(&self) -> BoxFuture<'_, Result<Option<MultiLockGuard>, Error>>;
    /// The queues of its holds: the first one, and the others.
    fn queues(&self) -> (LockQueue, Vec<LockQueue>);
    /// The holders and the waiters: one inspection for each of several locks.
    fn inspect(&self) -> BoxFuture<'_, Result<Vec<Inspection>, Error>>;
    /// The part of the lock that is asked for, and its owner. `None` if the lock cannot be a member of
    /// several.
    fn request(&self) -> Option<LockRequest> {
        None
    }
    /// The owner of the acquire.
    fn owner(&self) -> Option<Owner> {
        None
    }
    /// One lock for this request and another request of the same path, if one contender can have both.
    fn merged_with(&self, _other: LockRequest) -> Option<Arc<dyn Recipe>> {
        None
    }
    /// The entry of this lock in a batch. `None` if the owner holds the lock, or acquires it in another task.
    fn batch_entry(&self) -> Option<Box<dyn BatchEntry>> {
        None
    }
}

/// The part of a lock that is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LockRequest {
    /// The whole lock.
    Mutex,
    /// The whole lock, in the layout of a semaphore.
    MutexBySemaphore,
    /// The whole lock, for an owner that may hold it already.
    Reentrant(OwnerId),
    /// The side to read.
    Read(Option<OwnerId>),
    /// The side to write.
    Write(Option<OwnerId>),
    /// A number of permits.
    Permits(u32),
}

/// A lock that is acquired in a batch with others: it enters its queue by the same transaction.
pub(crate) trait BatchEntry: Send {
    /// The queue to enter. A contender that may wait names in its node what its owner holds.
    fn queue(&self, deadline: Deadline) -> LockQueue;
    /// Makes a guard of a hold of that queue. `None` if the lock needs more, and cannot get it at once. It
    /// waits only if there is a deadline.
    fn enter(
        self: Box<Self>,
        hold: Hold,
        wait: Option<Deadline>,
    ) -> BoxFuture<'static, Result<Entered, Error>>;
}

/// The result of [`BatchEntry::enter`].
pub(crate) type Entered = Option<MemberGuard>;
