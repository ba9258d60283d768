//! Replaces one hold by others in one transaction: at every instant exactly one side exists.

use std::any::Any;
use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;

use thiserror::Error as ThisError;
use tracing::{Instrument, debug_span};

use super::lock_queue::LockQueue;
use super::step_error::sequence_exhausted;
use crate::config::limits;
use crate::error::{ConfigError, Error, Operation, Refusal};
use crate::hold::{HeldNode, Hold, NewNode, NodeTransaction, TxnOutcome};
use crate::local::{ExchangeInFlight, HandOffPayload, QueueEntry};
use crate::time::deadline::Deadline;
use crate::wire::{CreateMode, WriteOp};
use crate::znode::name::{CreateId, Kind, Label, NodeName};
use crate::znode::path::{IntoPath, ZnodePath};
use crate::znode::version::Version;
use crate::znode::whole_path::WholePath;

/// A transaction that ends a hold and creates nodes that replace it.
///
/// The transaction commits only while the hold's own node exists, and deletes that node. So it commits at
/// most once, however often it is retried, and after a disconnect a read can always settle whether it
/// committed.
///
/// # Cancel safety
///
/// Dropped before or during [`commit`](Self::commit), it gives up the hold and all nodes created to replace
/// it.
#[must_use = "nothing happens before commit()"]
pub struct Exchange {
    hold: Hold,
    new_nodes: Vec<NewNode>,
    others: Vec<WriteOp>,
    payload: Option<HandOffPayload>,
    error: Option<Error>,
}

/// The result of a committed exchange.
#[derive(Debug)]
#[must_use]
pub struct Exchanged {
    /// The new hold, with the fencing token of the old one. `None` if the exchange created no held node.
    pub hold: Option<Hold>,
    /// Whether all [reads](Hold::read) of the old hold arrived over the connection that carried the
    /// transaction. If not, they may have been stale: read again before relying on them.
    pub reads_current: bool,
}

/// Why an exchange did not commit.
#[derive(Debug, ThisError)]
pub enum ExchangeError {
    /// Nothing was changed, and the hold is still valid: read again, and retry.
    #[error("the exchange was not done")]
    NotDone {
        /// The unchanged hold.
        hold: Box<Hold>,
        /// The path whose operation the server refused, and the reason. `None` if the connection broke or the
        /// successor's node did not exist.
        refused: Option<(WholePath, Refusal)>,
    },
    /// The hold is given up.
    #[error(transparent)]
    Failed(#[from] Error),
}

/// Gives up a hold that is unchanged: its node is deleted in the background.
impl From<ExchangeError> for Error {
    fn from(error: ExchangeError) -> Self {
        match error {
            ExchangeError::Failed(error) => error,
            ExchangeError::NotDone { hold, refused } => match refused {
                Some((path, refusal)) => Self::Refused { operation: Operation::Commit, path, refusal },
                None => Self::NoAnswer {
                    operation: Operation::Commit,
                    path: hold.whole_path(),
                    cause: "the exchange was not done".to_owned(),
                },
            },
        }
    }
}

impl Hold {
    pub(crate) fn payload<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        self.first.node_guard.entry()?.payload()?.downcast().ok()
    }

    /// Starts a transaction that turns this hold into others.
    pub fn exchange(self) -> Exchange {
        Exchange::of(self)
    }

    /// Announces that a transaction that deletes this hold's node is about to be sent.
    pub(super) fn begin_exchange(&self) -> Option<ExchangeInFlight> {
        self.first.node_guard.entry().map(QueueEntry::begin_exchange)
    }

    /// The hold that replaces this one after a committed transaction. `None` if there are no nodes to hold.
    pub(super) fn into_replacement(
        self,
        held_nodes: Vec<HeldNode>,
        in_flight: Option<ExchangeInFlight>,
        payload: Option<HandOffPayload>,
    ) -> Option<Self> {
        let Self { token, mut first, mut reads, mut unresolved, registration, manager, .. } = self;
        // Asked for before the exchange: they do not show its nodes.
        reads.forget_prefetched();
        registration.timer().ends_by("exchanged");
        if let Some(in_flight) = in_flight {
            in_flight.committed(payload);
        }
        first.node_guard.mark_deleted();
        unresolved.settle();
        let mut held_nodes = held_nodes.into_iter();
        let new = held_nodes.next()?;
        Some(Self::new(manager, new, held_nodes.collect(), token, None).with_reads(reads))
    }
}

impl Exchange {
    pub(super) fn of(hold: Hold) -> Self {
        Self { hold, new_nodes: Vec::new(), others: Vec::new(), payload: None, error: None }
    }

    /// Creates a contender's node in `queue`, with the next sequence number. Its directory is created if it
    /// is missing. For a queue of another manager [`commit`](Self::commit) fails with [`Error::Config`].
    pub fn create_contender(mut self, queue: &LockQueue) -> Self {
        if !queue.manager().is_same_as(self.hold.manager()) {
            self.fail(misuse("queue", "of another manager", "make the queue with the manager of the hold"));
        }
        let create_id = self.next_create_id();
        let (label, data, mode) = (queue.label(), queue.data().to_vec(), CreateMode::EphemeralSequential);
        let path = queue.full_directory().listed_child(&create_id.name(label));
        let (directory, operation) = (queue.full_directory().clone(), WriteOp::Create { path, data, mode });
        self.new_nodes.push(NewNode { directory, create_id, label, operation, is_held: true });
        self
    }

    /// Creates a reader's node in the directory of this writer's hold, *with the hold's own sequence number*:
    /// all waiters behind the hold then wait behind this node. For any other hold or label
    /// [`commit`](Self::commit) fails with [`Error::Config`].
    pub fn downgrade_to(mut self, label: Label, data: impl Into<Vec<u8>>) -> Self {
        let create_id = self.next_create_id();
        match in_place(self.hold.full_path(), create_id, label) {
            Some((directory, path)) => {
                let operation = WriteOp::Create { path, data: data.into(), mode: CreateMode::Ephemeral };
                self.new_nodes.push(NewNode { directory, create_id, label, operation, is_held: true });
            }
            None => self.fail(no_reader_at(self.hold.full_path())),
        }
        self
    }

    /// Creates a sequential node in `directory` that outlives the session. The node is no part of the new
    /// hold.
    pub fn create_persistent(
        mut self,
        directory: impl IntoPath,
        label: Label,
        data: impl Into<Vec<u8>>,
    ) -> Self {
        let create_id = self.next_create_id();
        match self.on_server(directory) {
            Ok(directory) => {
                let (data, mode) = (data.into(), CreateMode::PersistentSequential);
                let path = directory.listed_child(&create_id.name(label));
                let operation = WriteOp::Create { path, data, mode };
                self.new_nodes.push(NewNode { directory, create_id, label, operation, is_held: false });
            }
            Err(error) => self.fail(error),
        }
        self
    }

    /// Commits only if the node has this version.
    pub fn check(self, path: impl IntoPath, version: impl Into<Version>) -> Self {
        self.also(path, |path| WriteOp::Check { path, version: version.into().on_wire() })
    }

    /// Writes a node's data, if the node has this version.
    pub fn set(self, path: impl IntoPath, data: impl Into<Vec<u8>>, version: impl Into<Version>) -> Self {
        let data = data.into();
        self.also(path, |path| WriteOp::SetData { path, data, version: version.into().on_wire() })
    }

    /// Deletes a node, whatever version it has.
    pub fn delete(self, path: impl IntoPath) -> Self {
        self.also(path, |path| WriteOp::Delete { path, version: None })
    }

    /// Passes a [payload](crate::HoldExt::payload) to the next hold of this queue, if that is of this process
    /// and no foreign contender holds in between. The payload describes what is true once the transaction is
    /// committed, and until the next holder changes it. No payload is passed if the hold's
    /// [reads](Exchanged::reads_current) may have been stale.
    pub fn with_payload<T: Any + Send + Sync>(self, payload: T) -> Self {
        Self { payload: Some(Arc::new(payload)), ..self }
    }

    fn also(mut self, path: impl IntoPath, operation: impl FnOnce(String) -> WriteOp) -> Self {
        match self.on_server(path) {
            Ok(full) => self.others.push(operation(full.to_string())),
            Err(error) => self.fail(error),
        }
        self
    }

    fn on_server(&self, path: impl IntoPath) -> Result<ZnodePath, Error> {
        Ok(self.hold.manager().full_path(&path.into_path()?)?)
    }

    /// Create ids that depend on the hold's own node alone: only one try can commit, so all tries may share
    /// them.
    fn next_create_id(&self) -> CreateId {
        let number = u128::try_from(self.new_nodes.len()).unwrap_or_default() + 1;
        match CreateId::of(self.hold.full_path()) {
            Some(own) => own.derived(number),
            None => CreateId::new(self.hold.session().settings().environment.unique()),
        }
    }

    fn fail(&mut self, error: Error) {
        self.error.get_or_insert(error);
    }

    /// Commits. One round trip, and no other request, if nothing fails.
    ///
    /// # Errors
    ///
    /// [`ExchangeError::NotDone`] with the unchanged hold, when the server refused an operation, or the
    /// connection broke and a read showed that the transaction had not committed. [`ExchangeError::Failed`]
    /// when the hold was lost, or an argument is invalid; with [`Error::Unknown`] without a reply, when the
    /// deadline passed or the directory may not be listed; with [`Error::Timeout`] before a request was sent.
    ///
    /// # Cancel safety
    ///
    /// Not cancel safe: dropped, it gives up the hold and all nodes created to replace it.
    pub async fn commit(self, deadline: Deadline) -> Result<Exchanged, ExchangeError> {
        let span = debug_span!("exchange", path = self.hold.full_path());
        let exchanged = self.commit_now(deadline).instrument(span).await;
        exchanged.inspect(|exchanged| exchanged.hold.iter().for_each(|hold| hold.start_span(None)))
    }

    async fn commit_now(self, deadline: Deadline) -> Result<Exchanged, ExchangeError> {
        let Self { hold, new_nodes, others, payload, mut error } = self;
        if hold.node_count() > 1 {
            let value = format!("a hold of {} nodes", hold.node_count());
            error = Some(misuse("exchange", value, "exchange a hold that rests on one node"));
        }
        if new_nodes.is_empty() && error.is_none() {
            // Without an answer, only the new nodes show whether it was committed.
            error = Some(misuse("exchange", "without a new node", "create a node, or write by a txn"));
        }
        if let Some(error) = error {
            return Err(error.into());
        }
        hold.settle().map_err(Error::Lost)?;
        let mut operations: Vec<WriteOp> =
            new_nodes.iter().map(|new_nodes| new_nodes.operation.clone()).collect();
        operations.extend(others);
        // The successor becomes the head. If its node were deleted by hand, foreign contenders behind it
        // would hold as well.
        let in_flight = hold.begin_exchange();
        let next = in_flight.as_ref().and_then(|in_flight| in_flight.next.clone());
        operations
            .extend(next.iter().map(|next| WriteOp::Check { path: next.path().to_owned(), version: None }));
        operations.push(WriteOp::Delete { path: hold.full_path().to_owned(), version: None });
        limits::check(operations.iter().map(WriteOp::bytes).sum()).map_err(Error::Config)?;
        let mut attempt = NodeTransaction::new(hold.node(), new_nodes, true).in_doubt_if(hold.is_in_doubt());
        let outcome = attempt.commit(&operations, deadline).await;
        let refused = match outcome.map_err(|error| attempt.in_doubt(error))? {
            TxnOutcome::Made(made) => {
                let reads_current = hold.has_current_reads();
                let made = attempt.settle(made)?;
                let new = hold.into_replacement(made, in_flight, payload.filter(|_| reads_current));
                return Ok(Exchanged { hold: new, reads_current });
            }
            TxnOutcome::Refused(path, Refusal::NoNode)
                if next.as_ref().is_some_and(|next| next.path() == path) =>
            {
                next.iter().for_each(|next| next.on_missing());
                None
            }
            TxnOutcome::Refused(path, refusal) => Some((path.into(), refusal)),
            TxnOutcome::Nothing => None,
        };
        // The next try finds nodes that may still be created, or the janitor does after the end of the hold.
        let hold = hold.unresolved(attempt.into_unresolved());
        // An earlier exchange of the hold may still delete its node.
        in_flight.into_iter().filter(|_| hold.unresolved.is_empty()).for_each(ExchangeInFlight::cancel);
        Err(ExchangeError::NotDone { hold: Box::new(hold), refused })
    }
}

impl Hold {
    pub(crate) async fn add_reader(&self, label: Label, data: Vec<u8>) -> Result<Self, Error> {
        limits::check(data.len())?;
        let node = self.node();
        let session = node.session().clone();
        loop {
            // Every try has a new create id: the node of an abandoned try may still be created, and the
            // janitor deletes it.
            let create_id = CreateId::new(session.settings().environment.unique());
            let (directory, path) =
                in_place(self.full_path(), create_id, label).ok_or_else(|| no_reader_at(self.full_path()))?;
            let operation = WriteOp::Create { path, data: data.clone(), mode: CreateMode::Ephemeral };
            let operations =
                [operation.clone(), WriteOp::Check { path: self.full_path().to_owned(), version: None }];
            let new_nodes = vec![NewNode { directory, create_id, label, operation, is_held: true }];
            let mut attempt = NodeTransaction::new(node, new_nodes, false);
            self.settle()?;
            match attempt.commit(&operations, Deadline::never()).await? {
                TxnOutcome::Made(made) => {
                    let mut made = attempt.settle(made)?.into_iter();
                    let first = made.next().ok_or_else(|| Error::Unknown {
                        operation: Operation::Create,
                        path: self.full_path().into(),
                        cause: "the answer names no node".to_owned(),
                    })?;
                    let (manager, token) = (self.manager().clone(), self.fencing_token());
                    let held = Self::new(manager, first, made.collect(), token, None);
                    held.start_span(None);
                    return Ok(held);
                }
                TxnOutcome::Refused(path, refusal) => {
                    return Err(Error::Refused { operation: Operation::Create, path: path.into(), refusal });
                }
                TxnOutcome::Nothing => {}
            }
        }
    }
}

/// The directory and the full path of a reader's node with the sequence number of the writer's node at
/// `path`.
fn in_place(path: &str, create_id: CreateId, label: Label) -> Option<(ZnodePath, String)> {
    let whole: ZnodePath = path.parse().ok()?;
    let directory = whole.parent()?;
    let own = NodeName::parse(whole.name()).filter(NodeName::has_ordered_sequence)?;
    // Behind a writer's node no waiter that a new reader would exclude holds without a list: a writer lists,
    // and readers exclude no reader. Elsewhere, waiters would overlook a new node with a number that they
    // have passed.
    if own.kind() != Kind::WRITE || label.kind() != Kind::READ {
        return None;
    }
    let name = format!("{}{:010}", create_id.name(label), own.sequence());
    let path = directory.listed_child(&name);
    Some((directory, path))
}

/// Why no reader's node can have the sequence number of the node at `path`.
fn no_reader_at(path: &str) -> Error {
    let name = path.rsplit('/').next().and_then(NodeName::parse);
    if name.is_some_and(|name| name.kind() == Kind::WRITE && !name.has_ordered_sequence()) {
        return sequence_exhausted(path);
    }
    let advice = "only a writer's hold can become a reader's, or have one beside it; use Label::READ";
    misuse("hold", path, advice)
}

fn misuse(name: &'static str, value: impl Into<String>, advice: &'static str) -> Error {
    Error::Config(ConfigError::Setting { name, value: value.into(), advice })
}

impl Debug for Exchange {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Exchange")
            .field("hold", &self.hold)
            .field("new_nodes", &self.new_nodes.len())
            .finish_non_exhaustive()
    }
}
