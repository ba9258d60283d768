//! Several holders at a time, up to a limit.
//!
//! # Protocol
//!
//! Whoever wants permits stands in one line, an inner mutex at `<path>/locks`. The first in it lists `<path>/leases`,
//! where each permit that is out is a node, and waits there until there is room. Then one transaction makes its
//! leases and deletes its place in line: the next one lists what is true.
//!
//! The line is listed *before* the leases. The other way round, who was in front could take the last permit and leave
//! the line between the two lists, and both would go in. What is read behind the list of the line, in the same round
//! trip, is read by its head, and so nobody but leavers changes it.
//!
//! The next one, if it is of this process and right behind, is told how many permits can be out, and asks only when that
//! leaves no room: nobody takes any in between, and what comes back makes them fewer.
//!
//! Source: Curator's `InterProcessSemaphoreV2`, whose layout it is. That takes `n` leases one by one, and two callers can
//! stop each other half way; here all are taken in one turn.

mod continuity;
mod inspect;
mod lease;
mod limit;
mod permit_acquire;
mod permit_state;
mod permits;
mod shared_limit;
mod ticket;

use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;
use std::time::Duration;

use futures::future::try_join_all;
use lockkeeper_core::{
    ConfigError, ConnectionManager, Deadline, Error, Hold, Label, LockQueue, PathError, Phase, Read, Rule,
    ZnodePath,
};

pub use self::lease::{Lease, LeaseInfo};
use self::limit::Limit;
use self::permit_acquire::NotTaken;
pub use self::permits::Permits;
pub use self::shared_limit::SharedLimit;
pub use self::ticket::SemaphoreTicket;
use crate::limits;
use crate::owner::Owner;

/// Leases are counted, not ordered; on their directory they are alone.
const LEASES: Rule = Rule::blocked_by(&[lockkeeper_core::Kind::Lease]);

/// A semaphore over all processes: at most so many permits are out at a time.
///
/// For *at most N at the same time*. For *at most N starts in any minute* use a
/// [`RateLimiter`](crate::RateLimiter); for one at a time, a [`Mutex`](crate::Mutex) is cheaper.
///
/// Cheap to clone; clones, and other objects with the same path in any process, are the same semaphore. The path
/// belongs to it alone.
///
/// # The limit
///
/// Fixed, and given by everyone who uses the semaphore ([`new`](Self::new)); or kept in a node, and changed while
/// running ([`with_shared_limit`](Self::with_shared_limit)). Raising a shared limit wakes who waits; lowering it revokes
/// nothing, and nothing is granted until enough has come back. Fixed limits that disagree are an error while permits
/// are out; once none are, whoever comes first may bring a new limit. Curator's clients neither write nor read what a
/// fixed limit is recorded in: with them, agree by other means, or share the limit.
///
/// # Ordering and fairness
///
/// First in, first out, head of line: who wants many waits in front until they are free, and is not overtaken by those
/// who want few. All permits of a request are granted in one turn or none, so that two who want three of four never
/// stop each other half way.
///
/// # Cost
///
/// Acquire, when free: two round trips, for any number of permits. Release: one. A wait at the head of the line adds one
/// read for each change among the leases, and only the head reads. Where tasks of one process follow each other, each
/// next one takes without a read as long as the permits last that the last read showed.
///
/// # Session loss
///
/// The leases of a crashed process come back with its session. A lease of an expired session is lost, and told so
/// before the server can count it out. A wait goes on in the next session, at the end of the line.
///
/// # Layout
///
/// That of Curator's `InterProcessSemaphoreV2`: `<path>/locks` is an `InterProcessMutex`, and
/// `<path>/leases/_c_<uuid>-lease-<sequence>` is a permit. *All* children of `leases` are counted, as Curator counts them:
/// put nothing else there. A fixed limit is recorded in the data of `leases`, a shared one is Curator's `SharedCount`;
/// both are a big-endian integer of four bytes.
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
/// use lockkeeper::{Semaphore, SharedLimit};
///
/// let limit = SharedLimit::new(&manager, "/licences/limit")?;
/// limit.set(2).await?;
/// let licences = Semaphore::with_shared_limit(&manager, "/licences/linker", &limit)?;
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
    manager: ConnectionManager,
    /// The whole path.
    path: ZnodePath,
    /// Below the manager's chroot.
    leases: ZnodePath,
    queue: LockQueue,
    /// For a turn that reads along what limit is recorded, or is set.
    reading_line: LockQueue,
    leases_queue: LockQueue,
    limit: Limit,
    data: Arc<[u8]>,
}

impl Semaphore {
    /// The semaphore at `path`, below the manager's chroot, with `permits` in all. Nothing is sent.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] when the path is not one, or is the root, or when there are no permits at all.
    pub fn new<P>(manager: &ConnectionManager, path: P, permits: usize) -> Result<Self, Error>
    where
        P: TryInto<ZnodePath>,
        PathError: From<P::Error>,
    {
        Self::at(manager, path.try_into().map_err(PathError::from)?, Limit::fixed(permits)?)
    }

    /// The semaphore at `path` with as many permits as `limit` says at the time. Nothing is sent.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] when the path is not one, or is the root, or the limit is of another manager.
    pub fn with_shared_limit<P>(
        manager: &ConnectionManager,
        path: P,
        limit: &SharedLimit,
    ) -> Result<Self, Error>
    where
        P: TryInto<ZnodePath>,
        PathError: From<P::Error>,
    {
        if !limit.manager().is_same_as(manager) {
            return Err(Error::Config(ConfigError::Setting {
                name: "limit",
                value: "of another connection manager".to_owned(),
                advice: "make the shared limit with the manager of the semaphore",
            }));
        }
        Self::at(manager, path.try_into().map_err(PathError::from)?, Limit::Shared(limit.clone()))
    }

    fn at(manager: &ConnectionManager, path: ZnodePath, limit: Limit) -> Result<Self, Error> {
        if path.is_root() {
            return Err(Error::Config(ConfigError::Setting {
                name: "path",
                value: "/".to_owned(),
                advice: "give the semaphore a path of its own, such as /semaphores/a",
            }));
        }
        let leases = path.child("leases")?;
        let queue = LockQueue::new(manager, path.child("locks")?, Label::LOCK, Rule::MUTEX)?
            .with_metric_name("semaphore_turn");
        let (list, read) = (Read::Children(leases.clone()), limit.limit_read(&leases));
        Ok(Self {
            manager: manager.clone(),
            queue: queue.clone().with_reads(std::slice::from_ref(&list))?,
            reading_line: queue.with_reads(&[list, read])?,
            leases_queue: LockQueue::new(manager, leases.clone(), Label::LEASE, LEASES)?,
            path: manager.full_path(&path)?,
            leases,
            limit,
            data: manager.node_data().into(),
        })
    }

    /// What is written into the nodes of leases taken through this object, and of its places in line, for people who
    /// look. Default: the manager's node data, which is host and process id. The name of an
    /// [owner in scope](Owner::scope) is put behind it.
    #[must_use]
    pub fn node_data(self, data: impl Into<Vec<u8>>) -> Self {
        Self { data: data.into().into(), ..self }
    }

    /// The whole path of the semaphore, chroot included.
    #[must_use]
    pub fn path(&self) -> &ZnodePath {
        &self.path
    }

    /// Waits for one permit for as long as it takes.
    ///
    /// # Errors
    ///
    /// [`Error::LimitsDisagree`] when permits are out under another fixed limit, [`Error::NoLimit`] when the node of a
    /// shared one does not keep any. [`Error::Refused`] when the server will not have the nodes (access list, quota),
    /// [`Error::ConflictingKind`] when another kind of lock uses `<path>/locks`, [`Error::Closed`] after a shutdown.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe at every await: your place in the line is lost, and no node is left behind.
    pub async fn acquire(&self) -> Result<Lease, Error> {
        self.wait(1, Deadline::never()).await
    }

    /// Waits for `permits` at once: all of them, or none.
    ///
    /// # Errors
    ///
    /// [`Error::TooManyPermits`] when there are not so many in all, be it that a shared limit was lowered meanwhile: the
    /// line is left, so that others may go on. [`Error::Config`] for no permit. Else as [`acquire`](Self::acquire).
    ///
    /// # Cancel safety
    ///
    /// As [`acquire`](Self::acquire).
    pub async fn acquire_many(&self, permits: usize) -> Result<Lease, Error> {
        self.wait(permits, Deadline::never()).await
    }

    /// Waits for one permit for at most `timeout`.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`], which names who was in front, or how many permits were free; with no time at all, when the
    /// permit is not to be had now. Else as [`acquire`](Self::acquire).
    ///
    /// # Cancel safety
    ///
    /// As [`acquire`](Self::acquire).
    pub async fn acquire_timeout(&self, timeout: Duration) -> Result<Lease, Error> {
        self.acquire_many_timeout(1, timeout).await
    }

    /// Waits for `permits` at once for at most `timeout`.
    ///
    /// # Errors
    ///
    /// As [`acquire_many`](Self::acquire_many) and [`acquire_timeout`](Self::acquire_timeout).
    ///
    /// # Cancel safety
    ///
    /// As [`acquire`](Self::acquire).
    pub async fn acquire_many_timeout(&self, permits: usize, timeout: Duration) -> Result<Lease, Error> {
        self.acquire_by(permits, Deadline::after(timeout)).await
    }

    /// Takes one permit if it is to be had now. `None` when none is free, and also when someone is in front: be it
    /// waiting, or passing through with a try of its own.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`] when there was no connection or no answer within the manager's operation timeout; else as
    /// [`acquire`](Self::acquire).
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: no node is left behind.
    pub async fn try_acquire(&self) -> Result<Option<Lease>, Error> {
        self.try_acquire_many(1).await
    }

    /// As [`try_acquire`](Self::try_acquire), for `permits` at once.
    ///
    /// # Errors
    ///
    /// As [`acquire_many`](Self::acquire_many) and [`try_acquire`](Self::try_acquire).
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: no node is left behind.
    pub async fn try_acquire_many(&self, permits: usize) -> Result<Option<Lease>, Error> {
        Ok(self.attempt(permits).await?.ok())
    }

    /// So many permits as a [`Lock`](crate::Lock) that can be taken together with others.
    #[must_use]
    pub fn permits(&self, permits: usize) -> Permits {
        Permits::of(self, permits)
    }

    /// How many permits are free now, waiting takers left out of account. It may have changed when you read this.
    ///
    /// # Errors
    ///
    /// [`Error::NoLimit`] when the node of a shared limit does not keep any; else as
    /// [`Znodes::read`](lockkeeper_core::Znodes::read).
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: nothing is changed.
    pub async fn available(&self) -> Result<usize, Error> {
        let limit = match &self.limit {
            Limit::Fixed(fixed) => fixed.permits(),
            Limit::Shared(shared) => shared.read().await?,
        };
        let taken = self.manager.znodes().children(&self.leases).await?.map_or(0, |leases| leases.len());
        Ok(limit.saturating_sub(taken))
    }

    /// Who holds permits, one entry for each, the oldest first.
    ///
    /// # Errors
    ///
    /// As [`Znodes::read`](lockkeeper_core::Znodes::read).
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: nothing is changed.
    pub async fn leases(&self) -> Result<Vec<LeaseInfo>, Error> {
        let znodes = self.manager.znodes();
        let names = znodes.children(&self.leases).await?.unwrap_or_default();
        let reads = names.into_iter().map(async |name| {
            let read = znodes.read(&self.leases.child(&name)?).await?;
            Ok::<_, Error>(read.map(|(data, stat)| LeaseInfo::new(name, data, &stat)))
        });
        // One that is given back between the list and the read is none.
        let mut leases: Vec<LeaseInfo> = try_join_all(reads).await?.into_iter().flatten().collect();
        leases.sort_by(|a, b| (a.czxid, &a.name).cmp(&(b.czxid, &b.name)));
        Ok(leases)
    }

    /// The line of those who want permits: a hold of it is a turn, to be spent by [`take`](Self::take).
    pub(crate) fn queue(&self) -> LockQueue {
        let queue = if self.limit.is_to_be_read() { &self.reading_line } else { &self.queue };
        queue.clone().with_node_data(self.signed_data())
    }

    /// Where its leases stand.
    pub(crate) fn leases_queue(&self) -> &LockQueue {
        &self.leases_queue
    }

    pub(crate) fn manager(&self) -> &ConnectionManager {
        &self.manager
    }

    /// What stands in the nodes.
    fn signed_data(&self) -> Vec<u8> {
        Owner::current().map_or_else(|| self.data.to_vec(), |owner| owner.append_owner(&self.data))
    }

    /// Waits until `deadline`, or only tries where no time is given for waiting.
    pub(crate) async fn acquire_by(&self, permits: usize, deadline: Deadline) -> Result<Lease, Error> {
        if !deadline.is_immediate() {
            return self.wait(permits, deadline).await;
        }
        let phase = match self.attempt(permits).await? {
            Ok(lease) => return Ok(lease),
            Err(phase) => phase,
        };
        Err(Error::Timeout { phase, path: self.path.to_string(), waited: deadline.waited() })
    }

    async fn wait(&self, permits: usize, deadline: Deadline) -> Result<Lease, Error> {
        self.check(permits)?;
        loop {
            let hold = self.queue().acquire(deadline).await?;
            match self.take(hold, permits, deadline).await {
                Ok(lease) => return Ok(lease),
                // At the end of the line.
                Err(NotTaken::HoldLost) => {}
                Err(NotTaken::Failed(error)) => return Err(error),
            }
        }
    }

    /// What is to be had now, or what it would have to wait for.
    async fn attempt(&self, permits: usize) -> Result<Result<Lease, Phase>, Error> {
        self.check(permits)?;
        let limit = Deadline::after(self.manager.operation_timeout());
        loop {
            let hold = match self.queue().acquire(Deadline::after(Duration::ZERO)).await {
                Ok(hold) => hold,
                Err(Error::Timeout { phase: phase @ Phase::InLine { .. }, .. }) => return Ok(Err(phase)),
                Err(error) => return Err(error),
            };
            match self.try_take(hold, permits, limit).await {
                Ok(taken) => return Ok(taken),
                Err(NotTaken::HoldLost) => {}
                Err(NotTaken::Failed(error)) => return Err(error),
            }
        }
    }

    /// Spends a turn that was got together with others: waits for permits only where there is a deadline. `None` when
    /// there are not enough, or the turn was lost.
    pub(crate) async fn enter(
        &self,
        hold: Hold,
        permits: usize,
        wait: Option<Deadline>,
    ) -> Result<Option<Lease>, Error> {
        self.check(permits)?;
        let taken = match wait {
            Some(deadline) => self.take(hold, permits, deadline).await.map(Some),
            None => {
                let limit = Deadline::after(self.manager.operation_timeout());
                self.try_take(hold, permits, limit).await.map(Result::ok)
            }
        };
        match taken {
            Ok(lease) => Ok(lease),
            Err(NotTaken::HoldLost) => Ok(None),
            Err(NotTaken::Failed(error)) => Err(error),
        }
    }

    /// Refuses what can never be granted, before anything is sent.
    pub(super) fn check(&self, asked: usize) -> Result<(), Error> {
        if asked == 0 {
            return Err(Error::Config(ConfigError::Setting {
                name: "permits",
                value: "0".to_owned(),
                advice: "ask for one or more",
            }));
        }
        match &self.limit {
            Limit::Fixed(fixed) if asked > fixed.permits() => Err(self.too_many(asked, fixed.permits())),
            _ => limits::check("permits", asked, &self.path, &self.data),
        }
    }

    fn too_many(&self, asked: usize, limit: usize) -> Error {
        Error::TooManyPermits { path: self.path.to_string(), asked, limit }
    }
}

impl Debug for Semaphore {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Semaphore")
            .field("path", &self.path)
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}
