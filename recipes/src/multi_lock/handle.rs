use std::fmt::{self, Debug, Formatter};
use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use lockkeeper_core::{ConnectionManager, Deadline, Error, LockQueue, ZnodePath};

use super::error::MultiLockError;
use super::modes::{Mode, ModeGuard};
use crate::inspection::Inspection;
use crate::lock::any_engine::any_lock;
use crate::lock::{AcquiredAt, MultiLockGuard, Recipe};

/// Several locks, taken together or not at all: any mix of mutexes, reentrant mutexes, sides of read/write
/// locks and permits of semaphores.
///
/// # Ordering: why no deadlock is possible
///
/// *Ordered* (the default): the members are taken one after another, in the order of their whole paths,
/// whatever order the caller named them in. A contender that waits for a lock holds only locks before it in
/// that order, so no circle of takers that all sort can close. This includes takers of a single lock, and
/// Curator's `InterProcessMultiLock` if it is given its paths in that order.
///
/// *Atomic* ([`MultiLockBuilder::atomic`](super::MultiLockBuilder::atomic)): one transaction creates a node
/// in every queue, and the taker waits in all queues at once. A contender waits only for contenders that
/// queued earlier, in every queue. So no circle can close among takers that all do so, or take single locks.
/// Large sets are served sooner, because the position in every queue counts from the start.
///
/// The two modes **must not be mixed** on the same paths, nor atomic takers with code that takes one lock
/// while it holds another: an atomic taker blocks a later queue while it waits in an earlier one. Within this
/// process the mix is refused. Between processes no one can detect it. `docs/recipes.md` has both arguments
/// in full.
///
/// A taker that takes more locks while it holds some breaks both arguments. The acquire is refused if that
/// can be detected: if the owner (in scope, or of a member) holds a lock already.
/// [`MultiLockBuilder::allow_nesting`](super::MultiLockBuilder::allow_nesting) lifts this check.
///
/// # Fairness
///
/// The queue of each member is first in, first out. Ordered takers enter the second queue only when they hold
/// the first lock.
///
/// # Cost
///
/// If all members are free: one round trip (a transaction, and one read of all queues), and one for each
/// semaphore. Servers before 3.8.2 need one more read (ZOOKEEPER-4026); it costs a round trip of its own,
/// unless the two acquires before went the same way. If a contender is ahead anywhere, the try leaves nothing
/// behind, and the members are taken one by one. Release: one round trip for all.
///
/// # Session loss
///
/// If one member is lost, the whole guard is lost. A wait that loses the members it had taken starts again in
/// the next session, within the deadline.
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
/// // The order of the names does not matter: another process may name them the other way round.
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
pub struct MultiLock(pub(super) Arc<MemberLocks>);

pub(super) struct MemberLocks {
    /// Sorted by path, without duplicates.
    pub(super) first: Arc<dyn Recipe>,
    pub(super) others: Vec<Arc<dyn Recipe>>,
    pub(super) mode: Mode,
    pub(super) nesting: bool,
    pub(super) _in_use: ModeGuard,
}

impl MultiLock {
    /// The paths of the members, below the manager's chroot, in the order in which they are taken.
    pub fn paths(&self) -> impl Iterator<Item = &ZnodePath> {
        self.members().map(|member| member.path())
    }

    /// Waits for all members, without a limit of time.
    ///
    /// # Errors
    ///
    /// [`MultiLockError`] names the member that failed, and the reason. The members that were taken before
    /// are released, the last one first. The reason is [`WouldDeadlock`](crate::owner::WouldDeadlock) if
    /// the owner holds a lock already.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe at every await: all positions are lost, and no node is left behind.
    #[track_caller]
    pub fn acquire(&self) -> impl Future<Output = Result<MultiLockGuard, MultiLockError>> + Send {
        let place = Location::caller();
        async move { Ok(self.take(Deadline::never()).await?.acquired_at(place)) }
    }

    /// Waits for all members, for at most `timeout` altogether.
    ///
    /// # Errors
    ///
    /// As [`acquire`](Self::acquire). The reason [`Error::Timeout`] names the predecessor.
    ///
    /// # Cancel safety
    ///
    /// As [`acquire`](Self::acquire).
    #[track_caller]
    pub fn acquire_timeout(
        &self,
        timeout: Duration,
    ) -> impl Future<Output = Result<MultiLockGuard, MultiLockError>> + Send {
        let place = Location::caller();
        async move { Ok(self.take(Deadline::after(timeout)).await?.acquired_at(place)) }
    }

    /// Takes all members if all are free now. Otherwise returns `None`.
    ///
    /// # Errors
    ///
    /// As [`acquire`](Self::acquire). The reason is [`Error::Timeout`] if there was no connection or no
    /// answer within the manager's operation timeout.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: no node is left behind.
    #[track_caller]
    pub fn try_acquire(&self) -> impl Future<Output = Result<Option<MultiLockGuard>, MultiLockError>> + Send {
        let place = Location::caller();
        async move { Ok(self.try_take().await?.map(|guard| guard.acquired_at(place))) }
    }

    /// Returns the holders and the waiters of each member, in the order in which the members are taken: one
    /// snapshot after another, see [`Inspection`].
    ///
    /// # Errors
    ///
    /// As [`LockQueue::inspect`], for the first member that cannot be read.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the call changes nothing.
    pub async fn inspect(&self) -> Result<Vec<Inspection>, Error> {
        let mut all = Vec::new();
        for member in self.members() {
            all.extend(member.inspect().await?);
        }
        Ok(all)
    }

    pub(super) fn members(&self) -> impl Iterator<Item = &Arc<dyn Recipe>> {
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

any_lock!(
    /// The name is the first path, and the token of the guard is that of its lock. The other tokens:
    /// [`LockGuard::engine`](crate::LockGuard::engine).
    MultiLock
);

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

    fn acquire(&self, deadline: Deadline) -> BoxFuture<'_, Result<MultiLockGuard, Error>> {
        Box::pin(async move { self.take(deadline).await.map_err(MultiLockError::into_cause) })
    }

    fn try_acquire(&self) -> BoxFuture<'_, Result<Option<MultiLockGuard>, Error>> {
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
}
