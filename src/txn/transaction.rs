use std::sync::Arc;

use crate::error::{ConfigError, Error};
use crate::manager::ConnectionManager;
use crate::session::OwnedNode;
use crate::wire::{CreateMode, Stat, WriteOp, WriteResult};
use crate::znode::path::{IntoPath, PathError, ZnodePath};
use crate::znode::version::Version;

/// Writes that the server applies together: all of them or none.
///
/// One that a hold begins ([`Hold::txn`](crate::Hold::txn)) is not applied once the hold's node does not
/// exist. The check of the hold is part of the same transaction on the server, so it needs no clock and no
/// timeout: a holder that was paused for an hour commits nothing. This also holds when lock nodes are deleted
/// by hand. One that a manager begins ([`ConnectionManager::txn`]) rests on no hold; [`and`](Self::and) puts
/// its writes under one.
///
/// Ephemeral nodes belong to the session that commits the transaction, and are deleted with it.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = lockkeeper_testserver::TestServer::start().await?;
/// # let servers = server.connect_string();
/// # use lockkeeper_core::{ConnectionManager, CreateMode, Deadline, Label, LockQueue, Rule};
/// # let manager = ConnectionManager::connect(&servers).await?;
/// # manager.znodes().create("/trains/7/left", "42", CreateMode::Persistent).await?;
/// # manager.znodes().create("/trains/7/sales", "", CreateMode::Persistent).await?;
/// # let queue = LockQueue::new(&manager, "/locks/7", Label::LOCK, Rule::MUTEX)?;
/// # let held = queue.acquire(Deadline::never()).await?;
/// held.txn()
///     .set("/trains/7/left", "41", 0)
///     .create_sequential("/trains/7/sales/sale-", "alice 2")
///     .commit()
///     .await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "nothing is written before commit()"]
pub struct Txn<'a> {
    pub(super) manager: ConnectionManager,
    /// The nodes that must exist. The first one determines the session; without one, any session will do.
    pub(super) holds: Vec<&'a Arc<OwnedNode>>,
    pub(super) writes: Vec<WriteOp>,
    /// Why the transaction cannot be committed.
    pub(super) error: Option<Error>,
}

/// The result of a committed write, in the order of the writes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TxnResult {
    /// A check that passed, or a delete.
    Done,
    /// A node was created at this path, below the manager's chroot.
    Created(ZnodePath),
    /// Data was written. The node now has this version.
    Written {
        /// The new version.
        version: i32,
        /// The node's stat. Its `mtime` is the time of the transaction, by the clock of the servers' leader.
        stat: Stat,
    },
}

impl<'a> Txn<'a> {
    pub(crate) fn under(manager: &ConnectionManager, holds: Vec<&'a Arc<OwnedNode>>) -> Self {
        Self { manager: manager.clone(), holds, writes: Vec::new(), error: None }
    }

    /// Makes [`commit`](Self::commit) fail with this error.
    pub(crate) fn refused(self, error: Error) -> Self {
        Self { error: Some(error), ..self }
    }

    /// Commits only if the node has this version.
    pub fn check(self, path: impl IntoPath, version: impl Into<Version>) -> Self {
        self.add(path, |path| WriteOp::Check { path, version: version.into().on_wire() })
    }

    /// Creates a persistent node. Its parent has to exist, or be created by an earlier write of the
    /// transaction: without the parent the transaction is refused as a whole, and the error names the parent.
    pub fn create(self, path: impl IntoPath, data: impl Into<Vec<u8>>) -> Self {
        self.create_with(path, data, CreateMode::Persistent)
    }

    /// As [`create`](Self::create), and the name of the node gets a sequence number.
    pub fn create_sequential(self, path: impl IntoPath, data: impl Into<Vec<u8>>) -> Self {
        self.create_with(path, data, CreateMode::PersistentSequential)
    }

    /// As [`create`](Self::create), with another mode.
    pub fn create_with(self, path: impl IntoPath, data: impl Into<Vec<u8>>, mode: CreateMode) -> Self {
        let data = data.into();
        self.add(path, |path| WriteOp::Create { path, data, mode })
    }

    /// Writes a node's data, if it has this version.
    pub fn set(self, path: impl IntoPath, data: impl Into<Vec<u8>>, version: impl Into<Version>) -> Self {
        let data = data.into();
        self.add(path, |path| WriteOp::SetData { path, data, version: version.into().on_wire() })
    }

    /// Deletes a node, if it has this version.
    pub fn delete(self, path: impl IntoPath, version: impl Into<Version>) -> Self {
        self.add(path, |path| WriteOp::Delete { path, version: version.into().on_wire() })
    }

    /// Adds the writes of another transaction behind these, and the holds that it rests on: all of it is
    /// committed, or nothing. Both must be of one manager: otherwise [`commit`](Self::commit) fails with
    /// [`Error::Config`].
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = lockkeeper_testserver::TestServer::start().await?;
    /// # use lockkeeper_core::{ConnectionManager, Deadline, Label, LockQueue, Rule};
    /// # let manager = ConnectionManager::connect(&server.connect_string()).await?;
    /// # let queue = LockQueue::new(&manager, "/locks/7", Label::LOCK, Rule::MUTEX)?;
    /// # let held = queue.acquire(Deadline::never()).await?;
    /// let writes = manager.txn().create("/a", "1").create("/b", "2");
    /// held.txn().and(writes).commit().await?; // only while the lock is held
    /// # Ok(())
    /// # }
    /// ```
    pub fn and(mut self, other: Self) -> Self {
        if !self.manager.is_same_as(&other.manager) {
            return self.refused(of_several_managers("transactions"));
        }
        self.holds.extend(other.holds);
        self.writes.extend(other.writes);
        self.error = self.error.or(other.error);
        self
    }

    /// The path that errors about the whole transaction name.
    pub(super) fn path(&self) -> &str {
        let hold = self.holds.first().map(|hold| hold.path());
        hold.or_else(|| self.writes.first().map(WriteOp::path)).unwrap_or("/")
    }

    fn add(mut self, path: impl IntoPath, write: impl FnOnce(String) -> WriteOp) -> Self {
        let on_server = path.into_path().and_then(|path| self.manager.full_path(&path));
        match on_server {
            Ok(path) => self.writes.push(write(path.to_string())),
            Err(error) => self.error = self.error.or(Some(error.into())),
        }
        self
    }
}

impl ConnectionManager {
    /// Writes of several nodes that the server applies together: all of them or none. They rest on no hold;
    /// for writes that must not happen without a lock use [`Hold::txn`](crate::Hold::txn).
    ///
    /// Without an answer the outcome of a [`commit`](Txn::commit) is
    /// [unknown](crate::TxnError::outcome_unknown). With a marker ([`Txn::once`]) the transaction is
    /// committed once, however often it is tried, also in a later session.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = lockkeeper_testserver::TestServer::start().await?;
    /// # let manager = lockkeeper_core::ConnectionManager::connect(&server.connect_string()).await?;
    /// use lockkeeper_core::{Once, Refusal, TxnError};
    ///
    /// let order = || manager.txn().create("/order-7", "2 seats").create("/order-7/paid", "no");
    /// assert!(matches!(order().once("/orders/7").commit().await?, Once::Committed(_)));
    /// assert_eq!(order().once("/orders/7").commit().await?, Once::Before);
    ///
    /// let refused = manager.txn().delete("/order-7/paid", 0).set("/order-7", "3 seats", 12).commit().await;
    /// let Err(TxnError::Refused { index, refusal, .. }) = refused else { panic!("{refused:?}") };
    /// assert_eq!((index, refusal), (1, Refusal::BadVersion)); // and nothing was deleted
    /// # Ok(())
    /// # }
    /// ```
    pub fn txn(&self) -> Txn<'static> {
        Txn::under(self, Vec::new())
    }
}

/// A request goes to the servers of one manager.
pub(crate) fn of_several_managers(name: &'static str) -> Error {
    Error::Config(ConfigError::Setting {
        name,
        value: "of several managers".to_owned(),
        advice: "commit one transaction for each connection manager",
    })
}

impl TxnResult {
    pub(super) fn of(manager: &ConnectionManager, result: WriteResult) -> Result<Self, PathError> {
        Ok(match result {
            WriteResult::Done => Self::Done,
            WriteResult::Created(created) => Self::Created(manager.below_chroot(&created.path).parse()?),
            WriteResult::Written(stat) => Self::Written { version: stat.version, stat },
        })
    }
}
