use std::time::Duration;

use lockkeeper_core::{Error, IntoPath, PresenceState, ViewBounds, ZnodePath};

use super::generic::Blocking;
use super::group::Group;
use super::guard::Guard;
use super::manager::ConnectionManager;
use super::watch::{ShareWatch, Watch};
use crate::{PartitionInspection, PartitionShare, ReleaseReason};

/// A set of items that the members of a group share, for threads. Everything is as for the async
/// [`Partition`](crate::Partition).
///
/// # Examples
///
/// ```
/// # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
/// # let server = runtime.block_on(lockkeeper_testserver::TestServer::start())?;
/// # let manager = lockkeeper::blocking::ConnectionManager::connect(&server.connect_string())?;
/// use std::time::Duration;
/// use lockkeeper::blocking::Partition;
///
/// let partition = Partition::new(&manager, "/shards")?;
/// partition.add(["0"])?;
/// let mut member = partition.join("worker-3")?;
/// let item = member.next()?.expect("an item");
/// while item.wait_release_requested(Duration::from_millis(10)).is_none() {
///     // A step of the work.
/// #   break;
/// }
/// drop(item);
/// member.leave()?;
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
pub type Partition = Blocking<crate::Partition>;

/// A member of a [`Partition`]. A drop leaves in the background.
pub type PartitionMember = Blocking<crate::PartitionMember>;

/// An item of a [`Partition`] that this member has.
pub type AssignedItem = Guard<crate::ItemHold>;

impl Partition {
    /// Makes the partition at `path`, below the manager's chroot. Sends nothing.
    ///
    /// # Errors
    ///
    /// As [`Partition::new`](crate::Partition::new).
    pub fn new(manager: &ConnectionManager, path: impl IntoPath) -> Result<Self, Error> {
        Ok(Self::on(manager, crate::Partition::new(manager.as_async(), path)?))
    }

    /// The path of the partition, below the manager's chroot.
    #[must_use]
    pub fn path(&self) -> &ZnodePath {
        self.inner.path()
    }

    /// Adds these items, and leaves those alone that exist.
    ///
    /// # Errors
    ///
    /// [`CannotBlock`](super::CannotBlock) within an async task. Otherwise as
    /// [`Partition::add`](crate::Partition::add).
    pub fn add<S: AsRef<str>>(&self, items: impl IntoIterator<Item = S>) -> Result<(), Error> {
        self.block(self.inner.add(items))
    }

    /// Removes these items.
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add).
    pub fn remove<S: AsRef<str>>(&self, items: impl IntoIterator<Item = S>) -> Result<(), Error> {
        self.block(self.inner.remove(items))
    }

    /// The items as they are now, in order: a snapshot.
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add).
    pub fn items(&self) -> Result<Vec<String>, Error> {
        self.block(self.inner.items())
    }

    /// Begins to join with this id, in the background.
    ///
    /// # Errors
    ///
    /// [`CannotBlock`](super::CannotBlock) within an async task. Otherwise as
    /// [`Partition::join`](crate::Partition::join).
    pub fn join(&self, id: &str) -> Result<PartitionMember, Error> {
        self.join_within(id, ViewBounds::default())
    }

    /// As [`join`](Self::join), with these bounds for the view of the members and for that of the items.
    ///
    /// # Errors
    ///
    /// As [`join`](Self::join).
    pub fn join_within(&self, id: &str, bounds: ViewBounds) -> Result<PartitionMember, Error> {
        // The task of the member runs on the thread of the manager.
        let join = async { self.inner.join_within(id, bounds) };
        Ok(self.beside(self.block(join)?))
    }

    /// The group of the members: see [`Partition::group`](crate::Partition::group).
    ///
    /// # Errors
    ///
    /// As that method.
    pub fn group(&self) -> Result<Group, Error> {
        Ok(self.beside(self.inner.group()?))
    }

    /// The member that has an item once all members are the given ones: see
    /// [`Partition::owner_among`](crate::Partition::owner_among).
    #[must_use]
    pub fn owner_among<'a>(item: &str, members: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
        crate::Partition::owner_among(item, members)
    }

    /// Returns the members, the items, and the holder and the waiters of each item.
    ///
    /// # Errors
    ///
    /// [`CannotBlock`](super::CannotBlock) within an async task. Otherwise as
    /// [`Partition::inspect`](crate::Partition::inspect).
    pub fn inspect(&self) -> Result<PartitionInspection, Error> {
        self.block(self.inner.inspect())
    }
}

impl PartitionMember {
    /// The id of the member.
    #[must_use]
    pub fn id(&self) -> &str {
        self.inner.id()
    }

    /// Whether this process is a member, as far as is known. Never blocks.
    #[must_use]
    pub fn state(&self) -> PresenceState {
        self.inner.state()
    }

    /// The partition.
    #[must_use]
    pub fn partition(&self) -> Partition {
        self.beside(self.inner.partition().clone())
    }

    /// The share of this member, followed: what belongs to it, and what it holds.
    #[must_use]
    pub fn assigned(&self) -> ShareWatch {
        Watch::new(self.inner.assigned(), &self.thread, self.inner.whole_path())
    }

    /// Waits for the next item that this member holds, without a limit of time. `None` once a shutdown of
    /// the manager has begun.
    ///
    /// # Errors
    ///
    /// [`CannotBlock`](super::CannotBlock) within an async task.
    #[expect(clippy::should_implement_trait, reason = "an iterator would repeat a refusal without end")]
    pub fn next(&mut self) -> Result<Option<AssignedItem>, Error> {
        let item = self.thread.block_checked(self.inner.next())?;
        Ok(item.map(|item| Guard::new(item, &self.thread)))
    }

    /// As [`next`](Self::next), for at most `timeout`.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`]: the item is returned next time. Otherwise as [`next`](Self::next).
    pub fn next_timeout(&mut self, timeout: Duration) -> Result<Option<AssignedItem>, Error> {
        let (waiting, path) = ("waiting for an item of the partition", self.inner.whole_path());
        let item = self.thread.block_within(timeout, self.inner.next(), waiting, &path)?;
        Ok(item.map(|item| Guard::new(item, &self.thread)))
    }

    /// Waits until this member holds the items that belong to it and no other, for at most `timeout`.
    ///
    /// # Errors
    ///
    /// [`CannotBlock`](super::CannotBlock) within an async task. Otherwise as
    /// [`PartitionMember::settled`](crate::PartitionMember::settled).
    pub fn settled(&self, timeout: Duration) -> Result<PartitionShare, Error> {
        self.block(self.inner.settled(timeout))
    }

    /// Leaves the group, and hands over: see [`PartitionMember::leave`](crate::PartitionMember::leave). Other
    /// threads have to drop the guards meanwhile.
    ///
    /// # Errors
    ///
    /// [`CannotBlock`](super::CannotBlock) within an async task: the member leaves
    /// in the background. Otherwise as [`PartitionMember::leave`](crate::PartitionMember::leave).
    pub fn leave(self) -> Result<(), Error> {
        let Self { inner, thread } = self;
        thread.block_checked(inner.leave())?
    }
}

impl AssignedItem {
    /// The name of the item.
    #[must_use]
    pub fn item(&self) -> &str {
        self.inner.item()
    }

    /// Waits for at most `timeout` until this member has to give up the item, and returns the reason:
    /// see [`AssignedItem::release_requested`](crate::AssignedItem::release_requested).
    ///
    /// It works also within an async task, and blocks the thread of that task. On the manager's own thread it
    /// does not wait.
    #[must_use]
    pub fn wait_release_requested(&self, timeout: Duration) -> Option<ReleaseReason> {
        let requested = self.inner.release_requested();
        let requested = async { tokio::time::timeout(timeout, requested).await.ok() };
        self.thread.block_always(requested).unwrap_or_else(|| {
            let is_lost = self.inner.check().is_err();
            is_lost.then_some(ReleaseReason::Lost)
        })
    }
}
