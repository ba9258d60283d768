//! Several locks at once, without deadlock.

mod acquire;
mod builder;
mod error;
mod modes;
mod plan;

use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use lockkeeper_core::{ConnectionManager, Deadline, Error, LockQueue, ZnodePath};

pub use self::builder::MultiLockBuilder;
pub use self::error::MultiLockError;
use self::modes::ModeGuard;
use crate::inspection::Inspection;
use crate::lock::{BatchEntry, Lock, LockGuard, LockRequest, Recipe, Sealed};
use crate::owner::Owner;

/// Several locks, taken together or not at all: any mix of mutexes, reentrant ones, sides of read/write locks and
/// permits of semaphores.
///
/// # Ordering: why it cannot deadlock
///
/// *Ordered* (the default): the members are taken one after another in the order of their whole paths, whatever order
/// they were named in. Whoever waits for a lock holds only locks before it, so no circle of takers that all sort can
/// close. That includes everyone who takes a single lock, and holds for Curator's `InterProcessMultiLock` where it is
/// given its paths in that order.
///
/// *Atomic* ([`MultiLockBuilder::atomic`]): a place is taken in all lines by one transaction, and waited for in all of
/// them at once. Whoever waits for another came later in every line, so no circle of takers that all do so, or take
/// single locks, can close. It is fairer to large sets: the place in every line counts from the start.
///
/// The two **must not be mixed** on the same paths, nor atomic takers with anyone who takes one lock while holding
/// another: an atomic taker stands in the way in a later line while it waits in an earlier one. Within this process
/// the mix is refused; between processes it is up to you. `docs/recipes.md` has both arguments in full.
///
/// Taking more locks while holding some breaks both arguments, so it is refused where it can be seen: when the owner
/// (in scope, or of a member) holds something already. [`MultiLockBuilder::allow_nesting`] lifts that.
///
/// # Fairness
///
/// Each member's line is first in, first out. Ordered takers enter the second line only when they have the first.
///
/// # Cost
///
/// All free: one round trip (a transaction and one read of all lines), one more read on servers before 3.8.2
/// (ZOOKEEPER-4026; a round trip of its own unless the lock was taken so twice just before), and one round trip for each
/// semaphore. Someone in front anywhere: the try leaves nothing behind, and the members are taken one by one. Release: one
/// round trip for all.
///
/// # Session loss
///
/// A lost member makes the whole guard lost. A wait that loses what it had taken starts over in the next session, within
/// the deadline.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = lockkeeper_testserver::TestServer::start().await?;
/// # let servers = server.connect_string();
/// use lockkeeper::{ConnectionManager, MultiLock, Mutex};
///
/// let manager = ConnectionManager::connect(&servers).await?; // host:port,host:port,…
/// let alice = Mutex::new(&manager, "/accounts/alice")?;
/// let bob = Mutex::new(&manager, "/accounts/bob")?;
///
/// // Named in any order: both ways cannot deadlock.
/// let both = MultiLock::builder().lock(&bob).lock(&alice).build()?;
/// let guard = both.acquire().await?;
/// for (account, token) in guard.fencing_tokens() {
///     println!("{account} is ours, fenced by {token}");
/// }
/// guard.release().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct MultiLock(Arc<Inner>);

struct Inner {
    /// By path, each once.
    first: Arc<dyn Recipe>,
    others: Vec<Arc<dyn Recipe>>,
    mode: Mode,
    nesting: bool,
    _in_use: ModeGuard,
}

/// How several locks are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Ordered,
    Atomic,
}

impl MultiLock {
    /// Names the locks.
    pub fn builder() -> MultiLockBuilder {
        MultiLockBuilder::default()
    }

    /// The whole paths of the members, in the order in which they are taken.
    pub fn paths(&self) -> impl Iterator<Item = &ZnodePath> {
        self.members().map(|member| member.path())
    }

    /// Waits for all of them, for as long as it takes.
    ///
    /// # Errors
    ///
    /// [`MultiLockError`] names the member at which it stopped, and why; everything taken before it was given back, the
    /// last first. [`Error::WouldDeadlock`] in it when the owner holds something already.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe at every await: your places are lost, and no node is left behind.
    pub async fn acquire(&self) -> Result<LockGuard, MultiLockError> {
        self.take(Deadline::never()).await
    }

    /// Waits for all of them for at most `timeout`, which is one limit for all.
    ///
    /// # Errors
    ///
    /// As [`acquire`](Self::acquire); [`Error::Timeout`] in it names who was in front.
    ///
    /// # Cancel safety
    ///
    /// As [`acquire`](Self::acquire).
    pub async fn acquire_timeout(&self, timeout: Duration) -> Result<LockGuard, MultiLockError> {
        self.take(Deadline::after(timeout)).await
    }

    /// Takes all of them if all are free now.
    ///
    /// # Errors
    ///
    /// As [`acquire`](Self::acquire), and [`Error::Timeout`] in it when there was no connection or no answer within the
    /// manager's operation timeout.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: no node is left behind.
    pub async fn try_acquire(&self) -> Result<Option<LockGuard>, MultiLockError> {
        self.try_take().await
    }

    /// Who holds and who waits for each of the members, in the order in which they are taken: one snapshot after another, see
    /// [`Inspection`].
    ///
    /// # Errors
    ///
    /// As [`LockQueue::inspect`], at the first member that cannot be looked at.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: nothing is changed.
    pub async fn inspect(&self) -> Result<Vec<Inspection>, Error> {
        let mut all = Vec::new();
        for member in self.members() {
            all.extend(member.inspect().await?);
        }
        Ok(all)
    }

    fn members(&self) -> impl Iterator<Item = &Arc<dyn Recipe>> {
        std::iter::once(&self.0.first).chain(&self.0.others)
    }
}

impl Debug for MultiLock {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("MultiLock")
            .field("paths", &self.paths().map(ToString::to_string).collect::<Vec<_>>())
            .field("mode", &self.0.mode)
            .finish_non_exhaustive()
    }
}

impl Lock for MultiLock {
    fn as_recipe(&self) -> Sealed<'_> {
        Sealed(self)
    }
}

impl Recipe for MultiLock {
    fn path(&self) -> &ZnodePath {
        self.0.first.path()
    }

    fn shared(&self) -> Arc<dyn Recipe> {
        Arc::new(self.clone())
    }

    fn manager(&self) -> &ConnectionManager {
        self.0.first.manager()
    }

    fn acquire(&self, deadline: Deadline) -> BoxFuture<'_, Result<LockGuard, Error>> {
        Box::pin(async move { self.take(deadline).await.map_err(MultiLockError::into_cause) })
    }

    fn try_acquire(&self) -> BoxFuture<'_, Result<Option<LockGuard>, Error>> {
        Box::pin(async move { self.try_take().await.map_err(MultiLockError::into_cause) })
    }

    fn queues(&self) -> (LockQueue, Vec<LockQueue>) {
        let (first, mut queues) = self.0.first.queues();
        for other in &self.0.others {
            let (first, others) = other.queues();
            queues.push(first);
            queues.extend(others);
        }
        (first, queues)
    }

    fn inspect(&self) -> BoxFuture<'_, Result<Vec<Inspection>, Error>> {
        Box::pin(self.inspect())
    }

    fn request(&self) -> Option<LockRequest> {
        None
    }

    fn owner(&self) -> Option<Owner> {
        None
    }

    fn merged_with(&self, _: LockRequest) -> Option<Arc<dyn Recipe>> {
        None
    }

    fn batch_entry(&self) -> Option<Box<dyn BatchEntry>> {
        None
    }
}
