use std::time::Duration;

use lockkeeper_core::{BootInstant, ConfigError, FencingToken, Hold, Lost, ReleaseError, ZnodePath};

use super::runtime_thread::RuntimeThread;
use super::txn::Txn;
use crate::ReleaseErrors;

/// A held [`Lock`](super::Lock), or several held together, for threads.
///
/// Several are valid only together: when one is lost, the guard is. Dropping it releases everything in the background.
#[derive(Debug)]
#[must_use = "a guard that is not kept releases at once"]
#[clippy::has_significant_drop]
pub struct LockGuard {
    // Dropped in this order.
    inner: crate::LockGuard,
    thread: RuntimeThread,
}

impl LockGuard {
    pub(super) fn new(inner: crate::LockGuard, thread: &RuntimeThread) -> Self {
        Self { inner, thread: thread.clone() }
    }

    /// The paths of what is held, in order.
    pub fn paths(&self) -> impl Iterator<Item = &ZnodePath> {
        self.inner.paths()
    }

    /// The async hold of each, with the lock's path, in order.
    pub fn members(&self) -> impl Iterator<Item = (&ZnodePath, &Hold)> {
        self.inner.members()
    }

    /// The fencing token of each, in the order of [`paths`](Self::paths).
    pub fn fencing_tokens(&self) -> impl Iterator<Item = (&ZnodePath, FencingToken)> {
        self.inner.fencing_tokens()
    }

    /// The fencing token of the lock at this whole path, if it is held here.
    #[must_use]
    pub fn fencing_token(&self, path: &ZnodePath) -> Option<FencingToken> {
        self.inner.fencing_token(path)
    }

    /// Whether the server cannot have given any of it to anyone else yet. Costs no request; reads the clock at each call.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.inner.is_valid()
    }

    /// As [`is_valid`](Self::is_valid), and says why not.
    ///
    /// # Errors
    ///
    /// [`Lost`] of the first that is lost.
    pub fn check(&self) -> Result<(), Lost> {
        self.inner.check()
    }

    /// The instant until which the server cannot have given any of it to anyone else, as far as is known now.
    #[must_use]
    pub fn valid_until(&self) -> BootInstant {
        self.inner.valid_until()
    }

    /// Waits for at most `timeout` until the first of them is lost; `None` when none was. See
    /// [`Guard::wait_lost`](super::Guard::wait_lost).
    #[must_use]
    pub fn wait_lost(&self, timeout: Duration) -> Option<Lost> {
        let lost = async { tokio::time::timeout(timeout, self.inner.lost()).await.ok() };
        self.thread.block_always(lost).unwrap_or_else(|| self.inner.check().err())
    }

    /// Writes that are committed only if everything held here still stands.
    pub fn txn(&self) -> Txn<'_> {
        Txn::new(self.inner.txn(), &self.thread)
    }

    /// Gives everything back in one transaction, and waits until the server has done so. Works also within an async task.
    ///
    /// # Errors
    ///
    /// As [`LockGuard::release`](crate::LockGuard::release).
    pub fn release(self) -> Result<(), ReleaseErrors> {
        let Self { inner, thread } = self;
        let unconfirmed = |(_, hold): (&ZnodePath, &Hold)| ReleaseError::Unconfirmed {
            path: hold.path().to_owned(),
            cause: ConfigError::CannotBlock.to_string(),
        };
        let unconfirmed = ReleaseErrors::of(inner.members().map(unconfirmed).collect());
        thread.block_always(inner.release()).unwrap_or(Err(unconfirmed))
    }
}
