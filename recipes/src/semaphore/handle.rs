use std::fmt::{self, Debug, Formatter};
use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use lockkeeper_core::{
    ConfigError, ConnectionManager, Deadline, Error, IntoPath, Label, LockQueue, Read, Rule, WholePath,
    ZnodePath, count_of,
};

use super::lease::Lease;
use super::limit::PermitLimit;
use super::shared_limit::SharedLimit;
use crate::limits;
use crate::lock::AcquiredAt;
use crate::sharing::SharingHandle;

/// Leases are counted, not ordered. Their directory has no nodes of another kind.
const LEASES: Rule = Rule::blocked_by(&[lockkeeper_core::Kind::LEASE]);

/// A semaphore over all processes: at most a given number of permits are in use at a time.
///
/// Use it for *at most N at the same time*. For *at most N starts in any minute* use a
/// [`RateLimiter`](crate::RateLimiter). For one at a time, a [`Mutex`](crate::Mutex) is cheaper.
///
/// A clone is cheap. Clones, and other objects with the same path in any process, are the same semaphore. The
/// path belongs to the semaphore alone.
///
/// # The limit
///
/// The limit is fixed, and every user of the semaphore gives the same one ([`new`](Self::new)); or it is kept
/// in a node, and can change at run time ([`new_shared`](Self::new_shared)). A higher shared
/// limit wakes the waiter at the head. A lower one revokes nothing, and nothing is granted until enough
/// permits are released. Fixed limits that disagree are an error while permits are in use; when none is in
/// use, the next contender may set a new limit. Curator's clients neither write nor read the recorded fixed
/// limit: agree on the limit by other means, or share it.
///
/// # Ordering and fairness
///
/// First in, first out. Only the head of the queue is granted: a request for many permits waits at the head
/// until they are free, and smaller requests do not overtake it. All permits of a request are granted at once
/// or not at all, so two requests for three of four permits never block each other.
///
/// # Cost
///
/// Acquire of free permits: two round trips, for any number of permits. Release: one round trip. A wait at
/// the head of the queue adds one read for each change of the leases, and only the head reads. If tasks of
/// one process follow each other, each one takes permits without a read, as long as the last read shows
/// enough of them. One more read follows if the numbers of the new leases do not prove that no other client
/// made a lease in between; see `docs/protocol.md`.
///
/// The first acquire in a new `leases` directory writes that directory, so a user needs the right to write
/// it.
///
/// # Session loss
///
/// The leases of a crashed process are deleted with its session. A lease of an expired session is lost. Its
/// [`lost()`](crate::Guard::lost) resolves before the server can give its permits to another contender. A
/// waiter queues again in the next session, at the end of the queue.
///
/// # Layout
///
/// The layout of Curator's `InterProcessSemaphoreV2`: `<path>/locks` is an `InterProcessMutex`, and
/// `<path>/leases/_c_<uuid>-lease-<sequence>` is a permit. *All* children of `leases` count, whichever client
/// created them, as in Curator: create nothing else there. The data of `leases` records a fixed limit; a
/// shared limit is Curator's `SharedCount`. Both are a big-endian integer of four bytes.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = lockkeeper_testserver::TestServer::start().await?;
/// # let servers = server.connect_string();
/// use lockkeeper::{ConnectionManager, Semaphore};
///
/// let manager = ConnectionManager::connect(&servers).await?; // host:port,host:port,…
/// let licences = Semaphore::new(&manager, "/licences/compiler", 4)?;
///
/// let lease = licences.acquire_many(3).await?;
/// assert_eq!(licences.available().await?, 1);
/// assert!(licences.try_acquire_many(2).await?.is_none());
/// lease.run(async { /* three compilations */ }).await?;
/// lease.release().await?;
/// # assert_eq!(licences.available().await?, 4);
/// # Ok(())
/// # }
/// ```
///
/// A limit that is changed while running:
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = lockkeeper_testserver::TestServer::start().await?;
/// # let manager = lockkeeper::ConnectionManager::connect(&server.connect_string()).await?;
/// use lockkeeper::Semaphore;
/// use lockkeeper::locks::SharedLimit;
///
/// let limit = SharedLimit::new(&manager, "/licences/limit")?;
/// limit.set(2).await?;
/// let licences = Semaphore::new_shared(&manager, "/licences/linker", &limit)?;
/// let lease = licences.acquire_many(2).await?;
/// limit.set(3).await?;
/// let another = licences.acquire().await?;
/// # lease.release().await?;
/// # another.release().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Semaphore {
    pub(super) manager: ConnectionManager,
    pub(super) path: ZnodePath,
    pub(super) leases: ZnodePath,
    pub(super) queue: LockQueue,
    /// The queue with a read of the limit, for an acquire that does not know it.
    pub(super) queue_with_limit: LockQueue,
    pub(super) leases_queue: LockQueue,
    pub(super) limit: PermitLimit,
    pub(super) data: Arc<[u8]>,
    /// The nodes that this process keeps.
    pub(super) sharing: Option<SharingHandle>,
}

impl Semaphore {
    /// Makes the semaphore at `path`, below the manager's chroot, with a fixed limit of `permits`. Sends
    /// nothing.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] if the path is malformed, or is the root, or if `permits` is zero.
    pub fn new(manager: &ConnectionManager, path: impl IntoPath, permits: u32) -> Result<Self, Error> {
        Self::at(manager, path.into_path()?, PermitLimit::fixed(permits)?)
    }

    /// Makes the semaphore at `path` with the limit that `limit` has at the time of each acquire. Sends
    /// nothing.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] if the path is malformed, or is the root, or if the limit is of another manager.
    pub fn new_shared(
        manager: &ConnectionManager,
        path: impl IntoPath,
        limit: &SharedLimit,
    ) -> Result<Self, Error> {
        if !limit.manager().is_same_as(manager) {
            return Err(Error::Config(ConfigError::Setting {
                name: "limit",
                value: "of another connection manager".to_owned(),
                advice: "make the shared limit with the manager of the semaphore",
            }));
        }
        Self::at(manager, path.into_path()?, PermitLimit::Shared(limit.clone()))
    }

    pub(super) fn at(
        manager: &ConnectionManager,
        path: ZnodePath,
        limit: PermitLimit,
    ) -> Result<Self, Error> {
        let path = limits::own_path(path, "give the semaphore a path of its own, such as /semaphores/a")?;
        let leases = path.child("leases")?;
        let queue = LockQueue::new(manager, path.child("locks")?, Label::LOCK, Rule::MUTEX)?
            .with_metric_name("semaphore_turn");
        let (list, read) = (Read::Children(leases.clone()), limit.limit_read(&leases));
        Ok(Self {
            manager: manager.clone(),
            queue: queue.clone().with_reads(std::slice::from_ref(&list))?,
            queue_with_limit: queue.with_reads(&[list, read])?,
            leases_queue: LockQueue::new(manager, leases.clone(), Label::LEASE, LEASES)?,
            path,
            leases,
            limit,
            data: manager.node_data().into(),
            sharing: None,
        })
    }

    /// Sets the data of this semaphore's leases and queue nodes, for people who inspect the lock. Default:
    /// the manager's node data, which has the host and the process id. The name of an [owner in
    /// scope](crate::Owner::scope) is appended.
    ///
    /// Nodes that [stay in this process](Self::with_handoff) have the data that were set before.
    #[must_use]
    pub fn with_node_data(self, data: impl Into<Vec<u8>>) -> Self {
        Self { data: data.into().into(), ..self }
    }

    /// For errors and logs.
    pub(super) fn whole_path(&self) -> WholePath {
        self.manager.whole_path(&self.path)
    }

    /// The path of the semaphore, below the manager's chroot.
    #[must_use]
    pub fn path(&self) -> &ZnodePath {
        &self.path
    }

    /// Waits for one permit, without a limit of time.
    ///
    /// # Errors
    ///
    /// [`SemaphoreError::LimitsDisagree`](super::SemaphoreError::LimitsDisagree) if permits are in use under
    /// another fixed limit. [`SemaphoreError::NoLimit`](super::SemaphoreError::NoLimit) if the node of a
    /// shared limit has no limit. [`Error::Refused`] if the server refuses a node (access list, quota).
    /// [`Error::ConflictingKind`] if another kind of lock uses `<path>/locks`. [`Error::Closed`] after a
    /// shutdown has begun.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe at every await: the position in the queue is lost, and no node is left behind.
    #[track_caller]
    pub fn acquire(&self) -> impl Future<Output = Result<Lease, Error>> + Send {
        self.acquire_many(1)
    }

    /// Waits for `permits` permits, without a limit of time. Takes all of them at once.
    ///
    /// # Errors
    ///
    /// [`SemaphoreError::TooManyPermits`](super::SemaphoreError::TooManyPermits) if `permits` is above the
    /// limit, also if a shared limit was lowered during the wait. The contender leaves the queue then, so
    /// that it blocks no other one. [`Error::Config`] if `permits` is zero. Otherwise as
    /// [`acquire`](Self::acquire).
    ///
    /// # Cancel safety
    ///
    /// As [`acquire`](Self::acquire).
    #[track_caller]
    pub fn acquire_many(&self, permits: u32) -> impl Future<Output = Result<Lease, Error>> + Send {
        let place = Location::caller();
        async move { Ok(self.acquire_by(permits, Deadline::never()).await?.acquired_at(place)) }
    }

    /// Waits for one permit, for at most `timeout`.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`], which names the predecessor, or the number of free permits. With a `timeout` of
    /// zero, it means that the permit is not free now. Otherwise as [`acquire`](Self::acquire).
    ///
    /// # Cancel safety
    ///
    /// As [`acquire`](Self::acquire).
    #[track_caller]
    pub fn acquire_timeout(&self, timeout: Duration) -> impl Future<Output = Result<Lease, Error>> + Send {
        self.acquire_many_timeout(1, timeout)
    }

    /// Waits for `permits` permits, for at most `timeout`. Takes all of them at once.
    ///
    /// # Errors
    ///
    /// As [`acquire_many`](Self::acquire_many) and [`acquire_timeout`](Self::acquire_timeout).
    ///
    /// # Cancel safety
    ///
    /// As [`acquire`](Self::acquire).
    #[track_caller]
    pub fn acquire_many_timeout(
        &self,
        permits: u32,
        timeout: Duration,
    ) -> impl Future<Output = Result<Lease, Error>> + Send {
        let place = Location::caller();
        async move { Ok(self.acquire_by(permits, Deadline::after(timeout)).await?.acquired_at(place)) }
    }

    /// Takes one permit if one is free now. Returns `None` if none is free, and also if any contender is
    /// ahead, including a `try_acquire` of another process in progress. Those of one manager take turns.
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
    pub fn try_acquire(&self) -> impl Future<Output = Result<Option<Lease>, Error>> + Send {
        self.try_acquire_many(1)
    }

    /// As [`try_acquire`](Self::try_acquire), for `permits` permits at once.
    ///
    /// # Errors
    ///
    /// As [`acquire_many`](Self::acquire_many) and [`try_acquire`](Self::try_acquire).
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: no node is left behind.
    #[track_caller]
    pub fn try_acquire_many(
        &self,
        permits: u32,
    ) -> impl Future<Output = Result<Option<Lease>, Error>> + Send {
        let place = Location::caller();
        async move { Ok(self.try_by(permits).await?.ok().map(|lease| lease.acquired_at(place))) }
    }

    /// The number of permits that are free now, without regard to waiters. It may be stale when the caller
    /// reads it.
    ///
    /// # Errors
    ///
    /// [`SemaphoreError::NoLimit`](super::SemaphoreError::NoLimit) if the node of a shared limit has no
    /// limit. Otherwise as [`Znodes::read`](lockkeeper_core::Znodes::read).
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the call changes nothing.
    pub async fn available(&self) -> Result<u32, Error> {
        let limit = match &self.limit {
            PermitLimit::Fixed(fixed) => fixed.permits(),
            PermitLimit::Shared(shared) => shared.get().await?,
        };
        let leases = self.manager.znodes().children(&self.leases).await?;
        Ok(limit.saturating_sub(leases.map_or(0, |leases| count_of(leases.len()))))
    }
}

impl Debug for Semaphore {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Semaphore")
            .field("path", &self.whole_path())
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}
