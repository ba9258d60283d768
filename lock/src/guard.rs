use std::any::Any;
use std::fmt::Debug;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

use futures::future::BoxFuture;

use crate::boot::BootInstant;
use crate::error::LockError;
use crate::fencing_token::FencingToken;

/// The guard of an engine, as an object. For authors of engines: users have [`LockGuard`].
///
/// A drop releases the lock in the background.
pub trait HeldLock: Any + Debug + Send + Sync {
    /// Fails if the lock is lost. Reads the clock, and sends nothing.
    ///
    /// # Errors
    ///
    /// The loss, of kind [`Lost`](crate::ErrorKind::Lost).
    fn check(&self) -> Result<(), LockError>;

    /// The instant until which the lock is valid, as far as is known now.
    fn valid_until(&self) -> BootInstant;

    /// The fencing token of the grant.
    fn fencing_token(&self) -> FencingToken;

    /// Resolves when the lock is lost.
    fn lost(&self) -> BoxFuture<'_, LockError>;

    /// Releases the lock, and waits until the server has done so.
    ///
    /// # Errors
    ///
    /// The reason why the release is not confirmed as that of a valid hold.
    fn release(self: Box<Self>) -> BoxFuture<'static, Result<(), LockError>>;
}

/// A [`HeldLock`] that can be told by its type. The oldest Rust makes no `dyn Any` of a `dyn HeldLock`.
trait TypedLock: HeldLock {
    fn as_any(&self) -> &dyn Any;
}

impl<G: HeldLock> TypedLock for G {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// A held [`Lock`](crate::Lock) of any engine.
///
/// A drop of the guard releases the lock in the background.
#[derive(Debug)]
#[must_use = "a guard that is not kept releases at once"]
#[clippy::has_significant_drop]
pub struct LockGuard(Box<dyn TypedLock>);

impl LockGuard {
    /// Makes a guard of an engine's own guard.
    pub fn new(held: impl HeldLock) -> Self {
        Self(Box::new(held))
    }

    /// The engine's own guard, if it is of this type: for what one engine alone has. That of every
    /// lock of `lockkeeper` is a `MultiLockGuard`, which has transactions.
    #[must_use]
    pub fn engine<G: HeldLock>(&self) -> Option<&G> {
        self.0.as_any().downcast_ref()
    }

    /// Whether the server cannot have granted the lock to another contender yet. Costs no request.
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
    /// The loss, of kind [`Lost`](crate::ErrorKind::Lost).
    pub fn check(&self) -> Result<(), LockError> {
        self.0.check()
    }

    /// The instant until which the server cannot grant the lock to another contender, as far as is known now.
    /// It becomes later while the server confirms the lock. It is in the past once the lock is lost.
    #[must_use]
    pub fn valid_until(&self) -> BootInstant {
        self.0.valid_until()
    }

    /// The fencing token of the lock: see [`FencingToken`].
    #[must_use]
    pub fn fencing_token(&self) -> FencingToken {
        self.0.fencing_token()
    }

    /// Resolves when the lock is lost: in a running process, before the server can grant it to another
    /// contender.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: a later call resolves with the same loss.
    pub async fn lost(&self) -> LockError {
        self.0.lost().await
    }

    /// Runs `work` as long as the lock is valid. It is checked before each poll: once it is lost, `work` is
    /// dropped.
    ///
    /// # Errors
    ///
    /// The loss, if the lock was lost before `work` was done. The effects of `work` until then remain: give
    /// its writes the fencing token.
    ///
    /// # Cancel safety
    ///
    /// A drop of the future drops `work`. The guard stays.
    pub async fn run<F: Future>(&self, work: F) -> Result<F::Output, LockError> {
        let mut lost = self.0.lost();
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

    /// Releases the lock, and waits until the server has done so.
    ///
    /// # Errors
    ///
    /// Of kind [`Lost`](crate::ErrorKind::Lost) if the lock was lost before, and
    /// [`Unreleased`](crate::ErrorKind::Unreleased) if no answer confirms the release. The engine continues
    /// the release then.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the release continues in the background.
    pub async fn release(self) -> Result<(), LockError> {
        self.0.release().await
    }
}
