use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use futures::TryFutureExt;
use lockkeeper_core::{
    ConfigError, ConnectionManager, Deadline, Error, Hold, IntoPath, Label, LockQueue, Rule, ZnodePath,
};

use super::guard::{MutexGuard, MutexHold};
use crate::lock::{AcquiredAt, Recipe};
use crate::owner::{Holding, Owner, OwnerRegistry, Side};
use crate::semaphore::{Lease, Semaphore};
use crate::sharing::{HandOffPolicy, HoldKind, SharingHandle};

/// A mutex over all processes: at most one guard is valid at a time.
///
/// The mutex is not reentrant. A second acquire waits for the first guard, as every contender does; in the
/// same chain of calls it waits for ever. If an [`Owner`] is in scope, the second acquire returns
/// [`WouldDeadlock`](crate::owner::WouldDeadlock) instead. For calls that lock again, use
/// [`ReentrantMutex`](crate::ReentrantMutex).
///
/// A clone is cheap. Clones, and other objects with the same path in any process, are the same lock. The path
/// belongs to the lock alone: create no other node below it.
///
/// # Ordering and fairness
///
/// First in, first out across processes, in the order in which the server committed the contenders' nodes. A
/// release wakes one waiter.
///
/// # Cost
///
/// Acquire of a free lock: one round trip, for a write and a read that are sent together. If only this
/// manager takes the lock, again and again, the write alone is enough. Release: one round trip. Hand-off to a
/// waiter of the same manager: no round trip, the waiter holds when the release is sent. Hand-off to another
/// manager: the commit of the release, and one event.
///
/// # Session loss
///
/// A guard of an expired session is lost. Its [`lost()`](crate::Guard::lost) resolves before the server can
/// grant the lock to another contender. A waiter queues again in the next session, at the end of the queue.
///
/// # Layout
///
/// The layout of Curator's `InterProcessMutex`: `<path>/_c_<uuid>-lock-<sequence>`, ephemeral, below
/// container nodes. A Java service with the same path and this mutex exclude each other, and wait in one
/// queue. For the layout of `InterProcessSemaphoreMutex` use
/// [`in_semaphore_layout`](Self::in_semaphore_layout).
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = lockkeeper_testserver::TestServer::start().await?;
/// # let servers = server.connect_string();
/// use lockkeeper::znodes::Version;
/// use lockkeeper::{ConnectionManager, Mutex};
///
/// let manager = ConnectionManager::connect(&servers).await?; // host:port,host:port,…
/// # manager.znodes().create("/trains/7", b"", lockkeeper::znodes::CreateMode::Persistent).await?;
/// let mutex = Mutex::new(&manager, "/locks/train-7")?;
///
/// let guard = mutex.acquire().await?;
/// guard.txn().set("/trains/7", b"41 seats left".to_vec(), Version::Any).commit().await?;
/// guard.release().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Mutex {
    pub(super) layout: MutexLayout,
    pub(super) holders: Arc<OwnerRegistry>,
    sharing: Option<SharingHandle>,
}

/// The queue in which its contenders wait.
#[derive(Clone, Debug)]
pub(super) enum MutexLayout {
    /// The layout of Curator's `InterProcessMutex`.
    Queue(LockQueue),
    /// A semaphore with one permit: the layout of Curator's `InterProcessSemaphoreMutex`.
    Semaphore(Box<Semaphore>),
}

impl Mutex {
    /// Makes the mutex at `path`, below the manager's chroot. Sends nothing.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] if the path is malformed, or is the root.
    pub fn new(manager: &ConnectionManager, path: impl IntoPath) -> Result<Self, Error> {
        let path = path.into_path()?;
        let queue = LockQueue::new(manager, path, Label::LOCK, Rule::MUTEX)?;
        Ok(Self::of(manager, MutexLayout::Queue(queue)))
    }

    /// Makes the mutex at `path` in the layout of Curator's `InterProcessSemaphoreMutex`, and shares the lock
    /// with that class: a [semaphore](Semaphore) with one permit. Sends nothing.
    ///
    /// Use it only for a lock that Java services take by that class. An acquire takes two round trips instead
    /// of one, and a wait costs more requests. Mutexes of the two layouts do not see each other.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] if the path is malformed, or is the root. An acquire returns
    /// [`SemaphoreError::LimitsDisagree`](crate::semaphore::SemaphoreError::LimitsDisagree) while the
    /// path is in use for a [`Semaphore`] with more permits.
    pub fn in_semaphore_layout(manager: &ConnectionManager, path: impl IntoPath) -> Result<Self, Error> {
        Ok(Self::of(manager, MutexLayout::Semaphore(Box::new(Semaphore::new(manager, path, 1)?))))
    }

    fn of(manager: &ConnectionManager, layout: MutexLayout) -> Self {
        Self { layout, holders: OwnerRegistry::of(manager), sharing: None }
    }

    /// Sets the data of this mutex's nodes, for people who inspect the lock. Default: the manager's node
    /// data, which has the host and the process id. The name of an [owner in scope](Owner::scope) is
    /// appended.
    #[must_use]
    pub fn with_node_data(self, data: impl Into<Vec<u8>>) -> Self {
        let layout = match self.layout {
            MutexLayout::Queue(queue) => MutexLayout::Queue(queue.with_node_data(data)),
            MutexLayout::Semaphore(semaphore) => {
                MutexLayout::Semaphore(Box::new(semaphore.with_node_data(data)))
            }
        };
        Self { layout, ..self }
    }

    /// Keeps the node from one guard to the next, within the bounds of `hand_off`: the tasks of this process
    /// hand the lock off among themselves without a request.
    ///
    /// This is for a lock that many tasks of one process take often, for a short time each. The clones of the
    /// returned mutex share the node. Another object with the same path is another contender, also in this
    /// process. So are a ticket of [`enqueue`](Self::enqueue), and a [`MultiLock`](crate::MultiLock) that
    /// takes all members at once.
    ///
    /// * **Waiters** of this process have no nodes of their own. One task waits in the queue for all of them,
    ///   and the others wait in memory.
    /// * **When a guard ends**, the task that has waited longest gets the lock, with a greater [fencing
    ///   token](crate::Hold::fencing_token): the same [number](crate::FencingToken::as_u64), and one more
    ///   [hand-off](crate::FencingToken::handover). A resource that fences has to compare both.
    /// * **While another process waits**, the process hands the lock off at most
    ///   [`max_handoffs`](HandOffPolicy::max_handoffs) times, and for at most
    ///   [`max_time`](HandOffPolicy::max_time). Then it releases the lock, and its waiters queue at the end.
    ///   One watch shows other contenders. It is set when a task of this process waits for the first time, or
    ///   when the node is idle. Until the watch is answered, the process assumes that another contender
    ///   waits.
    /// * **With an [`idle_time`](HandOffPolicy::idle_time)**, the node stays for that time although no task
    ///   of this process waits, and a repeated acquire sends nothing. The idle node is deleted when another
    ///   process queues or asks for it ([`Revoker`](crate::Revoker)), and with the last clone of the mutex.
    /// * **`release().await`** returns without a request if the lock is handed off, or the node stays idle.
    ///   The node exists then.
    /// * The lock is released, and not handed off, if another client asked for it, if a
    ///   [transaction](crate::Hold::txn) under it was dropped or had no answer, if it is lost, and if a
    ///   shutdown of the manager has begun.
    ///
    /// # Ordering and fairness
    ///
    /// First in, first out among the tasks of this process. Among processes, the order of the queue, except
    /// that the head may hand its position off within the bounds above.
    ///
    /// # Session loss
    ///
    /// A guard is lost as that of a plain mutex. The next waiting task queues in the next session, also while
    /// the lost guard is still kept.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] if `hand_off` is outside its ranges, or for
    /// [the layout of a semaphore](Self::in_semaphore_layout).
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = lockkeeper_testserver::TestServer::start().await?;
    /// # let manager = lockkeeper::ConnectionManager::connect(&server.connect_string()).await?;
    /// use std::time::Duration;
    /// use lockkeeper::Mutex;
    /// use lockkeeper::config::HandOffPolicy;
    ///
    /// let hand_off = HandOffPolicy::default().max_handoffs(50).idle_time(Duration::from_millis(20));
    /// let mutex = Mutex::new(&manager, "/locks/train-7")?.with_handoff(hand_off)?;
    ///
    /// let first = mutex.acquire().await?;
    /// let token = first.fencing_token();
    /// first.release().await?;
    /// let second = mutex.acquire().await?; // without a request, if it was within 20 ms
    /// assert!(second.fencing_token() > token);
    /// # Ok(())
    /// # }
    /// ```
    pub fn with_handoff(self, hand_off: HandOffPolicy) -> Result<Self, Error> {
        let MutexLayout::Queue(queue) = &self.layout else {
            return Err(Error::Config(ConfigError::Setting {
                name: "with_handoff",
                value: "in the layout of a semaphore".to_owned(),
                advice: "use with_handoff() only with Mutex::new()",
            }));
        };
        hand_off.check(queue.manager())?;
        Ok(Self { sharing: Some(SharingHandle::of_one(hand_off)), ..self })
    }

    /// The path of the lock, below the manager's chroot.
    #[must_use]
    pub fn path(&self) -> &ZnodePath {
        match &self.layout {
            MutexLayout::Queue(queue) => queue.directory(),
            MutexLayout::Semaphore(semaphore) => semaphore.path(),
        }
    }

    /// Waits for the lock, without a limit of time.
    ///
    /// # Errors
    ///
    /// [`WouldDeadlock`](crate::owner::WouldDeadlock) if the [owner in scope](Owner::scope) holds the
    /// lock already, also by a guard that is lost and still kept. [`Error::Refused`] if the server
    /// refuses the node (access list, quota). [`Error::ConflictingKind`] if another kind of lock uses the
    /// path. [`Error::Closed`] after a shutdown has begun.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe at every await: the position in the queue is lost, and no node is left behind.
    #[track_caller]
    pub fn acquire(&self) -> impl Future<Output = Result<MutexGuard, Error>> + Send {
        let place = Location::caller();
        // Smaller than an async block around it: thousands may wait.
        self.lock(Deadline::never()).map_ok(move |guard| guard.acquired_at(place))
    }

    /// Waits for the lock for at most `timeout`.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`], which names the predecessor. With a `timeout` of zero, it means that the lock is
    /// not free now. Otherwise as [`acquire`](Self::acquire).
    ///
    /// # Cancel safety
    ///
    /// As [`acquire`](Self::acquire).
    #[track_caller]
    pub fn acquire_timeout(
        &self,
        timeout: Duration,
    ) -> impl Future<Output = Result<MutexGuard, Error>> + Send {
        let place = Location::caller();
        async move { Ok(self.lock(Deadline::after(timeout)).await?.acquired_at(place)) }
    }

    /// Takes the lock if it is free now. Returns `None` if any contender is ahead, including another
    /// `try_acquire` in progress.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`] if there was no connection or no answer within the manager's operation timeout.
    /// Otherwise as [`acquire`](Self::acquire).
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: no node is left behind.
    #[track_caller]
    pub fn try_acquire(&self) -> impl Future<Output = Result<Option<MutexGuard>, Error>> + Send {
        let place = Location::caller();
        async move { Ok(self.try_lock().await?.map(|guard| guard.acquired_at(place))) }
    }

    pub(super) async fn lock(&self, deadline: Deadline) -> Result<MutexGuard, Error> {
        let owner = self.owner()?;
        let held = match &self.layout {
            MutexLayout::Queue(queue) => match (&self.sharing, &owner) {
                (None, None) => queue.acquire(deadline).await?.into(),
                // Boxed, or every task that takes a mutex would be as large as this.
                (None, Some(owner)) => Box::pin(self.lock_for(queue, owner, deadline)).await?.into(),
                (Some(sharing), _) => {
                    let queue = Self::signed(queue, owner.as_ref());
                    Box::pin(sharing.acquire(queue, deadline)).await?.into()
                }
            },
            MutexLayout::Semaphore(semaphore) => {
                Box::pin(semaphore.acquire_by(1, deadline)).await?.into_held()
            }
        };
        Ok(self.guard(held, owner.as_ref()))
    }

    async fn lock_for(&self, queue: &LockQueue, owner: &Owner, deadline: Deadline) -> Result<Hold, Error> {
        let _waits = self.holders.wait(queue.manager(), self.path(), owner, Side::Write);
        self.waiter_queue(queue, owner, deadline).acquire(deadline).await
    }

    /// The queue for a waiter: its node names what the owner holds, and when it gives up.
    pub(super) fn waiter_queue(&self, queue: &LockQueue, owner: &Owner, deadline: Deadline) -> LockQueue {
        let data = self.holders.waiter_data(queue.node_data(), owner, deadline);
        queue.clone().with_node_data(data)
    }

    pub(super) async fn try_lock(&self) -> Result<Option<MutexGuard>, Error> {
        let owner = self.owner()?;
        let held = match &self.layout {
            MutexLayout::Queue(queue) => {
                let limit = Deadline::after(queue.manager().operation_timeout());
                let queue = Self::signed(queue, owner.as_ref());
                match &self.sharing {
                    Some(sharing) => sharing.try_acquire(queue, limit).await?.map(HoldKind::from),
                    None => queue.try_acquire(limit).await?.map(HoldKind::from),
                }
            }
            MutexLayout::Semaphore(semaphore) => {
                Box::pin(semaphore.try_acquire()).await?.map(Lease::into_held)
            }
        };
        Ok(held.map(|held| self.guard(held, owner.as_ref())))
    }

    pub(super) fn signed(queue: &LockQueue, owner: Option<&Owner>) -> LockQueue {
        let queue = queue.clone();
        match owner {
            Some(owner) => {
                let data = owner.append_owner(queue.node_data());
                queue.with_node_data(data)
            }
            None => queue,
        }
    }

    /// Returns the owner in scope. Fails if that owner holds the lock already.
    pub(super) fn owner(&self) -> Result<Option<Owner>, Error> {
        let owner = Owner::current();
        if let Some(owner) = &owner {
            self.holders.check(Recipe::manager(self), self.path(), owner)?;
        }
        Ok(owner)
    }

    pub(super) fn guard(&self, held: HoldKind, owner: Option<&Owner>) -> MutexGuard {
        let enter = |owner| self.holders.enter(self.path(), owner, Holding::Plain, held.hold());
        MutexGuard::of(MutexHold::new(owner.map(enter), held))
    }
}
