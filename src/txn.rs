use std::sync::Arc;

use thiserror::Error;

use crate::config::limits;
use crate::error::{Error, Lost, Operation, Refusal};
use crate::manager::ConnectionManager;
use crate::session::{OwnedNode, TxnInFlight};
use crate::time::deadline::Deadline;
use crate::wire::{CreateMode, MultiError, WireError, WriteOp, WriteResult};
use crate::znode::path::{IntoPath, PathError, ZnodePath};
use crate::znode::whole_path::WholePath;

/// Any version of a node, as ZooKeeper encodes it.
pub const ANY_VERSION: i32 = -1;

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
    manager: &'a ConnectionManager,
    /// The first node of the hold that begins the transaction. It determines the session.
    first: &'a Arc<OwnedNode>,
    /// The further nodes that must exist.
    others: Vec<&'a Arc<OwnedNode>>,
    writes: Vec<WriteOp>,
    /// Why the transaction cannot be committed.
    error: Option<Error>,
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
    },
}

/// Why a transaction was not committed, or may not have been.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum TxnError {
    /// The hold is lost. Nothing was written.
    #[error("nothing was written: {0}")]
    Lost(Lost),
    /// The server refused one write. Nothing was written.
    #[error("nothing was written: write {index} of {path} was refused: {refusal}")]
    Refused {
        /// The index of the write, from 0.
        index: usize,
        /// The path of the write.
        path: WholePath,
        /// The answer of the server.
        refusal: Refusal,
    },
    /// The request failed as a whole. [`Error::outcome`] tells whether the transaction may be committed.
    #[error(transparent)]
    Failed(#[from] Error),
}

impl TxnError {
    /// Whether the hold was lost, and nothing written.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        matches!(self, Self::Lost(_))
    }

    /// Whether a retry can help; after a loss, under a new hold. After an
    /// [unknown outcome](Self::outcome_unknown), read before you retry.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Lost(_) => true,
            Self::Refused { refusal, .. } => refusal.is_transient(),
            Self::Failed(error) => error.is_transient(),
        }
    }

    /// Whether the transaction may be committed in spite of this error.
    #[must_use]
    pub fn outcome_unknown(&self) -> bool {
        matches!(self, Self::Failed(error) if error.outcome_unknown())
    }
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

    /// Commits only if the node has this version ([`ANY_VERSION`]: any).
    pub fn check(self, path: impl IntoPath, version: i32) -> Self {
        self.add(path, |path| WriteOp::Check { path, version: version_of(version) })
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

    /// Writes a node's data, if it has this version ([`ANY_VERSION`]: any).
    pub fn set(self, path: impl IntoPath, data: impl Into<Vec<u8>>, version: i32) -> Self {
        let data = data.into();
        self.add(path, |path| WriteOp::SetData { path, data, version: version_of(version) })
    }

    /// Deletes a node, if it has this version ([`ANY_VERSION`]: any).
    pub fn delete(self, path: impl IntoPath, version: i32) -> Self {
        self.add(path, |path| WriteOp::Delete { path, version: version_of(version) })
    }

    fn add(mut self, path: impl IntoPath, write: impl FnOnce(String) -> WriteOp) -> Self {
        let on_server = path.into_path().and_then(|path| self.manager.full_path(&path));
        match on_server {
            Ok(path) => self.writes.push(write(path.to_string())),
            Err(error) => self.error = self.error.or(Some(error.into())),
        }
        self
    }

    /// Commits the writes if the hold's nodes still exist. One round trip.
    ///
    /// # Errors
    ///
    /// [`TxnError::Lost`] and [`TxnError::Refused`]: nothing was written. [`TxnError::Failed`] with an
    /// [unknown outcome](TxnError::outcome_unknown) when the connection broke before the answer: read before
    /// you retry. [`TxnError::Failed`] with [`Error::Config`], before anything is sent, when the holds have
    /// different managers, a path is no path, or the request would be too large.
    ///
    /// # Cancel safety
    ///
    /// Not cancel safe: the transaction of a dropped commit may be applied.
    pub async fn commit(self) -> Result<Vec<TxnResult>, TxnError> {
        if let Some(error) = self.error {
            return Err(TxnError::Failed(error));
        }
        let holds: Vec<&Arc<OwnedNode>> = std::iter::once(self.first).chain(self.others).collect();
        holds.iter().try_for_each(|hold| hold.check()).map_err(TxnError::Lost)?;
        let path = self.first.path().to_owned();
        let checks = holds.iter();
        let mut operations: Vec<WriteOp> =
            checks.map(|hold| WriteOp::Check { path: hold.path().to_owned(), version: None }).collect();
        let held = operations.len();
        operations.extend(self.writes);
        limits::check(operations.iter().map(WriteOp::bytes).sum()).map_err(Error::Config)?;
        let session = self.first.session();
        let deadline = Deadline::after(self.manager.operation_timeout());
        // No successor may be granted before the outcome of this transaction is known.
        let in_flight = TxnInFlight::on(holds.iter().copied());
        let committed = session.multi(&operations, deadline).await;
        if committed.as_ref().map_or_else(MultiError::is_definite, |_| true) {
            in_flight.settle();
        }
        match committed {
            // The first results are those of the checks of the hold's nodes.
            Ok(results) => {
                let results = results.into_iter().skip(held);
                let read: Result<_, _> = results.map(|result| TxnResult::of(self.manager, result)).collect();
                read.map_err(|bad| TxnError::Failed(Error::bad_answer(Operation::Commit, &path, &bad)))
            }
            Err(MultiError::Operation { index, refusal }) => match holds.get(index) {
                Some(hold) if refusal == Refusal::NoNode => {
                    let reason = hold.missing_reason();
                    hold.lose(reason);
                    Err(TxnError::Lost(hold.loss_by(reason)))
                }
                _ => {
                    let path = operations.get(index).map(WriteOp::path).unwrap_or_default().into();
                    Err(TxnError::Refused { index: index.saturating_sub(held), path, refusal })
                }
            },
            Err(MultiError::Request(error @ (WireError::Refused(_) | WireError::Timeout))) => {
                Err(TxnError::Failed(Error::of_wire(Operation::Commit, &path, &error, deadline)))
            }
            Err(MultiError::Request(error)) => Err(TxnError::Failed(Error::Unknown {
                operation: Operation::Commit,
                path: path.into(),
                cause: error.to_string(),
            })),
        }
    }
}

/// ZooKeeper encodes any version as −1.
fn version_of(version: i32) -> Option<i32> {
    (version >= 0).then_some(version)
}

impl WriteOp {
    /// The size of the operation in a request: its data, its path and their frame.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Create { path, data, .. } | Self::SetData { path, data, .. } => {
                path.len() + data.len() + 64
            }
            Self::Check { path, .. } | Self::Delete { path, .. } => path.len() + 64,
        }
    }

    pub(crate) fn path(&self) -> &str {
        match self {
            Self::Check { path, .. }
            | Self::Create { path, .. }
            | Self::SetData { path, .. }
            | Self::Delete { path, .. } => path,
        }
    }
}

impl TxnResult {
    fn of(manager: &ConnectionManager, result: WriteResult) -> Result<Self, PathError> {
        Ok(match result {
            WriteResult::Done => Self::Done,
            WriteResult::Created(created) => Self::Created(manager.below_chroot(&created.path).parse()?),
            WriteResult::Written(stat) => Self::Written { version: stat.version },
        })
    }
}
