use std::sync::Arc;

use super::transaction::{Txn, TxnResult};
use crate::config::limits;
use crate::error::{Error, Lost, Operation, Refusal, TxnError};
use crate::manager::ConnectionManager;
use crate::session::{OwnedNode, Session, TxnInFlight};
use crate::time::deadline::Deadline;
use crate::wire::{MultiError, WireError, WriteOp};

/// The request of a transaction: first the marker, if there is one, then the checks of the hold's nodes, and
/// then the writes. It can be sent several times.
pub(super) struct Prepared<'a> {
    manager: ConnectionManager,
    /// The path that errors about the whole request name.
    path: String,
    holds: Vec<&'a Arc<OwnedNode>>,
    /// The number of operations before the checks: 0 or 1.
    markers: usize,
    operations: Vec<WriteOp>,
}

/// Why a request was not committed, or may not have been.
pub(super) enum NotCommitted {
    /// The servers refused to create the marker.
    Marker(Refusal),
    /// For another reason.
    Error(TxnError),
}

impl<'a> Prepared<'a> {
    pub(super) fn of(txn: Txn<'a>, marker: Option<WriteOp>) -> Result<Self, TxnError> {
        if let Some(error) = txn.error {
            return Err(TxnError::Failed(error));
        }
        let (path, manager, holds) = (txn.path().to_owned(), txn.manager, txn.holds);
        let markers = usize::from(marker.is_some());
        let checks = holds.iter().map(|hold| WriteOp::Check { path: hold.path().to_owned(), version: None });
        let operations: Vec<WriteOp> = marker.into_iter().chain(checks).chain(txn.writes).collect();
        limits::check(operations.iter().map(WriteOp::bytes).sum()).map_err(Error::Config)?;
        Ok(Self { manager, path, holds, markers, operations })
    }

    /// The session of the holds. Without one, the present session of the manager.
    pub(super) async fn session(&self, deadline: Deadline) -> Result<Session, TxnError> {
        match self.first() {
            Some(hold) => Ok(hold.session().clone()),
            None => self.manager.session(deadline, &self.path).await.map_err(TxnError::Failed),
        }
    }

    pub(super) fn first(&self) -> Option<&OwnedNode> {
        self.holds.first().map(|hold| &***hold)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }

    /// Settles the holds, and fails if one is lost. Nothing is sent.
    pub(super) fn settle(&self) -> Result<(), Lost> {
        self.holds.iter().try_for_each(|hold| hold.settle())
    }

    /// No successor may be granted in memory before the outcome of this transaction is known.
    pub(super) fn begin(&self) -> TxnInFlight {
        TxnInFlight::on(self.holds.iter().copied())
    }

    /// Sends the request once, and waits for the answer.
    pub(super) async fn send(
        &self,
        session: &Session,
        deadline: Deadline,
    ) -> Result<Vec<TxnResult>, NotCommitted> {
        let before = self.markers + self.holds.len();
        match session.multi(&self.operations, deadline).await {
            Ok(results) => {
                let results = results.into_iter().skip(before);
                let read: Result<_, _> = results.map(|result| TxnResult::of(&self.manager, result)).collect();
                read.map_err(|bad| {
                    NotCommitted::failed(Error::bad_answer(Operation::Commit, &self.path, &bad))
                })
            }
            Err(MultiError::Operation { index, refusal }) => Err(self.refused(index, refusal)),
            Err(MultiError::Request(error)) => Err(NotCommitted::failed(self.unanswered(&error, deadline))),
        }
    }

    fn refused(&self, index: usize, refusal: Refusal) -> NotCommitted {
        if index < self.markers {
            return NotCommitted::Marker(refusal);
        }
        match self.holds.get(index - self.markers) {
            Some(hold) if refusal == Refusal::NoNode => {
                let reason = hold.missing_reason();
                hold.lose(reason);
                NotCommitted::Error(TxnError::Lost(hold.loss_by(reason)))
            }
            _ => {
                let write = index.saturating_sub(self.markers + self.holds.len());
                NotCommitted::Error(self.refusal_of(index, write, refusal))
            }
        }
    }

    fn unanswered(&self, error: &WireError, deadline: Deadline) -> Error {
        let (operation, path) = (Operation::Commit, self.path.as_str());
        match error {
            WireError::SessionEnded(_) => {
                Error::Unknown { operation, path: path.into(), cause: error.to_string() }
            }
            error => Error::of_wire(operation, path, error, deadline),
        }
    }

    pub(super) fn error_of(&self, refused: NotCommitted) -> TxnError {
        match refused {
            NotCommitted::Error(error) => error,
            NotCommitted::Marker(refusal) => self.refusal_of(0, 0, refusal),
        }
    }

    /// The server refused the operation at `index`, which is that write of the caller.
    fn refusal_of(&self, index: usize, write: usize, refusal: Refusal) -> TxnError {
        let refused = self.operations.get(index);
        let operation = refused.map_or(Operation::Commit, WriteOp::operation);
        let path = refused.map(WriteOp::path).unwrap_or_default().into();
        TxnError::Refused { index: write, operation, path, refusal }
    }
}

impl NotCommitted {
    fn failed(error: Error) -> Self {
        Self::Error(TxnError::Failed(error))
    }
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

    pub(crate) fn operation(&self) -> Operation {
        match self {
            Self::Check { .. } => Operation::Check,
            Self::Create { .. } => Operation::Create,
            Self::SetData { .. } => Operation::Write,
            Self::Delete { .. } => Operation::Delete,
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
