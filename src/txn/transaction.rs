use std::sync::Arc;

use crate::error::Error;
use crate::manager::ConnectionManager;
use crate::session::OwnedNode;
use crate::wire::{CreateMode, Stat, WriteOp, WriteResult};
use crate::znode::path::{IntoPath, PathError, ZnodePath};
use crate::znode::version::Version;

/// Writes under a hold. The server applies all of them or none, and none once the hold's node does not exist.
///
/// The check of the hold is part of the same transaction on the server, so it needs no clock and no timeout:
/// a holder that was paused for an hour commits nothing. This also holds when lock nodes are deleted by hand.
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
#[derive(Debug)]
#[must_use = "nothing is written before commit()"]
pub struct Txn<'a> {
    pub(super) manager: &'a ConnectionManager,
    /// The first node of the hold that begins the transaction. It determines the session.
    pub(super) first: &'a Arc<OwnedNode>,
    /// The further nodes that must exist.
    pub(super) others: Vec<&'a Arc<OwnedNode>>,
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
    pub(crate) fn under(
        manager: &'a ConnectionManager,
        first: &'a Arc<OwnedNode>,
        others: Vec<&'a Arc<OwnedNode>>,
    ) -> Self {
        Self { manager, first, others, writes: Vec::new(), error: None }
    }

    /// Makes [`commit`](Self::commit) fail with this error.
    pub(crate) fn refused(self, error: Error) -> Self {
        Self { error: Some(error), ..self }
    }

    /// Commits only if the node has this version.
    pub fn check(self, path: impl IntoPath, version: impl Into<Version>) -> Self {
        self.add(path, |path| WriteOp::Check { path, version: version.into().on_wire() })
    }

    /// Creates a persistent node.
    pub fn create(self, path: impl IntoPath, data: impl Into<Vec<u8>>) -> Self {
        self.create_with(path, data, CreateMode::Persistent)
    }

    /// Creates a persistent node, whose name gets a sequence number.
    pub fn create_sequential(self, path: impl IntoPath, data: impl Into<Vec<u8>>) -> Self {
        self.create_with(path, data, CreateMode::PersistentSequential)
    }

    /// Creates a node.
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

    fn add(mut self, path: impl IntoPath, write: impl FnOnce(String) -> WriteOp) -> Self {
        let on_server = path.into_path().and_then(|path| self.manager.full_path(&path));
        match on_server {
            Ok(path) => self.writes.push(write(path.to_string())),
            Err(error) => self.error = self.error.or(Some(error.into())),
        }
        self
    }
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
