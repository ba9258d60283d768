mod guard;
mod hand_off_policy;
mod inspect;
mod recipe;
mod sharing;
mod ticket;

use std::sync::Arc;
use std::time::Duration;

use lockkeeper_core::{
    ConfigError, ConnectionManager, Deadline, Error, Label, LockQueue, PathError, Rule, ZnodePath,
};

use self::guard::Held;
pub use self::guard::{MutexGuard, OwnedMutexGuard};
pub use self::hand_off_policy::HandOffPolicy;
pub(crate) use self::inspect::of_line;
use self::sharing::SharingHandle;
pub use self::ticket::MutexTicket;
use crate::owner::{Owner, OwnerRegistry};
use crate::semaphore::{Lease, Semaphore};

/// A mutex over all processes: at most one guard at a time is valid.
///
/// Not reentrant: a second acquire waits for the first guard like everyone else's, for ever if it is in the same chain of
/// calls. With an [`Owner`] in scope that is an error, [`Error::WouldDeadlock`], instead. For an owner that calls itself,
/// use [`ReentrantMutex`](crate::ReentrantMutex).
///
/// Cheap to clone; clones, and other objects with the same path in any process, are the same lock. The path belongs
/// to the lock alone: put nothing else below it.
///
/// # Ordering and fairness
///
/// First in, first out, in the order in which the server committed the contenders' nodes, across processes. A
/// release wakes one waiter.
///
/// # Cost
///
/// Acquire, when free: one round trip, of a write and a read sent together; of the write alone where only this manager
/// takes the lock, again and again. Release: one. Hand-over to a waiter of the same manager: none, it holds when the
/// release is sent; to another: the release's commit and one event.
///
/// # Session loss
///
/// A guard of an expired session is lost, and told so before the server can grant the lock to anyone else. A wait
/// goes on in the next session, at the end of the line.
///
/// # Layout
///
/// That of Curator's `InterProcessMutex`: `<path>/_c_<uuid>-lock-<sequence>`, ephemeral, below container nodes. A
/// Java service on the same path and this mutex exclude each other and stand in one line. For that of
/// `InterProcessSemaphoreMutex` there is [`in_semaphore_layout`](Self::in_semaphore_layout).
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = lockkeeper_testserver::TestServer::start().await?;
/// # let servers = server.connect_string();
/// use lockkeeper::{ConnectionManager, Mutex};
///
/// let manager = ConnectionManager::connect(&servers).await?; // host:port,host:port,…
/// # manager.znodes().create(&"/trains/7".parse()?, b"", lockkeeper::CreateMode::Persistent).await?;
/// let mutex = Mutex::new(&manager, "/locks/train-7")?;
///
/// let guard = mutex.acquire().await?;
/// guard.txn().set("/trains/7".parse()?, b"41 seats left".to_vec(), -1).commit().await?;
/// guard.release().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Mutex {
    layout: Layout,
    holders: Arc<OwnerRegistry>,
    sharing: Option<SharingHandle>,
}

/// Where its contenders stand.
#[derive(Clone, Debug)]
enum Layout {
    /// In one line: Curator's `InterProcessMutex`.
    Queue(LockQueue),
    /// For the one permit of a semaphore: Curator's `InterProcessSemaphoreMutex`.
    Semaphore(Box<Semaphore>),
}

impl Mutex {
    /// The mutex at `path`, below the manager's chroot. Nothing is sent.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] when the path is not one, or is the root.
    pub fn new<P>(manager: &ConnectionManager, path: P) -> Result<Self, Error>
    where
        P: TryInto<ZnodePath>,
        PathError: From<P::Error>,
    {
        let path = path.try_into().map_err(PathError::from)?;
        let queue = LockQueue::new(manager, path, Label::LOCK, Rule::MUTEX)?;
        Ok(Self::of(manager, Layout::Queue(queue)))
    }

    /// The mutex at `path` in the layout of Curator's `InterProcessSemaphoreMutex`, with which it is exchanged: a
    /// [semaphore](Semaphore) of one permit. Nothing is sent.
    ///
    /// Take it for a lock that Java services hold by that class, and only then: it takes two round trips to acquire
    /// instead of one, and the others of a wait are dearer too. A mutex of the one layout and a mutex of the other do not
    /// see each other.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] when the path is not one, or is the root. Acquiring is an [`Error::LimitsDisagree`] while the
    /// path is in use for a [`Semaphore`] of more permits.
    pub fn in_semaphore_layout<P>(manager: &ConnectionManager, path: P) -> Result<Self, Error>
    where
        P: TryInto<ZnodePath>,
        PathError: From<P::Error>,
    {
        Ok(Self::of(manager, Layout::Semaphore(Box::new(Semaphore::new(manager, path, 1)?))))
    }

    fn of(manager: &ConnectionManager, layout: Layout) -> Self {
        Self { layout, holders: OwnerRegistry::of(manager), sharing: None }
    }

    /// What is written into the nodes of this mutex's contenders, for people who look. Default: the manager's node
    /// data, which is host and process id. The name of an [owner in scope](Owner::scope) is put behind it.
    #[must_use]
    pub fn node_data(self, data: impl Into<Vec<u8>>) -> Self {
        let layout = match self.layout {
            Layout::Queue(queue) => Layout::Queue(queue.with_node_data(data)),
            Layout::Semaphore(semaphore) => Layout::Semaphore(Box::new(semaphore.node_data(data))),
        };
        Self { layout, ..self }
    }

    /// Keeps the node from one guard to the next, as far as `hand_off` says: tasks of this process hand the lock on among
    /// themselves without a request.
    ///
    /// For a lock that many tasks of one process want, often and for a short time each. It is shared by the clones of what
    /// this returns. Another object with the same path, be it of this process, is another contender; so is a ticket of
    /// [`enqueue`](Self::enqueue), and a [`MultiLock`](crate::MultiLock) that takes all at once.
    ///
    /// * **Who waits** in this process has no node of its own. One of them stands in the line for all; the others wait here.
    /// * **A guard that ends** gives the lock to the one who has waited for longest here, with a greater
    ///   [fencing token](crate::Hold::fencing_token): the same [number](crate::FencingToken::as_u64), and one more
    ///   [hand-over](crate::FencingToken::handover). Let resources that fence compare both.
    /// * **Once another process waits**, the lock is passed on at most [so many times](HandOffPolicy::max_handoffs), and for at most
    ///   [so long](HandOffPolicy::max_time). Then it is released, and who still waits here stands at the end of the line.
    ///   It is seen by one watch, which is set when somebody here waits for the first time, or the node lingers; until that
    ///   is answered, others are taken to wait.
    /// * **With a [linger](HandOffPolicy::idle_time)**, a node that nobody here waits for stands for so long, and a repeated acquire sends
    ///   nothing. It goes as soon as another process comes, or asks for it ([`Revoker`](crate::Revoker)), and with the
    ///   last clone of the mutex.
    /// * **`release().await`** is done, and without a request, once the lock is passed on or lingers. Its node stands then.
    /// * It is released, and not passed on, when somebody asked for it, when a [transaction](crate::Hold::txn) under it was dropped
    ///   or had no answer, when it is lost, and when the manager is closing.
    ///
    /// # Ordering and fairness
    ///
    /// First in, first out among the tasks of this process. Among processes the line is as it was, but that the head may pass
    /// its place on as said.
    ///
    /// # Session loss
    ///
    /// A guard is told as always; the next of those who wait here takes a new place in the next session, also while the lost
    /// guard is still there.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] for a `hand_off` outside its ranges, and in [the layout of a semaphore](Self::in_semaphore_layout).
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = lockkeeper_testserver::TestServer::start().await?;
    /// # let manager = lockkeeper::ConnectionManager::connect(&server.connect_string()).await?;
    /// use std::time::Duration;
    /// use lockkeeper::{HandOffPolicy, Mutex};
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
        let Layout::Queue(queue) = &self.layout else {
            return Err(Error::Config(ConfigError::Setting {
                name: "with_handoff",
                value: "in the layout of a semaphore".to_owned(),
                advice: "keep a mutex in its own layout only",
            }));
        };
        hand_off.check(queue.manager())?;
        Ok(Self { sharing: Some(SharingHandle::new(hand_off)), ..self })
    }

    /// The whole path of the lock, chroot included.
    #[must_use]
    pub fn path(&self) -> &ZnodePath {
        match &self.layout {
            Layout::Queue(queue) => queue.directory(),
            Layout::Semaphore(semaphore) => semaphore.path(),
        }
    }

    /// Waits for the lock for as long as it takes.
    ///
    /// # Errors
    ///
    /// [`Error::WouldDeadlock`] when the [owner in scope](Owner::scope) holds it already, be it by a guard that is lost
    /// and still kept. [`Error::Refused`] when
    /// the server will not have the node (access list, quota). [`Error::ConflictingKind`] when another kind of lock uses
    /// the path. [`Error::Closed`] after a shutdown.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe at every await: your place in the line is lost, and no node is left behind.
    pub async fn acquire(&self) -> Result<MutexGuard<'_>, Error> {
        self.lock(Deadline::never()).await.map(MutexGuard::borrowed)
    }

    /// Waits for the lock for at most `timeout`.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`], which names who was in front; with no time at all, when the lock is not free now. Else as
    /// [`acquire`](Self::acquire).
    ///
    /// # Cancel safety
    ///
    /// As [`acquire`](Self::acquire).
    pub async fn acquire_timeout(&self, timeout: Duration) -> Result<MutexGuard<'_>, Error> {
        self.lock(Deadline::after(timeout)).await.map(MutexGuard::borrowed)
    }

    /// Takes the lock if it is free now; `None` when someone is in front, be it with a try of its own.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`] when there was no connection or no answer within the manager's operation timeout; else as
    /// [`acquire`](Self::acquire).
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: no node is left behind.
    pub async fn try_acquire(&self) -> Result<Option<MutexGuard<'_>>, Error> {
        Ok(self.try_lock().await?.map(MutexGuard::borrowed))
    }

    /// As [`acquire`](Self::acquire), with a guard that borrows nothing.
    ///
    /// # Errors
    ///
    /// As [`acquire`](Self::acquire).
    ///
    /// # Cancel safety
    ///
    /// As [`acquire`](Self::acquire).
    pub async fn acquire_owned(&self) -> Result<OwnedMutexGuard, Error> {
        self.lock(Deadline::never()).await
    }

    /// As [`acquire_timeout`](Self::acquire_timeout), with a guard that borrows nothing.
    ///
    /// # Errors
    ///
    /// As [`acquire_timeout`](Self::acquire_timeout).
    ///
    /// # Cancel safety
    ///
    /// As [`acquire`](Self::acquire).
    pub async fn acquire_owned_timeout(&self, timeout: Duration) -> Result<OwnedMutexGuard, Error> {
        self.lock(Deadline::after(timeout)).await
    }

    /// As [`try_acquire`](Self::try_acquire), with a guard that borrows nothing.
    ///
    /// # Errors
    ///
    /// As [`try_acquire`](Self::try_acquire).
    ///
    /// # Cancel safety
    ///
    /// As [`try_acquire`](Self::try_acquire).
    pub async fn try_acquire_owned(&self) -> Result<Option<OwnedMutexGuard>, Error> {
        self.try_lock().await
    }

    async fn lock(&self, deadline: Deadline) -> Result<OwnedMutexGuard, Error> {
        let owner = self.owner()?;
        let held = match &self.layout {
            Layout::Queue(queue) => match (&self.sharing, &owner) {
                (None, None) => queue.acquire(deadline).await?.into(),
                // Boxed, or every task that takes a mutex would be as large as this.
                (None, Some(_)) => {
                    let queue = Self::signed(queue, owner.as_ref());
                    Box::pin(async move { queue.acquire(deadline).await }).await?.into()
                }
                (Some(sharing), _) => {
                    let queue = Self::signed(queue, owner.as_ref());
                    Held::SharedHold(Box::new(Box::pin(sharing.acquire(queue, deadline)).await?))
                }
            },
            Layout::Semaphore(semaphore) => {
                Box::pin(semaphore.acquire_by(1, deadline)).await?.into_hold().into()
            }
        };
        Ok(self.guard(held, owner.as_ref()))
    }

    async fn try_lock(&self) -> Result<Option<OwnedMutexGuard>, Error> {
        let owner = self.owner()?;
        let held = match &self.layout {
            Layout::Queue(queue) => {
                let limit = Deadline::after(queue.manager().operation_timeout());
                let queue = Self::signed(queue, owner.as_ref());
                match &self.sharing {
                    Some(sharing) => {
                        sharing.try_acquire(queue, limit).await?.map(Box::new).map(Held::SharedHold)
                    }
                    None => queue.try_acquire(limit).await?.map(Held::from),
                }
            }
            Layout::Semaphore(semaphore) => {
                Box::pin(semaphore.try_acquire()).await?.map(Lease::into_hold).map(Held::from)
            }
        };
        Ok(held.map(|held| self.guard(held, owner.as_ref())))
    }

    fn signed(queue: &LockQueue, owner: Option<&Owner>) -> LockQueue {
        let queue = queue.clone();
        match owner {
            Some(owner) => {
                let data = owner.append_owner(queue.node_data());
                queue.with_node_data(data)
            }
            None => queue,
        }
    }

    /// The owner in scope, if it does not hold the lock already.
    fn owner(&self) -> Result<Option<Owner>, Error> {
        let owner = Owner::current();
        if let Some(owner) = &owner {
            self.holders.check(self.path(), owner)?;
        }
        Ok(owner)
    }

    fn guard(&self, held: Held, owner: Option<&Owner>) -> OwnedMutexGuard {
        OwnedMutexGuard::new(owner.map(|owner| self.holders.enter(self.path(), owner)), held)
    }
}
