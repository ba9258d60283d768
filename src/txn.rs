use std::sync::Arc;

use thiserror::Error;

use crate::config::limits;
use crate::error::{Error, Lost, Operation, Refusal};
use crate::manager::ConnectionManager;
use crate::session::{OwnedNode, TxnInFlight};
use crate::time::deadline::Deadline;
use crate::wire::{CreateMode, MultiError, WireError, WriteOp, WriteResult};
use crate::znode::path::ZnodePath;

/// As the version of a node: whatever version it has. What ZooKeeper writes for it.
pub const ANY_VERSION: i32 = -1;

/// Writes under a hold: all of them are committed, or none; and none once the hold's node is gone.
///
/// The check of the hold is part of the same transaction on the server, so no clock and no timeout is
/// involved: a holder that was paused for an hour commits nothing. This also holds when lock nodes are
/// deleted by hand.
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
/// # manager.znodes().create(&"/trains/7/left".parse()?, b"42", CreateMode::Persistent).await?;
/// # manager.znodes().create(&"/trains/7/sales".parse()?, b"", CreateMode::Persistent).await?;
/// # let line = LockQueue::new(&manager, "/locks/7".parse()?, Label::LOCK, Rule::MUTEX)?;
/// # let held = line.acquire(Deadline::never()).await?;
/// held.txn()
///     .set("/trains/7/left".parse()?, b"41".to_vec(), 0)
///     .create_sequential("/trains/7/sales/sale-".parse()?, b"alice 2".to_vec())
///     .commit()
///     .await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "nothing is written before commit()"]
pub struct Txn<'a> {
    manager: &'a ConnectionManager,
    /// The first node of the hold that begins the transaction: it names the session.
    first: &'a Arc<OwnedNode>,
    /// The further nodes that must exist.
    others: Vec<&'a Arc<OwnedNode>>,
    writes: Vec<Write>,
    /// Why it cannot be committed, whatever the server says.
    error: Option<Error>,
}

/// One write, its path still without the chroot.
#[derive(Debug)]
enum Write {
    Check { path: ZnodePath, version: i32 },
    Create { path: ZnodePath, data: Vec<u8>, mode: CreateMode },
    Set { path: ZnodePath, data: Vec<u8>, version: i32 },
    Delete { path: ZnodePath, version: i32 },
}

/// What a committed write gave, in the order of the writes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TxnResult {
    /// A check that held, or a deletion.
    Done,
    /// A node made at this whole path.
    Created(String),
    /// Data written; the node now has this version.
    Written {
        /// The new version.
        version: i32,
    },
}

/// Why a transaction was not committed, or may not have been.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum TxnError {
    /// The hold is gone; nothing was written.
    #[error("nothing was written: {0}")]
    Lost(Lost),
    /// The server refused this write, so none was done.
    #[error("nothing was written: write {index} of {path} was refused: {refusal}")]
    Refused {
        /// Which write, counted from 0.
        index: usize,
        /// Its path.
        path: String,
        /// What the server said.
        refusal: Refusal,
    },
    /// The request as a whole failed: see [`Error::outcome`] whether it may have been committed.
    #[error(transparent)]
    Failed(#[from] Error),
}

impl TxnError {
    /// Whether the hold was lost, and nothing written.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        matches!(self, Self::Lost(_))
    }

    /// Whether trying again can help, under a new hold where this one is lost. After an
    /// [unknown outcome](Self::outcome_unknown), look first.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Lost(_) => true,
            Self::Refused { refusal, .. } => refusal.is_transient(),
            Self::Failed(error) => error.is_transient(),
        }
    }

    /// Whether it may have been committed all the same.
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

    /// Commits nothing, and fails with this.
    pub(crate) fn refused(self, error: Error) -> Self {
        Self { error: Some(error), ..self }
    }

    /// Commits only if the node has this version.
    pub fn check(mut self, path: ZnodePath, version: i32) -> Self {
        self.writes.push(Write::Check { path, version });
        self
    }

    /// Creates a persistent node.
    pub fn create(self, path: ZnodePath, data: Vec<u8>) -> Self {
        self.create_with(path, data, CreateMode::Persistent)
    }

    /// Creates a persistent node with a number appended to its name.
    pub fn create_sequential(self, path: ZnodePath, data: Vec<u8>) -> Self {
        self.create_with(path, data, CreateMode::PersistentSequential)
    }

    /// Creates a node.
    pub fn create_with(mut self, path: ZnodePath, data: Vec<u8>, mode: CreateMode) -> Self {
        self.writes.push(Write::Create { path, data, mode });
        self
    }

    /// Writes a node's data, if it has this version ([`ANY_VERSION`]: any).
    pub fn set(mut self, path: ZnodePath, data: Vec<u8>, version: i32) -> Self {
        self.writes.push(Write::Set { path, data, version });
        self
    }

    /// Deletes a node, if it has this version ([`ANY_VERSION`]: any).
    pub fn delete(mut self, path: ZnodePath, version: i32) -> Self {
        self.writes.push(Write::Delete { path, version });
        self
    }

    /// Commits everything, if the hold still stands. One round trip.
    ///
    /// # Errors
    ///
    /// [`TxnError::Lost`] and [`TxnError::Refused`]: nothing was written. [`TxnError::Failed`] with an
    /// [unknown outcome](TxnError::outcome_unknown) when the link broke before the answer: look at what is
    /// there before trying again; with [`Error::Config`], before anything is sent, when the holds have
    /// different managers or the request would be too large.
    ///
    /// # Cancel safety
    ///
    /// Not cancel safe: a dropped commit may or may not have been done.
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
        for write in self.writes {
            operations.push(write.on_server(self.manager)?);
        }
        limits::check(operations.iter().map(WriteOp::bytes).sum()).map_err(Error::Config)?;
        let session = self.first.session();
        let deadline = Deadline::after(self.manager.operation_timeout());
        // Who comes next must not be let in before it is known what became of this.
        let in_flight = TxnInFlight::on(holds.iter().copied());
        let committed = session.multi(&operations, deadline).await;
        if committed.as_ref().map_or_else(MultiError::is_definite, |_| true) {
            in_flight.settle();
        }
        match committed {
            // The first results are those of the checks of what is held.
            Ok(results) => Ok(results.into_iter().skip(held).map(TxnResult::from).collect()),
            Err(MultiError::Operation { index, refusal }) => match holds.get(index) {
                Some(hold) if refusal == Refusal::NoNode => {
                    let reason = hold.missing_reason();
                    hold.lose(reason);
                    Err(TxnError::Lost(hold.loss_by(reason)))
                }
                _ => {
                    let path = operations.get(index).map(WriteOp::path).unwrap_or_default().to_owned();
                    Err(TxnError::Refused { index: index.saturating_sub(held), path, refusal })
                }
            },
            Err(MultiError::Request(error @ (WireError::Refused(_) | WireError::Timeout))) => {
                Err(TxnError::Failed(Error::of_wire(Operation::Commit, &path, &error, deadline)))
            }
            Err(MultiError::Request(error)) => Err(TxnError::Failed(Error::Unknown {
                operation: Operation::Commit,
                path,
                cause: error.to_string(),
            })),
        }
    }
}

impl Write {
    fn on_server(self, manager: &ConnectionManager) -> Result<WriteOp, Error> {
        let full = |path: ZnodePath| manager.full_path(&path).map(|path| path.to_string());
        // ZooKeeper writes "any version" as −1.
        let version_of = |version: i32| (version >= 0).then_some(version);
        Ok(match self {
            Self::Check { path, version } => {
                WriteOp::Check { path: full(path)?, version: version_of(version) }
            }
            Self::Create { path, data, mode } => WriteOp::Create { path: full(path)?, data, mode },
            Self::Set { path, data, version } => {
                WriteOp::SetData { path: full(path)?, data, version: version_of(version) }
            }
            Self::Delete { path, version } => {
                WriteOp::Delete { path: full(path)?, version: version_of(version) }
            }
        })
    }
}

impl WriteOp {
    /// How many bytes of a request it takes: its data, its path and what frames them.
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

impl From<WriteResult> for TxnResult {
    fn from(result: WriteResult) -> Self {
        match result {
            WriteResult::Done => Self::Done,
            WriteResult::Created(created) => Self::Created(created.path),
            WriteResult::Written(stat) => Self::Written { version: stat.version },
        }
    }
}
