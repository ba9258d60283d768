use std::fmt::Debug;
use std::sync::Arc;

use futures::future::BoxFuture;
use lockkeeper_core::{ConnectionManager, Deadline, Error, Hold, LockQueue, ZnodePath};

use super::guard::MemberGuard;
use super::lock_guard::LockGuard;
use crate::inspection::Inspection;
use crate::owner::{Owner, OwnerId};

/// What seals [`Lock`](super::Lock): it can be had only here.
#[derive(Debug)]
pub struct Sealed<'a>(pub(crate) &'a dyn Recipe);

/// What every recipe is to the code that takes several of them.
pub(crate) trait Recipe: Debug + Send + Sync {
    /// The whole path of the lock.
    fn path(&self) -> &ZnodePath;
    /// A handle of its own.
    fn shared(&self) -> Arc<dyn Recipe>;
    /// The manager it works through.
    fn manager(&self) -> &ConnectionManager;
    /// Refuses what can never be had, before anything is sent.
    fn check(&self) -> Result<(), Error> {
        Ok(())
    }
    /// Waits for the lock.
    fn acquire(&self, deadline: Deadline) -> BoxFuture<'_, Result<LockGuard, Error>>;
    /// Takes the lock if it is free.
    fn try_acquire(&self) -> BoxFuture<'_, Result<Option<LockGuard>, Error>>;
    /// The lines in which its holds stand: a first, and others.
    fn queues(&self) -> (LockQueue, Vec<LockQueue>);
    /// Who holds and waits; one for each, of several.
    fn inspect(&self) -> BoxFuture<'_, Result<Vec<Inspection>, Error>>;
    /// What of the lock is asked for, and for whom. `None` where it cannot be one of several.
    fn request(&self) -> Option<LockRequest>;
    /// On whose behalf.
    fn owner(&self) -> Option<Owner>;
    /// One contender for what this one and another of the same path ask for together, if there can be one.
    fn merged_with(&self, other: LockRequest) -> Option<Arc<dyn Recipe>>;
    /// The way in, for those who take places in several lines at once; `None` when the way is not free in this
    /// process, or not needed.
    fn batch_entry(&self) -> Option<Box<dyn BatchEntry>>;
}

/// What of a lock is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LockRequest {
    /// All of it.
    Mutex,
    /// All of it, in the layout of a semaphore.
    MutexBySemaphore,
    /// All of it, for an owner who may have it already.
    Reentrant(OwnerId),
    /// To read.
    Read(Option<OwnerId>),
    /// To write.
    Write(Option<OwnerId>),
    /// So many permits.
    Permits(usize),
}

/// A way into one line, kept open.
pub(crate) trait BatchEntry: Send {
    /// The line.
    fn queue(&self) -> LockQueue;
    /// Makes a guard of the hold of that line. `None` when that is not enough, and more cannot be had at once: only a
    /// deadline lets it wait.
    fn enter(
        self: Box<Self>,
        hold: Hold,
        wait: Option<Deadline>,
    ) -> BoxFuture<'static, Result<Entered, Error>>;
}

/// What came of entering.
pub(crate) type Entered = Option<MemberGuard>;
