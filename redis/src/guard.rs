use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

use futures::future::BoxFuture;
use lockkeeper_lock::{BootInstant, FencingToken, HeldLock, LockError};

use crate::error::{Error, Lost, ReleaseError};
use crate::hold::Hold;

/// A held lock. [`MutexGuard`](crate::MutexGuard), [`ReentrantMutexGuard`](crate::ReentrantMutexGuard) and
/// [`Lease`](crate::Lease) are guards.
///
/// A drop of the guard releases in the background. A guard that is leaked ([`std::mem::forget`]) blocks the
/// lock until the process ends.
#[derive(Debug)]
#[must_use = "a guard that is not kept releases at once"]
#[clippy::has_significant_drop]
pub struct Guard<H> {
    pub(crate) held: H,
}

/// The hold that a guard keeps, or has a share of.
pub trait Held: std::fmt::Debug + Send + Sync {
    /// The hold.
    #[doc(hidden)]
    fn hold(&self) -> HoldRef<'_>;

    /// Ends the guard in this process. Returns the hold if no other guard needs it.
    #[doc(hidden)]
    fn into_hold(self) -> OwnedHold;
}

/// A hold, which only this crate can use.
#[derive(Debug)]
pub struct HoldRef<'a>(pub(crate) &'a Hold);

/// A hold to release, if the guard was its last one. Only this crate can use it.
#[derive(Debug)]
pub struct OwnedHold(pub(crate) Option<Hold>);

impl<H: Held> Guard<H> {
    pub(crate) fn of(held: H) -> Self {
        Self { held }
    }

    fn hold(&self) -> &Hold {
        self.held.hold().0
    }

    /// The name of the lock: its key.
    #[must_use]
    pub fn name(&self) -> &str {
        self.hold().name()
    }

    /// Whether the server cannot have granted the lock to another contender yet, if it keeps its data. Costs
    /// no request.
    ///
    /// It reads the clock at each call: after a pause that was too long, the first call returns false.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.check().is_ok()
    }

    /// As [`is_valid`](Self::is_valid), with the reason of the loss.
    ///
    /// # Errors
    ///
    /// [`Lost`].
    pub fn check(&self) -> Result<(), Lost> {
        self.hold().check()
    }

    /// The instant until which the server cannot grant the lock to another contender, as far as is known now.
    /// It becomes later with each renewal, every third of the lease. It is in the past once the lock is lost.
    #[must_use]
    pub fn valid_until(&self) -> BootInstant {
        self.hold().valid_until()
    }

    /// The fencing token of the lock: see [`FencingToken`].
    #[must_use]
    pub fn fencing_token(&self) -> FencingToken {
        self.hold().fencing_token()
    }

    /// Resolves when the lock is lost: in a running process, before the server grants it to another
    /// contender, if it keeps its data.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: a later call resolves with the same loss.
    pub async fn lost(&self) -> Lost {
        self.hold().lost().await
    }

    /// Runs `work` as long as the lock is valid. It is checked before each poll: once it is lost, `work` is
    /// dropped.
    ///
    /// # Errors
    ///
    /// [`Lost`] if the lock was lost before `work` was done. The effects of `work` until then remain: give
    /// its writes the fencing token.
    ///
    /// # Cancel safety
    ///
    /// A drop of the future drops `work`. The guard stays.
    pub async fn run<F: Future>(&self, work: F) -> Result<F::Output, Lost> {
        let mut lost = pin!(self.lost());
        let mut work = pin!(work);
        poll_fn(|context| {
            if let Err(lost) = self.check() {
                return Poll::Ready(Err(lost));
            }
            match lost.as_mut().poll(context) {
                Poll::Ready(lost) => Poll::Ready(Err(lost)),
                Poll::Pending => work.as_mut().poll(context).map(Ok),
            }
        })
        .await
    }

    /// Releases the lock, and waits until the server has done so. If other guards share the hold, only the
    /// last one releases it.
    ///
    /// # Errors
    ///
    /// [`ReleaseError::Lost`] if the lock was lost before. [`ReleaseError::Unconfirmed`] if no answer
    /// confirms the release within the operation timeout; the manager keeps trying, and the lease ends by
    /// itself.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the release continues in the background.
    pub async fn release(self) -> Result<(), ReleaseError> {
        let checked = self.check().map_err(ReleaseError::Lost);
        match self.held.into_hold().0 {
            Some(hold) => hold.release().await,
            None => checked,
        }
    }
}

impl<H: Held + 'static> HeldLock for Guard<H> {
    fn check(&self) -> Result<(), LockError> {
        Ok(self.check().map_err(Error::from)?)
    }

    fn valid_until(&self) -> BootInstant {
        self.valid_until()
    }

    fn fencing_token(&self) -> FencingToken {
        self.fencing_token()
    }

    fn lost(&self) -> BoxFuture<'_, LockError> {
        Box::pin(async { Error::from(self.lost().await).into() })
    }

    fn release(self: Box<Self>) -> BoxFuture<'static, Result<(), LockError>> {
        Box::pin(async { Ok((*self).release().await.map_err(Error::from)?) })
    }
}
