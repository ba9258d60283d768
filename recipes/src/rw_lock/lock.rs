use std::sync::Arc;
use std::time::Duration;

use lockkeeper_core::{ConnectionManager, Deadline, Error, Hold, LockQueue, PathError, Phase, ZnodePath};

use super::guard::{ReadGuard, WriteGuard};
use super::reservation::{OwnerReservation, Turn};
use super::side::Side;
use super::slot::{Seat, SharedSideHold, SideSlots};
use crate::owner::{Owner, OwnerRegistry};

/// A read/write lock over all processes: many readers at a time, or one writer.
///
/// Cheap to clone; clones, and other objects with the same path in any process, are the same lock. The path belongs
/// to the lock alone: put nothing else below it. For work that is mostly writing, or very short, a
/// [`Mutex`](crate::Mutex) does the same for less.
///
/// # Ordering and fairness
///
/// First in, first out, in the order in which the server committed the contenders' nodes, across processes: readers
/// that come behind a waiting writer wait for it, so neither side starves. A writer's end wakes the readers between it
/// and the next writer or, if there are none, that writer; the last such reader's end wakes that writer.
///
/// # Owners
///
/// Reentrant by [`Owner`]: the one it is [bound to](Self::for_owner), else the one [in scope](Owner::scope). Without
/// either, every guard has an owner of its own, and nothing is reentrant.
///
/// | an owner that holds | may read | may write |
/// |---|---|---|
/// | a read | at once, also with a writer waiting | never: [`Error::WouldDeadlock`], see [`try_upgrade`](ReadGuard::try_upgrade) |
/// | a write | at once, and [downgrade](WriteGuard::downgrade) | at once |
///
/// # Cost
///
/// Acquire, when free: one round trip (a write and a read sent together). Release, downgrade, a first read under a
/// write: one each. An owner's further guards: none. Hand-over: the release's commit and one event; one read more where
/// that was not the only one in front, and for a writer behind a writer.
///
/// # Session loss
///
/// A guard of an expired session is lost, and told so before the server can grant the lock to anyone it excludes. A
/// wait goes on in the next session, at the end of the line. While an owner still keeps a lost guard, its further
/// acquires fail with [`Error::Lost`]: drop the lost guards first.
///
/// # Layout
///
/// That of Curator's `InterProcessReadWriteLock`: `<path>/_c_<uuid>-__READ__<sequence>` and
/// `<path>/_c_<uuid>-__WRIT__<sequence>`, ephemeral, below container nodes. A Java service on the same path and this
/// lock stand in one line. Curator before 5.5 lets a waiting writer in beside its own downgraded reader (CURATOR-621),
/// be that writer Java's or ours.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = lockkeeper_testserver::TestServer::start().await?;
/// # let servers = server.connect_string();
/// use lockkeeper::{ConnectionManager, RwLock};
///
/// let manager = ConnectionManager::connect(&servers).await?; // host:port,host:port,…
/// let lock = RwLock::new(&manager, "/locks/price-list")?;
///
/// let one = lock.read().await?;
/// let other = lock.read().await?; // beside it
/// assert!(lock.try_write().await?.is_none());
/// one.release().await?;
/// other.release().await?;
///
/// let write = lock.write().await?;
/// // … change it, and go on reading what was written: no writer comes between.
/// let read = write.downgrade().await?;
/// read.release().await?;
/// # Ok(())
/// # }
/// ```
///
/// Reentrant, for an owner:
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = lockkeeper_testserver::TestServer::start().await?;
/// # let manager = lockkeeper::ConnectionManager::connect(&server.connect_string()).await?;
/// use lockkeeper::{Owner, RwLock};
///
/// let owner = Owner::new("checkout");
/// let lock = RwLock::new(&manager, "/locks/price-list")?.for_owner(&owner);
/// let read = lock.read().await?;
/// let again = lock.read().await?; // no round trip
/// assert_eq!(lock.read_hold_count(&owner), 2);
/// assert!(lock.write().await.is_err()); // it would wait for itself
/// drop(again);
/// let write = read.try_upgrade().await?; // nobody else reads
/// # write.release().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct RwLock {
    read: LockQueue,
    write: LockQueue,
    data: Arc<[u8]>,
    owner: Option<Owner>,
    holders: Arc<OwnerRegistry>,
    slots: Arc<SideSlots>,
}

impl RwLock {
    /// The lock at `path`, below the manager's chroot. Nothing is sent.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] when the path is not one, or is the root.
    pub fn new<P>(manager: &ConnectionManager, path: P) -> Result<Self, Error>
    where
        P: TryInto<ZnodePath>,
        PathError: From<P::Error>,
    {
        let path: ZnodePath = path.try_into().map_err(PathError::from)?;
        let queue = |side: Side| LockQueue::new(manager, path.clone(), side.label(), side.rule());
        Ok(Self {
            read: queue(Side::Read)?,
            write: queue(Side::Write)?,
            data: manager.node_data().into(),
            owner: None,
            holders: OwnerRegistry::of(manager),
            slots: manager.shared_table(),
        })
    }

    /// What is written into the nodes of this lock's contenders, for people who look. Default: the manager's node
    /// data, which is host and process id. The owner's name, if there is one, is put behind it.
    #[must_use]
    pub fn node_data(self, data: impl Into<Vec<u8>>) -> Self {
        Self { data: data.into().into(), ..self }
    }

    /// The same lock, for `owner`: what is acquired through it is this owner's, whatever is in scope.
    #[must_use]
    pub fn for_owner(&self, owner: &Owner) -> Self {
        Self { owner: Some(owner.clone()), ..self.clone() }
    }

    /// The whole path of the lock, chroot included.
    #[must_use]
    pub fn path(&self) -> &ZnodePath {
        self.write.directory()
    }

    /// How many read guards `owner` has now, in this process.
    #[must_use]
    pub fn read_hold_count(&self, owner: &Owner) -> usize {
        self.slots.hold_count(self.path(), owner, Side::Read)
    }

    /// How many write guards `owner` has now, in this process.
    #[must_use]
    pub fn write_hold_count(&self, owner: &Owner) -> usize {
        self.slots.hold_count(self.path(), owner, Side::Write)
    }

    /// Waits until no earlier writer is left, for as long as it takes; at once if the owner holds the lock.
    ///
    /// # Errors
    ///
    /// [`Error::Lost`] when the owner still keeps a guard that was lost. [`Error::Refused`] when the server will not
    /// have the node (access list, quota). [`Error::ConflictingKind`] when another kind of lock uses the path.
    /// [`Error::SequenceExhausted`] when the server has counted to the end there. [`Error::Closed`] after a shutdown.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe at every await: your place in the line is lost, and no node is left behind.
    pub async fn read(&self) -> Result<ReadGuard, Error> {
        self.lock(Side::Read, Deadline::never()).await.map(ReadGuard::of)
    }

    /// As [`read`](Self::read), for at most `timeout`.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`], which names who was in front; with no time at all, when a writer is in front now. Else as
    /// [`read`](Self::read).
    ///
    /// # Cancel safety
    ///
    /// As [`read`](Self::read).
    pub async fn read_timeout(&self, timeout: Duration) -> Result<ReadGuard, Error> {
        self.lock(Side::Read, Deadline::after(timeout)).await.map(ReadGuard::of)
    }

    /// Takes the lock for reading if no writer is in front now, be it one that waits; `None` if one is.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`] when there was no connection or no answer within the manager's operation timeout; else as
    /// [`read`](Self::read).
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: no node is left behind.
    pub async fn try_read(&self) -> Result<Option<ReadGuard>, Error> {
        Ok(self.try_lock(Side::Read).await?.map(ReadGuard::of))
    }

    /// Waits until nobody earlier is left, for as long as it takes; at once if the owner holds the lock for writing.
    ///
    /// # Errors
    ///
    /// [`Error::WouldDeadlock`] when the owner reads: it would wait for itself. Nothing is sent then. Else as
    /// [`read`](Self::read).
    ///
    /// # Cancel safety
    ///
    /// As [`read`](Self::read).
    pub async fn write(&self) -> Result<WriteGuard, Error> {
        self.lock(Side::Write, Deadline::never()).await.map(WriteGuard::of)
    }

    /// As [`write`](Self::write), for at most `timeout`.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`], which names who was in front; with no time at all, when the lock is not free now. Else as
    /// [`write`](Self::write).
    ///
    /// # Cancel safety
    ///
    /// As [`read`](Self::read).
    pub async fn write_timeout(&self, timeout: Duration) -> Result<WriteGuard, Error> {
        self.lock(Side::Write, Deadline::after(timeout)).await.map(WriteGuard::of)
    }

    /// Takes the lock for writing if nobody is in front now, be it with a try; `None` if someone is.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`] when there was no connection or no answer within the manager's operation timeout; else as
    /// [`write`](Self::write).
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: no node is left behind.
    pub async fn try_write(&self) -> Result<Option<WriteGuard>, Error> {
        Ok(self.try_lock(Side::Write).await?.map(WriteGuard::of))
    }

    pub(super) async fn lock(&self, side: Side, deadline: Deadline) -> Result<Arc<SharedSideHold>, Error> {
        let owner = self.owner();
        // An answer is given time even where there is none for waiting.
        let limit = if deadline.has_passed() { self.limit() } else { deadline };
        if let Turn::Again(shared) = self.turn(side, &owner)? {
            return Ok(shared);
        }
        let reservation = OwnerReservation::of(self, &owner, deadline).await?;
        match reservation.turn(side)? {
            Turn::Again(shared) => Ok(shared),
            Turn::Beside(write) => {
                let held = self.add_reader(&write.held, &owner, limit).await?;
                Ok(reservation.enter(side, held))
            }
            Turn::Queue => {
                let held = self.queue_of(&owner, side).acquire(deadline).await?;
                Ok(reservation.enter(side, held))
            }
        }
    }

    pub(super) async fn try_lock(&self, side: Side) -> Result<Option<Arc<SharedSideHold>>, Error> {
        let owner = self.owner();
        if let Turn::Again(shared) = self.turn(side, &owner)? {
            return Ok(Some(shared));
        }
        // Another task of the same owner is acquiring: not free now.
        let Some(reservation) = OwnerReservation::try_of(self, &owner) else {
            return Ok(None);
        };
        let held = match reservation.turn(side)? {
            Turn::Again(shared) => return Ok(Some(shared)),
            Turn::Beside(write) => Some(self.add_reader(&write.held, &owner, self.limit()).await?),
            Turn::Queue => self.queue_of(&owner, side).try_acquire(self.limit()).await?,
        };
        Ok(held.map(|held| reservation.enter(side, held)))
    }

    /// What is left to do before any request.
    fn turn(&self, side: Side, owner: &Owner) -> Result<Turn, Error> {
        let (_seat, slot) = Seat::at(self, owner);
        Turn::of(slot.active(), side, self, owner)
    }

    /// A read node beside the owner's own write node. Cancel safe.
    pub(super) async fn add_reader(
        &self,
        write: &Hold,
        owner: &Owner,
        deadline: Deadline,
    ) -> Result<Hold, Error> {
        let data = self.data_of(owner);
        tokio::select! {
            biased;
            held = write.add_reader(Side::Read.label(), &data) => held,
            () = deadline.passed() => {
                let (path, waited) = (self.path().to_string(), deadline.waited());
                Err(Error::Timeout { phase: Phase::Answer, path, waited })
            }
        }
    }

    pub(crate) fn queue_of(&self, owner: &Owner, side: Side) -> LockQueue {
        let queue = match side {
            Side::Read => &self.read,
            Side::Write => &self.write,
        };
        queue.clone().with_node_data(self.data_of(owner))
    }

    pub(super) fn queues(&self) -> (&LockQueue, &LockQueue) {
        (&self.read, &self.write)
    }

    pub(super) fn data_of(&self, owner: &Owner) -> Vec<u8> {
        owner.append_owner(&self.data)
    }

    /// Whose an acquire is.
    pub(crate) fn owner(&self) -> Owner {
        self.named_owner().unwrap_or_else(Owner::anonymous)
    }

    pub(super) fn named_owner(&self) -> Option<Owner> {
        self.owner.clone().or_else(Owner::current)
    }

    pub(super) fn manager(&self) -> &ConnectionManager {
        self.write.manager()
    }

    pub(super) fn limit(&self) -> Deadline {
        Deadline::after(self.write.manager().operation_timeout())
    }

    pub(super) fn holders(&self) -> &Arc<OwnerRegistry> {
        &self.holders
    }

    pub(super) fn slots(&self) -> &SideSlots {
        &self.slots
    }
}
