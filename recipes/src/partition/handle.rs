use std::fmt::{self, Debug, Formatter};

use futures::{StreamExt, TryStreamExt, stream};
use lockkeeper_core::{
    ConfigError, ConnectionManager, CreateMode, Error, IntoPath, Label, LockQueue, Refusal, Rule, WholePath,
    ZnodePath,
};

use super::hash::{Hashed, owner};
use crate::group::Group;
use crate::limits;
use crate::view::ChildrenView;

/// The items of a [`Partition`], followed.
///
/// # Methods
///
/// Those of every [`ChildrenView`](crate::ChildrenView).
pub type ItemsView = ChildrenView<()>;

/// So many requests for items are in flight.
pub(super) const BATCH: usize = 64;

/// A set of items that the members of a group share: each item is held by one member at a time, and every
/// item by some member. The counterpart of kazoo's `SetPartitioner`, for shards, queues, tenants, cron jobs.
///
/// Each item is an ordinary hold: it has a [fencing token](crate::Guard::fencing_token), and
/// [`txn`](crate::Guard::txn) writes only while the member has the item. So two members never have one item
/// at a time, whatever they believe about the group.
///
/// A clone is cheap. The path belongs to the partition alone.
///
/// # Distribution
///
/// Rendezvous hashing of the ids and the names of the items: the members need no leader, and agree as soon
/// as they see the same members. A member that joins takes its share from all others; the share of a member
/// that left goes to all others; no other item moves. Shares are even within chance: of 64 items over 4
/// members, a member mostly has from 10 to 22. For shares that are more even, take more items.
///
/// # Ordering
///
/// When the members change, each item that does not move stays where it is, and its work is not
/// interrupted. An item that moves stays with its old member until the new one waits for it and has asked
/// for it. There is no pause for the group to settle.
///
/// # Cost
///
/// For each member: an ephemeral node, and two views over one session. For each item that moves: one
/// acquire, a list and a write to ask for it, one release. For each item that is held: a watch on its node.
/// Nothing for the items that do not move.
///
/// # Session loss
///
/// A member whose session ends loses its items, and learns that
/// ([`ReleaseReason::Lost`](super::ReleaseReason::Lost), [`lost`](crate::Guard::lost)) before the server can
/// grant them to another member. It joins again in the next session, and gets its share back from those who
/// took it meanwhile.
///
/// # A member that does not give up an item
///
/// An item is never taken by force. It stays with its member until the guard is dropped, and its next owner
/// waits; [`inspect`](Self::inspect) names both. A paused or unreachable process loses its items with its
/// session.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = lockkeeper_testserver::TestServer::start().await?;
/// # let manager = lockkeeper::ConnectionManager::connect(&server.connect_string()).await?;
/// use lockkeeper::Partition;
///
/// let partition = Partition::new(&manager, "/shards")?;
/// partition.add(["0", "1", "2"]).await?; // by any process, any number of times
///
/// let mut member = partition.join("worker-3")?;
/// # let mut left = 3;
/// while let Some(item) = member.next().await {
///     tokio::spawn(async move {
///         // Work on the item until it moves to another member.
///         let reason = item.release_requested().await;
///         println!("{} is given up: {reason}", item.item());
///     });
/// #   left -= 1;
/// #   if left == 0 { break }
/// }
/// member.leave().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Partition {
    pub(super) manager: ConnectionManager,
    pub(super) path: ZnodePath,
}

impl Partition {
    /// Makes the partition at `path`, below the manager's chroot. Sends nothing.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] if the path is malformed, or is the root.
    pub fn new(manager: &ConnectionManager, path: impl IntoPath) -> Result<Self, Error> {
        let path = limits::own_path(path, "give the partition a path of its own")?;
        Ok(Self { manager: manager.clone(), path })
    }

    /// The path of the partition, below the manager's chroot.
    #[must_use]
    pub fn path(&self) -> &ZnodePath {
        &self.path
    }

    /// For errors and logs.
    pub(super) fn whole_path(&self) -> WholePath {
        self.manager.whole_path(&self.path)
    }

    pub(crate) fn manager(&self) -> &ConnectionManager {
        &self.manager
    }

    /// Adds these items, and leaves those alone that exist. An item is a name of a node: not empty, and
    /// without `/`. Every member can call this at its beginning.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] for a bad name, before any request. [`Error::Refused`], [`Error::Timeout`],
    /// [`Error::Unknown`] and [`Error::Closed`]: some of the items may be added; call again.
    ///
    /// # Cancel safety
    ///
    /// Some of the items may be added.
    pub async fn add<S: AsRef<str>>(&self, items: impl IntoIterator<Item = S>) -> Result<(), Error> {
        let znodes = self.manager.znodes();
        let paths = self.paths(items)?;
        let added = stream::iter(paths).map(|path| {
            let znodes = znodes.clone();
            async move {
                match znodes.create(path, b"", CreateMode::Persistent).await {
                    Ok(_) | Err(Error::Refused { refusal: Refusal::NodeExists, .. }) => Ok(()),
                    Err(error) => Err(error),
                }
            }
        });
        added.buffer_unordered(BATCH).try_collect().await
    }

    /// Removes these items. The members that hold them are asked to give them up
    /// ([`ReleaseReason::Removed`](super::ReleaseReason::Removed)).
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add): some of the items may be removed; call again.
    ///
    /// # Cancel safety
    ///
    /// Some of the items may be removed.
    pub async fn remove<S: AsRef<str>>(&self, items: impl IntoIterator<Item = S>) -> Result<(), Error> {
        let znodes = self.manager.znodes();
        let paths = self.paths(items)?;
        let removed = stream::iter(paths).map(|path| {
            let znodes = znodes.clone();
            async move { znodes.delete(path).await.map(drop) }
        });
        removed.buffer_unordered(BATCH).try_collect().await
    }

    /// The items as they are now, in order: a snapshot.
    ///
    /// # Errors
    ///
    /// As [`Znodes::children`](lockkeeper_core::Znodes::children).
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the call changes nothing.
    pub async fn items(&self) -> Result<Vec<String>, Error> {
        let mut items = self.manager.znodes().children(self.items_path()?).await?.unwrap_or_default();
        items.sort_unstable();
        Ok(items)
    }

    /// The group of the members: who they are, and who joins and leaves. Join the partition by
    /// [`join`](Self::join): a member of the group alone gets items by the hash, and never takes them.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] if the path is too long.
    pub fn group(&self) -> Result<Group, Error> {
        Group::new(&self.manager, self.path.child("members")?)
    }

    /// The member that has an item once all members are the given ones, by the hash alone. `None` without
    /// members. A function of its arguments: for tests, and to plan a change.
    #[must_use]
    pub fn owner_among<'a>(item: &str, members: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
        let members: Vec<Hashed<&str>> = members.into_iter().map(Hashed::new).collect();
        owner(&Hashed::new(item), &members).copied()
    }

    pub(super) fn items_path(&self) -> Result<ZnodePath, Error> {
        Ok(self.path.child("items")?)
    }

    fn paths<S: AsRef<str>>(&self, items: impl IntoIterator<Item = S>) -> Result<Vec<ZnodePath>, Error> {
        let directory = self.items_path()?;
        let path = |item: S| {
            let item = item.as_ref();
            if item.is_empty() {
                let (name, value, advice) = ("item", String::new(), "give each item a name");
                return Err(ConfigError::Setting { name, value, advice }.into());
            }
            // The queue of the item has a path that is not too long either.
            self.queue(item, "")?;
            Ok(directory.child(item)?)
        };
        items.into_iter().map(path).collect()
    }

    /// The queue of an item's contenders.
    pub(super) fn queue(&self, item: &str, id: &str) -> Result<LockQueue, Error> {
        let path = self.path.child("locks")?.child(item)?;
        let queue = LockQueue::new(&self.manager, path, Label::LOCK, Rule::MUTEX)?;
        Ok(queue.with_node_data(id).with_metric_name("partition"))
    }
}

impl Debug for Partition {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Partition").field("path", &self.path).finish_non_exhaustive()
    }
}
