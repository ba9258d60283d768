use std::fmt::Debug;
use std::time::Duration;

use futures::future::BoxFuture;

use crate::deadline::Deadline;
use crate::error::LockError;
use crate::guard::LockGuard;

/// Any lock of any engine, for code that does not depend on where the lock is kept.
///
/// The trait is object-safe. The types of the engines have more methods; their methods of the same names
/// return guards with more methods. What a lock promises is what its engine promises: see
/// `docs/failure-model.md`.
///
/// The futures borrow nothing: they can be spawned, or kept in a struct.
///
/// # Examples
///
/// ```
/// use lockkeeper_lock::{Lock, LockError};
///
/// async fn once(lock: &dyn Lock) -> Result<(), LockError> {
///     let guard = lock.acquire().await?;
///     guard.run(async { println!("{} is held", lock.name()) }).await?;
///     guard.release().await
/// }
/// # let _ = once;
/// ```
pub trait Lock: Debug + Send + Sync {
    /// The name of the lock for its engine: a path in ZooKeeper, a key in Redis.
    fn name(&self) -> &str;

    /// Waits for the lock until `deadline`. For authors of engines: callers use the methods below.
    ///
    /// # Errors
    ///
    /// An error of kind [`Timeout`](crate::ErrorKind::Timeout) if the deadline passed. Otherwise as the
    /// type's own `acquire`.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe at every await: the position in the queue is lost, and nothing is left behind.
    fn acquire_by(&self, deadline: Deadline) -> BoxFuture<'static, Result<LockGuard, LockError>>;

    /// Takes the lock if it is free now. Otherwise returns `None`.
    ///
    /// # Errors
    ///
    /// As the type's own `try_acquire`.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: nothing is left behind.
    fn try_acquire(&self) -> BoxFuture<'static, Result<Option<LockGuard>, LockError>>;

    /// Waits for the lock, without a limit of time.
    ///
    /// # Errors
    ///
    /// As the type's own `acquire`.
    ///
    /// # Cancel safety
    ///
    /// As [`acquire_by`](Self::acquire_by).
    fn acquire(&self) -> BoxFuture<'static, Result<LockGuard, LockError>> {
        self.acquire_by(Deadline::never())
    }

    /// Waits for the lock, for at most `timeout`.
    ///
    /// # Errors
    ///
    /// As [`acquire_by`](Self::acquire_by).
    ///
    /// # Cancel safety
    ///
    /// As [`acquire_by`](Self::acquire_by).
    fn acquire_timeout(&self, timeout: Duration) -> BoxFuture<'static, Result<LockGuard, LockError>> {
        self.acquire_by(Deadline::after(timeout))
    }
}
