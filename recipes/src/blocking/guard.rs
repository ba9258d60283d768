use std::marker::PhantomData;
use std::time::Duration;

use lockkeeper_core::{BootInstant, FencingToken, Hold, Lost, ReleaseError, ZnodePath};

use super::error::CannotBlock;
use super::runtime_thread::RuntimeThread;
use super::txn::Txn;
use crate::lock::ReleaseErrors;
use crate::lock::{HoldSet, Members, SingleHold};

/// A held lock, or several held together, for threads: see the async [`Guard`](crate::Guard).
/// [`MutexGuard`](super::MutexGuard), [`ReentrantMutexGuard`](super::ReentrantMutexGuard),
/// [`ReadGuard`](super::ReadGuard), [`WriteGuard`](super::WriteGuard), [`Lease`](super::Lease),
/// [`Leadership`](super::Leadership) and [`MultiLockGuard`](super::MultiLockGuard) are guards.
///
/// A drop of the guard releases in the background, on the manager's thread.
#[derive(Debug)]
#[must_use = "a guard that is not kept releases at once"]
#[clippy::has_significant_drop]
pub struct Guard<H, Bound = ()> {
    // Dropped in this order.
    pub(super) inner: crate::Guard<H>,
    pub(super) thread: RuntimeThread,
    bound: PhantomData<Bound>,
}

/// A held [`ZooKeeperLock`](super::ZooKeeperLock), or several held together, for threads.
///
/// Several locks are valid only together: if one is lost, the guard is lost.
///
/// # Methods
///
/// Those of every [`Guard`], and [`paths`](Self::paths), [`members`](Self::members) and
/// [`fencing_tokens`](Self::fencing_tokens).
pub type MultiLockGuard = Guard<Members>;

impl<H, Bound> Guard<H, Bound> {
    pub(super) fn new(inner: crate::Guard<H>, thread: &RuntimeThread) -> Self {
        Self { inner, thread: thread.clone(), bound: PhantomData }
    }
}

impl<H: HoldSet, Bound> Guard<H, Bound> {
    /// Whether the server cannot have granted any of the locks to another contender yet. Costs no request.
    ///
    /// It reads the clock at each call: after a pause that was too long, the first call returns false.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.inner.is_valid()
    }

    /// As [`is_valid`](Self::is_valid), with the reason of the loss.
    ///
    /// # Errors
    ///
    /// [`Lost`], for the first lock that is lost.
    pub fn check(&self) -> Result<(), Lost> {
        self.inner.check()
    }

    /// The instant until which the server cannot grant any of the locks to another contender, as far as is
    /// known now: see [`Guard::valid_until`](crate::Guard::valid_until).
    #[must_use]
    pub fn valid_until(&self) -> BootInstant {
        self.inner.valid_until()
    }

    /// Waits for at most `timeout` until the first lock is lost. Returns `None` if none is lost by then. In a
    /// running process it returns before the server can grant the lock to another contender.
    ///
    /// It works also within an async task, and blocks the thread of that task. On the manager's own thread it
    /// does not wait.
    #[must_use]
    pub fn wait_lost(&self, timeout: Duration) -> Option<Lost> {
        let lost = async { tokio::time::timeout(timeout, self.inner.lost()).await.ok() };
        self.thread.block_always(lost).unwrap_or_else(|| self.inner.check().err())
    }

    /// Starts writes that are committed only if all nodes of this guard still exist. This is exact: no clock
    /// is involved.
    pub fn txn(&self) -> Txn<'_> {
        Txn::new(self.inner.txn(), &self.thread)
    }
}

impl<H: SingleHold, Bound> Guard<H, Bound> {
    /// The fencing token of the lock: see [`FencingToken`].
    #[must_use]
    pub fn fencing_token(&self) -> FencingToken {
        self.inner.fencing_token()
    }

    /// The path of the guard's node, below the manager's chroot. For several nodes, the first path.
    #[must_use]
    pub fn path(&self) -> &ZnodePath {
        self.inner.path()
    }

    /// The hold of the lock, for a [`call`](super::ConnectionManager::call).
    pub fn hold(&self) -> &Hold {
        self.inner.hold()
    }

    /// Releases the lock, and waits until the server has deleted the node. If other guards share the hold,
    /// only the last one releases it. It works also within an async task.
    ///
    /// # Errors
    ///
    /// As [`Guard::release`](crate::Guard::release).
    pub fn release(self) -> Result<(), ReleaseError> {
        let unconfirmed = unconfirmed(self.hold());
        let Self { inner, thread, .. } = self;
        thread.block_always(inner.release()).unwrap_or(Err(unconfirmed))
    }
}

impl MultiLockGuard {
    /// The paths of the held locks, in order.
    pub fn paths(&self) -> impl Iterator<Item = &ZnodePath> {
        self.inner.paths()
    }

    /// The hold of each lock, with the lock's path, in order.
    pub fn members(&self) -> impl Iterator<Item = (&ZnodePath, &Hold)> {
        self.inner.members()
    }

    /// The fencing token of each lock, in the order of [`paths`](Self::paths).
    pub fn fencing_tokens(&self) -> impl Iterator<Item = (&ZnodePath, FencingToken)> {
        self.inner.fencing_tokens()
    }

    /// The fencing token of the lock at this path, if this guard holds it.
    #[must_use]
    pub fn fencing_token(&self, path: impl AsRef<str>) -> Option<FencingToken> {
        self.inner.fencing_token(path)
    }

    /// Releases all locks by one transaction, and waits until the server has committed it. It works also
    /// within an async task.
    ///
    /// # Errors
    ///
    /// As [`MultiLockGuard::release`](crate::MultiLockGuard::release).
    pub fn release(self) -> Result<(), ReleaseErrors> {
        let Self { inner, thread, .. } = self;
        let unconfirmed = ReleaseErrors::of(inner.members().map(|(_, hold)| unconfirmed(hold)));
        thread.block_always(inner.release()).unwrap_or_else(|| unconfirmed.map_or(Ok(()), Err))
    }
}

/// The result of a release on a thread that must not wait. The release continues in the background.
fn unconfirmed(hold: &Hold) -> ReleaseError {
    ReleaseError::Unconfirmed { path: hold.whole_path(), cause: CannotBlock.to_string() }
}
