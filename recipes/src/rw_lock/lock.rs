use std::panic::Location;
use std::time::Duration;

use lockkeeper_core::{ConnectionManager, Deadline, Error, IntoPath, Label, LockQueue, Rule, ZnodePath};

use super::guard::{ReadGuard, WriteGuard};
use super::read_sharing::ReadSharing;
use crate::lock::{AcquiredAt, Guard, OwnerShare};
use crate::owner::{HoldShare, Owner, OwnerHolds, Side, anonymous};
use crate::sharing::HandOffPolicy;

/// A read/write lock over all processes: many readers at a time, or one writer.
///
/// A clone is cheap. Clones, and other objects with the same path in any process, are the same lock. The path
/// belongs to the lock alone: create no other node below it. For work that is mostly writing, or very short,
/// a [`Mutex`](crate::Mutex) has the same effect at a lower cost.
///
/// # Ordering and fairness
///
/// First in, first out across processes, in the order in which the server committed the contenders' nodes.
/// Readers behind a waiting writer wait for it, so neither side starves. The release of a writer wakes the
/// readers between it and the next writer. If there are none, it wakes that writer; otherwise the last of
/// these readers wakes it.
///
/// # Owners
///
/// The lock is reentrant by [`Owner`]: the one of [`for_owner`](Self::for_owner), or otherwise the one [in
/// scope](Owner::scope). Without an owner, every guard has an owner of its own, and no acquire is reentrant.
///
/// | an owner that holds | may read | may write |
/// |---|---|---|
/// | a read | at once, also if a writer waits | never: `WouldDeadlock`, [`ReadGuard::try_upgrade`] |
/// | a write | at once, and [downgrade](WriteGuard::downgrade) | at once |
///
/// # Cost
///
/// Acquire of a free lock: one round trip, for a write and a read that are sent together. Release, downgrade,
/// and the first read under a write: one round trip each. Further guards of an owner: none. Hand-off: the
/// commit of the release, and one event. One more read is needed in two cases: other contenders were ahead
/// besides the predecessor, or a writer follows a writer. Readers of the same manager behind a writer hold as
/// soon as its release is sent.
///
/// # Session loss
///
/// A guard of an expired session is lost. Its [`lost()`](Guard::lost) resolves before the server can grant
/// the lock to a contender that the guard excludes. A waiter queues again in the next session, at the end of
/// the queue. While an owner still keeps a lost guard, its further acquires fail with [`Error::Lost`]: drop
/// the lost guards first.
///
/// # Layout
///
/// The layout of Curator's `InterProcessReadWriteLock`: `<path>/_c_<uuid>-__READ__<sequence>` and
/// `<path>/_c_<uuid>-__WRIT__<sequence>`, ephemeral, below container nodes. A Java service with the same path
/// and this lock wait in one queue. If a client with Curator before 5.5 downgrades, the next writer is
/// granted beside its reader, whether that writer is Java's or ours (CURATOR-621).
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
/// // … change the list, and continue to read it: no writer is granted in between.
/// let read = write.downgrade().await?;
/// read.release().await?;
/// # Ok(())
/// # }
/// ```
///
/// Reentrant acquires of an owner:
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
/// let write = read.try_upgrade().await?; // the sole reader
/// # write.release().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct RwLock {
    holds: OwnerHolds,
    owner: Option<Owner>,
    /// The nodes that the readers without an owner share.
    sharing: Option<ReadSharing>,
}

impl RwLock {
    /// Makes the lock at `path`, below the manager's chroot. Sends nothing.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] if the path is malformed, or is the root.
    pub fn new(manager: &ConnectionManager, path: impl IntoPath) -> Result<Self, Error> {
        let path = path.into_path()?;
        let write = LockQueue::new(manager, path.clone(), Label::WRITE, Rule::WRITER)?;
        let read = LockQueue::new(manager, path, Label::READ, Rule::READER)?;
        Ok(Self { holds: OwnerHolds::new(write, Some(read)), owner: None, sharing: None })
    }

    /// Sets the data of this lock's nodes, for people who inspect the lock. Default: the manager's node data,
    /// which has the host and the process id. The owner's name, if there is one, is appended.
    #[must_use]
    pub fn with_node_data(self, data: impl Into<Vec<u8>>) -> Self {
        Self { holds: self.holds.with_node_data(data.into()), ..self }
    }

    /// Returns the same lock for `owner`: its acquires are those of this owner, whichever owner is in scope.
    #[must_use]
    pub fn for_owner(&self, owner: &Owner) -> Self {
        Self { owner: Some(owner.clone()), ..self.clone() }
    }

    /// The path of the lock, below the manager's chroot.
    #[must_use]
    pub fn path(&self) -> &ZnodePath {
        self.holds.path()
    }

    /// The number of read guards that `owner` has now, in this process.
    #[must_use]
    pub fn read_hold_count(&self, owner: &Owner) -> u32 {
        self.holds.count(Side::Read, owner)
    }

    /// The number of write guards that `owner` has now, in this process.
    #[must_use]
    pub fn write_hold_count(&self, owner: &Owner) -> u32 {
        self.holds.count(Side::Write, owner)
    }

    /// Waits until no writer is ahead, without a limit of time. Returns at once if the owner holds the lock.
    ///
    /// # Errors
    ///
    /// [`Error::Lost`] if the owner still keeps a lost guard. [`Error::Refused`] if the server refuses the
    /// node (access list, quota). [`Error::ConflictingKind`] if another kind of lock uses the path.
    /// [`Error::SequenceExhausted`] if the server's counter for this path has ended. [`Error::Closed`] after
    /// a shutdown has begun.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe at every await: the position in the queue is lost, and no node is left behind.
    #[track_caller]
    pub fn read(&self) -> impl Future<Output = Result<ReadGuard, Error>> + Send {
        let place = Location::caller();
        async move { Ok(self.acquire(Side::Read, Deadline::never()).await?.acquired_at(place)) }
    }

    /// As [`read`](Self::read), for at most `timeout`.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`], which names the predecessor. With a `timeout` of zero, it means that a writer is
    /// ahead now. Otherwise as [`read`](Self::read).
    ///
    /// # Cancel safety
    ///
    /// As [`read`](Self::read).
    #[track_caller]
    pub fn read_timeout(&self, timeout: Duration) -> impl Future<Output = Result<ReadGuard, Error>> + Send {
        let place = Location::caller();
        async move { Ok(self.acquire(Side::Read, Deadline::after(timeout)).await?.acquired_at(place)) }
    }

    /// Takes the lock for reading if no writer is ahead now. Returns `None` if one is, holding or waiting.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`] if there was no connection or no answer within the manager's operation timeout.
    /// Otherwise as [`read`](Self::read).
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: no node is left behind.
    #[track_caller]
    pub fn try_read(&self) -> impl Future<Output = Result<Option<ReadGuard>, Error>> + Send {
        let place = Location::caller();
        async move { Ok(self.try_acquire(Side::Read).await?.map(|guard| guard.acquired_at(place))) }
    }

    /// Waits until no contender is ahead, without a limit of time. Returns at once if the owner holds the
    /// lock for writing.
    ///
    /// # Errors
    ///
    /// [`WouldDeadlock`](crate::owner::WouldDeadlock) if the owner holds the lock for reading: it would
    /// wait for itself. Nothing is sent then. Otherwise as [`read`](Self::read).
    ///
    /// # Cancel safety
    ///
    /// As [`read`](Self::read).
    #[track_caller]
    pub fn write(&self) -> impl Future<Output = Result<WriteGuard, Error>> + Send {
        let place = Location::caller();
        async move { Ok(self.acquire(Side::Write, Deadline::never()).await?.acquired_at(place)) }
    }

    /// As [`write`](Self::write), for at most `timeout`.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`], which names the predecessor. With a `timeout` of zero, it means that the lock is
    /// not free now. Otherwise as [`write`](Self::write).
    ///
    /// # Cancel safety
    ///
    /// As [`read`](Self::read).
    #[track_caller]
    pub fn write_timeout(&self, timeout: Duration) -> impl Future<Output = Result<WriteGuard, Error>> + Send {
        let place = Location::caller();
        async move { Ok(self.acquire(Side::Write, Deadline::after(timeout)).await?.acquired_at(place)) }
    }

    /// Takes the lock for writing if it is free now. Returns `None` if any contender is ahead, including
    /// another try in progress.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`] if there was no connection or no answer within the manager's operation timeout.
    /// Otherwise as [`write`](Self::write).
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: no node is left behind.
    #[track_caller]
    pub fn try_write(&self) -> impl Future<Output = Result<Option<WriteGuard>, Error>> + Send {
        let place = Location::caller();
        async move { Ok(self.try_acquire(Side::Write).await?.map(|guard| guard.acquired_at(place))) }
    }

    async fn acquire<K>(&self, side: Side, deadline: Deadline) -> Result<Guard<OwnerShare<K>>, Error> {
        self.acquire_share(side, deadline).await.map(Guard::sharing)
    }

    async fn try_acquire<K>(&self, side: Side) -> Result<Option<Guard<OwnerShare<K>>>, Error> {
        Ok(self.try_share(side).await?.map(Guard::sharing))
    }

    pub(super) async fn acquire_share(&self, side: Side, deadline: Deadline) -> Result<HoldShare, Error> {
        match (&self.sharing, side) {
            (Some(sharing), Side::Read) if self.named_owner().is_none() => {
                if !deadline.is_immediate() {
                    return Box::pin(sharing.acquire(&self.holds, deadline)).await;
                }
                if let Some(share) = sharing.join(&self.holds).await? {
                    return Ok(share);
                }
            }
            (Some(sharing), Side::Write) => sharing.end_for_writer(),
            _ => {}
        }
        self.holds.acquire(side, &self.owner(), deadline).await
    }

    pub(super) async fn try_share(&self, side: Side) -> Result<Option<HoldShare>, Error> {
        match (&self.sharing, side) {
            (Some(sharing), Side::Read) if self.named_owner().is_none() => {
                if let Some(share) = sharing.join(&self.holds).await? {
                    return Ok(Some(share));
                }
            }
            (Some(sharing), Side::Write) => sharing.end_idle(),
            _ => {}
        }
        self.holds.try_acquire(side, &self.owner()).await
    }

    pub(super) fn sharing_by(self, hand_off: HandOffPolicy) -> Self {
        Self { sharing: Some(ReadSharing::new(hand_off)), ..self }
    }

    pub(super) fn holds(&self) -> &OwnerHolds {
        &self.holds
    }

    /// The owner of an acquire.
    pub(super) fn owner(&self) -> Owner {
        self.named_owner().unwrap_or_else(anonymous)
    }

    pub(super) fn named_owner(&self) -> Option<Owner> {
        self.owner.clone().or_else(Owner::current)
    }
}
