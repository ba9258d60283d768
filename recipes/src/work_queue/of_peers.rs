//! Queues with the nodes of other clients.

use lockkeeper_core::{ConfigError, ConnectionManager, Error, IntoPath, ZnodePath};

use super::handle::WorkQueue;
use super::item_layout::ItemLayout;
use crate::limits;
use crate::value::SharedData;

impl<T: SharedData> WorkQueue<T> {
    /// As [`new`](Self::new), with the nodes of Curator's `DistributedQueue`, whose consumers and producers
    /// may use the same paths: `path` is its queue path, and `lock_path` its `lockPath`. An item is a value
    /// in the bytes of `T`, which Curator's `QueueSerializer` must read and write.
    ///
    /// Here an item still ends once, with the writes of [`done_with`](super::WorkItem::done_with): whatever
    /// Curator's consumers do, nothing is written for an item that one of them has ended or requeued. But
    /// they delete what they process without a check of their lock, so the *work* of an item may be done by
    /// both after a lost session, and the items of a consumer without a lock path are lost if it crashes.
    ///
    /// The names and the data of these nodes say less than those of [`new`](Self::new). A priority, a time or
    /// an id is refused with [`Error::Config`] where they have no place for it. A
    /// [reason](super::WorkItem::fail) is kept only of an attempt after which the item moves to
    /// `<lock path>/failed`. [`attempts`](super::WorkItem::attempts) counts the takes by this library. A node
    /// with several items (`putMulti`) becomes as many items at the end of the queue. An item that is lost or
    /// dropped is free when its guard is dropped, or its session ends.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] if a path is malformed, or is the root, or both are the same. Nothing is sent.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = lockkeeper_testserver::TestServer::start().await?;
    /// # let manager = lockkeeper::ConnectionManager::connect(&server.connect_string()).await?;
    /// use lockkeeper::WorkQueue;
    ///
    /// let orders = WorkQueue::<String>::in_curator_layout(&manager, "/orders", "/order-locks")?;
    /// orders.put(&"3 tickets".to_owned()).await?; // a consumer in Java may take it
    /// orders.take().await?.done().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn in_curator_layout(
        manager: &ConnectionManager,
        path: impl IntoPath,
        lock_path: impl IntoPath,
    ) -> Result<Self, Error> {
        Self::of_curator(manager, path, lock_path, ItemLayout::Curator)
    }

    /// As [`in_curator_layout`](Self::in_curator_layout), with the nodes of Curator's
    /// `DistributedPriorityQueue`. [`put_with`](Self::put_with) gives its priority; items that Curator puts
    /// with any other priority, also a negative one, have their place as well.
    ///
    /// # Errors
    ///
    /// As [`in_curator_layout`](Self::in_curator_layout).
    pub fn in_curator_priority_layout(
        manager: &ConnectionManager,
        path: impl IntoPath,
        lock_path: impl IntoPath,
    ) -> Result<Self, Error> {
        Self::of_curator(manager, path, lock_path, ItemLayout::CuratorPriority)
    }

    /// As [`in_curator_layout`](Self::in_curator_layout), with the nodes of Curator's
    /// `DistributedDelayQueue`. [`put_at`](Self::put_at) gives the time; a [`put`](Self::put) is due at once.
    /// Items are taken in the order of their times. Here the clock of the servers decides, and in Curator
    /// that of the consumer's machine.
    ///
    /// [`retry_at`](super::WorkItem::retry_at) puts an item that replaces this one, and has no attempts.
    ///
    /// # Errors
    ///
    /// As [`in_curator_layout`](Self::in_curator_layout).
    pub fn in_curator_delay_layout(
        manager: &ConnectionManager,
        path: impl IntoPath,
        lock_path: impl IntoPath,
    ) -> Result<Self, Error> {
        Self::of_curator(manager, path, lock_path, ItemLayout::CuratorDelay)
    }

    /// As [`in_curator_layout`](Self::in_curator_layout), with the nodes of Curator's `DistributedIdQueue`.
    /// Items are put by [`put_once`](Self::put_once). The id in the name has `_` in place of `/` and `|`. An
    /// id of Curator's producers is not known to `put_once`: Curator puts as many items with one id as it is
    /// asked to.
    ///
    /// # Errors
    ///
    /// As [`in_curator_layout`](Self::in_curator_layout).
    pub fn in_curator_id_layout(
        manager: &ConnectionManager,
        path: impl IntoPath,
        lock_path: impl IntoPath,
    ) -> Result<Self, Error> {
        Self::of_curator(manager, path, lock_path, ItemLayout::CuratorId)
    }

    /// As [`new`](Self::new), with the nodes of kazoo's `LockingQueue`, whose users may use the same path. An
    /// item is a value in the bytes of `T`. Priorities are kazoo's.
    ///
    /// Otherwise as [`in_curator_layout`](Self::in_curator_layout): an item ends once here. kazoo's `consume`
    /// and `release` may delete the claim of another taker after a lost session: then nothing is written
    /// here, and the end fails with [`ClaimDeleted`](super::WorkQueueError::ClaimDeleted).
    ///
    /// # Errors
    ///
    /// [`Error::Config`] if the path is malformed, or is the root. Nothing is sent.
    pub fn in_kazoo_layout(manager: &ConnectionManager, path: impl IntoPath) -> Result<Self, Error> {
        let path = limits::own_path(path, "give it a path of its own, such as /queues/a")?;
        let (items, claims, base) = (path.child("entries")?, path.child("taken")?, path.clone());
        Self::in_layout(manager, path, ItemLayout::Kazoo, items, Some(claims), base)
    }

    /// What only this library writes is below the lock path: Curator takes each child of the queue path for
    /// an item, and does not list the lock path.
    fn of_curator(
        manager: &ConnectionManager,
        path: impl IntoPath,
        lock_path: impl IntoPath,
        layout: ItemLayout,
    ) -> Result<Self, Error> {
        let advice = "give it a path of its own, such as /queues/a";
        let (path, claims): (ZnodePath, ZnodePath) =
            (limits::own_path(path, advice)?, limits::own_path(lock_path, advice)?);
        if path == claims {
            let (name, value) = ("lock_path", claims.to_string());
            let advice = "give the locks a path that is not that of the items";
            return Err(ConfigError::Setting { name, value, advice }.into());
        }
        Self::in_layout(manager, path.clone(), layout, path, Some(claims.clone()), claims)
    }
}
