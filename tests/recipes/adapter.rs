use std::fmt::Debug;
use std::future::ready;
use std::time::Duration;

use futures::future::BoxFuture;
use lockkeeper::Error;
use lockkeeper::locks::ZooKeeperLock;

use crate::{Granted, Target};

/// An acquire. `None` if the lock was not free.
pub type Taking = BoxFuture<'static, Result<Option<Granted>, Error>>;

/// Is told the token of each holder that an observer sees.
pub type Seen = Box<dyn FnMut(u64) + Send>;

/// Any adapter, by which a ring names what it takes.
pub type AnyAdapter = &'static dyn Adapter;

/// One way to take one recipe.
pub trait Adapter: Debug + Send + Sync + 'static {
    /// Takes it. `None` if it was not free: only for a [try](AcquireMode::Try), or if a further step of this
    /// way could not be done in time.
    fn take(&self, target: Target, mode: AcquireMode) -> Taking;

    /// The same as a [`ZooKeeperLock`]. `None` if this way has no such type.
    ///
    /// # Errors
    ///
    /// As the recipe's constructor.
    fn as_lock(&self, target: Target) -> Result<Option<Box<dyn ZooKeeperLock>>, Error> {
        drop(target);
        Ok(None)
    }

    /// Creates what must exist before the first acquire.
    fn prepare(&self, target: Target) -> BoxFuture<'static, Result<(), Error>> {
        drop(target);
        Box::pin(ready(Ok(())))
    }

    /// What excludes every grant of this adapter, and waits for all of them. `None` if the adapter excludes
    /// itself.
    fn exclusion(&self) -> Option<AnyAdapter> {
        None
    }

    /// The number of watches that a waiter has once it sleeps: on what is in its way, and on its own node.
    fn watches(&self) -> usize {
        2
    }

    /// Whether a task of the process makes its nodes, and an acquire waits for that task alone.
    fn waits_for_task(&self) -> bool {
        false
    }

    /// Whether a transaction creates its nodes, instead of a create of one node.
    fn creates_by_transaction(&self) -> bool {
        false
    }

    /// Follows the holder from outside until it ends by itself, and reports the token of each holder that it
    /// sees. `None` if the recipe has no observers.
    fn observe(&self, target: Target, seen: Seen) -> Option<BoxFuture<'static, ()>> {
        drop((target, seen));
        None
    }

    /// How long one grant lets the next contender wait by itself, in milliseconds.
    fn time_per_grant(&self) -> u64 {
        0
    }
}

/// How to acquire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AcquireMode {
    /// `acquire`.
    Wait,
    /// `acquire_timeout`.
    WaitAtMost(Duration),
    /// `try_acquire`.
    Try,
}

/// The ways to take it, one by one.
impl dyn Adapter {
    /// Waits without a limit.
    ///
    /// # Errors
    ///
    /// As the recipe's own.
    pub fn acquire(&self, target: Target) -> BoxFuture<'static, Result<Granted, Error>> {
        granted(self.take(target, AcquireMode::Wait))
    }

    /// Waits for at most `timeout`.
    ///
    /// # Errors
    ///
    /// As the recipe's own.
    pub fn acquire_timeout(
        &self,
        target: Target,
        timeout: Duration,
    ) -> BoxFuture<'static, Result<Granted, Error>> {
        granted(self.take(target, AcquireMode::WaitAtMost(timeout)))
    }

    /// Takes it if it is free.
    pub fn try_acquire(&self, target: Target) -> Taking {
        self.take(target, AcquireMode::Try)
    }

    /// Waits for what [excludes](Adapter::exclusion) every grant of this adapter.
    ///
    /// # Errors
    ///
    /// As the recipe's own.
    pub fn exclude(&self, target: Target) -> BoxFuture<'static, Result<Granted, Error>> {
        self.exclusion().unwrap_or(self).acquire(target)
    }
}

fn granted(taking: Taking) -> BoxFuture<'static, Result<Granted, Error>> {
    Box::pin(async { Ok(taking.await?.expect("a wait ends with a grant or an error")) })
}
