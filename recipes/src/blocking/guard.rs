use std::future::Future;
use std::ops::Deref;
use std::time::Duration;

use lockkeeper_core::{BootInstant, FencingToken, Hold, Lost, ReleaseError};

use super::runtime_thread::RuntimeThread;
use super::txn::Txn;

/// A held lock, for threads: [`MutexGuard`](super::MutexGuard), [`ReadGuard`](super::ReadGuard),
/// [`WriteGuard`](super::WriteGuard), [`Lease`](super::Lease) and [`ReentrantMutexGuard`](super::ReentrantMutexGuard) are
/// this.
///
/// Dropping it releases the lock in the background, on the manager's thread.
#[derive(Debug)]
#[must_use = "a guard that is not kept releases the lock at once"]
#[clippy::has_significant_drop]
pub struct Guard<G> {
    // Dropped in this order.
    inner: G,
    thread: RuntimeThread,
}

/// What every guard of the async face is.
pub trait Releasable: Deref<Target = Hold> {
    /// Releases it.
    fn give_back(self) -> impl Future<Output = Result<(), ReleaseError>>;
}

impl<G> Guard<G> {
    pub(super) fn new(inner: G, thread: &RuntimeThread) -> Self {
        Self { inner, thread: thread.clone() }
    }

    pub(super) fn inner(&self) -> &G {
        &self.inner
    }

    pub(super) fn thread(&self) -> &RuntimeThread {
        &self.thread
    }

    pub(super) fn into_parts(self) -> (G, RuntimeThread) {
        (self.inner, self.thread)
    }
}

impl<G: Releasable> Guard<G> {
    /// The token to fence writes with, see [`Hold::fencing_token`].
    #[must_use]
    pub fn fencing_token(&self) -> FencingToken {
        self.inner.fencing_token()
    }

    /// Whether the server cannot have given the lock to anyone else yet. Costs no request; reads the clock at each call.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.inner.is_valid()
    }

    /// As [`is_valid`](Self::is_valid), and says why not.
    ///
    /// # Errors
    ///
    /// [`Lost`] once the lock is lost.
    pub fn check(&self) -> Result<(), Lost> {
        self.inner.check()
    }

    /// The instant until which the server cannot have given the lock to anyone else, as far as is known now.
    #[must_use]
    pub fn valid_until(&self) -> BootInstant {
        self.inner.valid_until()
    }

    /// Waits for at most `timeout` until the lock is lost; `None` when it was not. In a running process it is told before the
    /// server can give the lock to anyone else.
    ///
    /// Works also within an async task, whose thread it blocks for so long. On the manager's own thread it only looks.
    #[must_use]
    pub fn wait_lost(&self, timeout: Duration) -> Option<Lost> {
        let lost = async { tokio::time::timeout(timeout, self.inner.lost()).await.ok() };
        self.thread.block_always(lost).unwrap_or_else(|| self.inner.check().err())
    }

    /// Writes that are committed only if the lock's node still exists: exact, whatever the clocks do.
    pub fn txn(&self) -> Txn<'_> {
        Txn::new(self.inner.txn(), &self.thread)
    }

    /// The async hold inside, for [`ConnectionManager::block_on`](super::ConnectionManager::block_on).
    pub fn as_hold(&self) -> &Hold {
        &self.inner
    }

    /// Releases the lock and waits until the server has done so; of a reentrant one, once its last guard is given back.
    ///
    /// Works also within an async task.
    ///
    /// # Errors
    ///
    /// As [`Hold::release`].
    pub fn release(self) -> Result<(), ReleaseError> {
        let path = self.inner.path().to_owned();
        let (inner, thread) = self.into_parts();
        thread.block_always(inner.give_back()).unwrap_or_else(|| {
            let cause = lockkeeper_core::ConfigError::CannotBlock.to_string();
            Err(ReleaseError::Unconfirmed { path, cause })
        })
    }
}
