//! Creates nodes by a transaction that depends on a held node, and retries until the outcome is known.

use std::sync::Arc;

use tracing::debug;

use super::node::{HeldNode, NodeGuard, NodeRegistration};
use crate::config::limits::DIRECTORIES_MAX;
use crate::error::{Error, LossReason, Operation, Phase, Refusal};
use crate::session::{
    Origin, OwnedNode, ParentLifetime, Session, TxnInFlight, janitor, lost_create, make_queue_directory,
};
use crate::time::deadline::Deadline;
use crate::wire::{MultiError, WireError, WriteOp, WriteResult};
use crate::znode::name::{CreateId, Label};
use crate::znode::path::ZnodePath;

/// A node to be created.
pub(crate) struct NewNode {
    pub(crate) directory: ZnodePath,
    pub(crate) create_id: CreateId,
    pub(crate) label: Label,
    pub(crate) operation: WriteOp,
    /// Whether the new hold rests on the node. If not, the node is independent of the hold.
    pub(crate) is_held: bool,
}

/// A node that a transaction created.
pub(crate) struct MadeNode {
    path: String,
    origin: Origin,
}

/// The outcome of a transaction.
pub(crate) enum TxnOutcome {
    /// Committed. The nodes that were wanted, in order.
    Made(Vec<MadeNode>),
    /// The server refused the operation on this node. Nothing was changed.
    Refused(String, Refusal),
    /// A read showed that nothing was changed.
    Nothing,
}

/// The nodes that transactions without a reply may still create. Dropping this value leaves the nodes to the
/// janitor.
pub(crate) struct UnresolvedNodes {
    session: Session,
    nodes: Vec<(ZnodePath, CreateId)>,
    /// One of these transactions may have been committed.
    is_in_doubt: bool,
}

impl UnresolvedNodes {
    pub(crate) fn none(session: &Session) -> Self {
        Self { session: session.clone(), nodes: Vec::new(), is_in_doubt: false }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.nodes.is_empty() && !self.is_in_doubt
    }

    /// Whether a transaction without a reply may have been committed.
    pub(crate) fn is_in_doubt(&self) -> bool {
        self.is_in_doubt
    }

    /// Records that one of the tries was committed, so that no other can be.
    pub(crate) fn settle(&mut self) {
        let nodes = self.session.node_bytes();
        self.nodes.drain(..).for_each(|(directory, create_id)| nodes.forget_create(&directory, create_id));
        self.is_in_doubt = false;
    }

    /// Records that these tries were not committed. That says nothing about earlier ones with the same nodes.
    fn discard(&mut self) {
        self.nodes.clear();
        self.is_in_doubt = false;
    }

    pub(crate) fn absorb(&mut self, mut other: Self) {
        self.is_in_doubt |= other.is_in_doubt;
        for node in std::mem::take(&mut other.nodes) {
            if !self.nodes.contains(&node) {
                self.nodes.push(node);
            }
        }
    }
}

impl Drop for UnresolvedNodes {
    fn drop(&mut self) {
        if self.session.loss().is_some() {
            return;
        }
        for (directory, create_id) in self.nodes.drain(..) {
            janitor::clean_unresolved(&self.session, &directory, create_id, None);
        }
    }
}

/// Creates nodes by a transaction that depends on a held node.
pub(crate) struct NodeTransaction {
    own: Arc<OwnedNode>,
    session: Session,
    new_nodes: Vec<NewNode>,
    /// Whether the transaction deletes the own node.
    replaces: bool,
    /// An earlier try may have been committed.
    is_in_doubt: bool,
    unresolved: UnresolvedNodes,
    in_flight: TxnInFlight,
}

impl NodeTransaction {
    pub(crate) fn new(own: &Arc<OwnedNode>, new_nodes: Vec<NewNode>, replaces: bool) -> Self {
        let (session, in_flight) = (own.session().clone(), TxnInFlight::on([own]));
        let unresolved = UnresolvedNodes::none(&session);
        let (own, is_in_doubt) = (Arc::clone(own), false);
        Self { own, unresolved, session, new_nodes, replaces, is_in_doubt, in_flight }
    }

    /// Sets whether an earlier request may already have committed the same transaction.
    pub(crate) fn in_doubt_if(self, is_in_doubt: bool) -> Self {
        Self { is_in_doubt, ..self }
    }

    /// `operations` begins with the creates of the wanted nodes and ends with the operation on the own node.
    pub(crate) async fn commit(
        &mut self,
        operations: &[WriteOp],
        deadline: Deadline,
    ) -> Result<TxnOutcome, Error> {
        let mut directories_made = 0;
        loop {
            let (connection, before) = (self.session.connection(), self.unresolved.is_in_doubt);
            self.arm();
            let committed = tokio::select! {
                biased;
                committed = self.session.multi(operations, deadline) => committed,
                lost = self.own.lost() => return Err(lost.into()),
            };
            let (index, refusal) = match committed {
                Ok(results) => return self.read(results, connection),
                Err(MultiError::Operation { index, refusal }) => (index, refusal),
                Err(MultiError::Request(WireError::SessionEnded(reason))) => return Err(self.ended(reason)),
                Err(MultiError::Request(WireError::Refused(refusal))) if !refusal.is_transient() => {
                    self.disarm(before);
                    return Ok(TxnOutcome::Refused(self.own.path().to_owned(), refusal));
                }
                Err(MultiError::Request(error @ WireError::Refused(_))) => {
                    self.disarm(before);
                    let path = self.own.path();
                    let retried = self.session.retry_after(&error, Operation::Commit, path, deadline).await;
                    retried.map_err(|stop| self.own.error_of(stop))?;
                    continue;
                }
                Err(MultiError::Request(error)) => {
                    debug!(
                        path = self.own.path(), %error,
                        "a transaction without an answer; looking for its nodes"
                    );
                    return self.find_outcome(deadline, false).await;
                }
            };
            let is_own = index + 1 == operations.len();
            match refusal {
                // An earlier try was committed, or another client deleted the own node.
                Refusal::NoNode if is_own => {
                    let is_only_try = !before && self.own.rests_once();
                    return self.find_outcome(deadline, is_only_try).await;
                }
                Refusal::NodeExists if index < self.new_nodes.len() => {
                    return self.find_outcome(deadline, false).await;
                }
                Refusal::NoNode if index < self.new_nodes.len() && directories_made < DIRECTORIES_MAX => {
                    self.disarm(before);
                    directories_made += 1;
                    self.make_directory(index, deadline).await?;
                }
                refusal => {
                    self.disarm(before);
                    let path = operations.get(index).map(WriteOp::path).unwrap_or_default().to_owned();
                    return Ok(TxnOutcome::Refused(path, refusal));
                }
            }
        }
    }

    /// Once the request is sent, the nodes may be created and the own node may be deleted.
    fn arm(&mut self) {
        self.unresolved.is_in_doubt = true;
        let held = self.new_nodes.iter().filter(|new_nodes| new_nodes.is_held);
        self.unresolved.nodes =
            held.map(|new_nodes| (new_nodes.directory.clone(), new_nodes.create_id)).collect();
        if self.replaces {
            self.own.begin_replacing();
        }
    }

    /// This try was certainly not committed. One `before` it may have been.
    fn disarm(&mut self, before: bool) {
        match (before, self.is_in_doubt) {
            (true, _) => {}
            // An earlier exchange of the hold, with the same nodes, may still be.
            (false, true) => self.unresolved.discard(),
            (false, false) => self.unresolved.settle(),
        }
    }

    /// Reads the reply to a request. `connection` is the connection from before.
    fn read(&self, results: Vec<WriteResult>, connection: Option<u64>) -> Result<TxnOutcome, Error> {
        let mut nodes = Vec::new();
        let mut results = results.into_iter();
        for node in &self.new_nodes {
            let Some(WriteResult::Created(created)) = results.next() else {
                return Err(self.unknown("an answer that does not fit the request"));
            };
            if let (true, Some(stat)) = (node.is_held, &created.stat) {
                self.session
                    .verify_owner(&created.path, stat)
                    .map_err(|_| self.ended(LossReason::SessionReplaced))?;
            }
            let origin = Origin::answered(connection, created.stat.as_ref());
            nodes.push(MadeNode { path: created.path, origin });
        }
        // The own node existed until now, so no earlier try was committed.
        Ok(TxnOutcome::Made(nodes))
    }

    /// Finds out whether the transaction was committed. `is_only_try` says that no other try of it can have
    /// been.
    async fn find_outcome(&mut self, deadline: Deadline, is_only_try: bool) -> Result<TxnOutcome, Error> {
        loop {
            // A missing own node may be the work of the transaction. Any other loss ends the search.
            self.own.settle()?;
            match self.find_outcome_once(deadline).await {
                Ok(Some(done)) => {
                    if matches!(done, TxnOutcome::Nothing) {
                        // The caller sends it again.
                        self.session.backoff(deadline).await;
                    }
                    return Ok(done);
                }
                Ok(None) => {
                    self.own.end_replacing();
                    // A try may have been committed, and its nodes deleted since. Then no other client
                    // deleted the own node.
                    if self.replaces && !is_only_try {
                        self.own.set_given_up();
                    }
                    self.own.lose(LossReason::NodeDeleted);
                    return Err(self.own.loss_by(LossReason::NodeDeleted).into());
                }
                Err(WireError::SessionEnded(reason)) => return Err(self.ended(reason)),
                // Its directory may not be read: no search can find out.
                Err(WireError::Refused(refusal)) if !refusal.is_transient() => {
                    return Err(self.unknown(&refusal.to_string()));
                }
                Err(error) => debug!(path = self.own.path(), %error, "searching again"),
            }
            self.session.backoff(deadline).await;
            self.time_left(deadline)?;
        }
    }

    /// Returns `None` when neither the own node nor its replacement exists.
    async fn find_outcome_once(&self, deadline: Deadline) -> Result<Option<TxnOutcome>, WireError> {
        let session = &self.session;
        // Read before the lists: if the own node is gone, they show what replaced it.
        let mut sync = session.quorum_sync();
        let mut own = session.read(|wire| wire.exists(self.own.path()));
        session.await_reply(&mut sync, deadline).await?;
        let own = session.await_reply(&mut own, deadline).await?;
        let mut found = Vec::new();
        for node in &self.new_nodes {
            let (directory, create_id) = (&node.directory, node.create_id);
            let Some(path) = lost_create::find_once(session, directory, create_id, deadline).await? else {
                continue;
            };
            if node.is_held {
                let mut reply = session.read(|wire| wire.exists(&path));
                match session.await_reply(&mut reply, deadline).await? {
                    Some(stat) => session.verify_owner(&path, &stat)?,
                    None => continue,
                }
            }
            // A search may have used any connection, so the result says nothing about one.
            found.push(MadeNode { path, origin: Origin::FOUND });
        }
        Ok(match (found.len() == self.new_nodes.len(), own) {
            (true, _) => Some(TxnOutcome::Made(found)),
            (false, Some(_)) => Some(TxnOutcome::Nothing),
            (false, None) => None,
        })
    }

    async fn make_directory(&self, index: usize, deadline: Deadline) -> Result<(), Error> {
        let Some(new_nodes) = self.new_nodes.get(index) else {
            return Ok(());
        };
        let lifetime = ParentLifetime::WhileUsed;
        let made = make_queue_directory(&self.session, &new_nodes.directory, lifetime, deadline);
        tokio::select! {
            biased;
            lost = self.own.lost() => Err(lost.into()),
            made = made => made.map_err(|stop| self.own.error_of(stop)),
        }
    }

    /// The created nodes are held from here on. The own node is deleted or stays, as requested.
    pub(crate) fn settle(mut self, nodes: Vec<MadeNode>) -> Result<Vec<HeldNode>, Error> {
        let mut made = Vec::new();
        for (MadeNode { path, origin }, new_node) in nodes.into_iter().zip(&self.new_nodes) {
            if new_node.is_held {
                self.session.node_bytes().found(&path);
                let node_guard = NodeGuard::of(&self.session, path);
                let data = match &new_node.operation {
                    WriteOp::Create { data, .. } => data.as_slice().into(),
                    _ => Arc::default(),
                };
                let node = self.session.register(node_guard.shared_path(), data, origin);
                made.push(HeldNode {
                    registration: NodeRegistration(node),
                    node_guard,
                    label: new_node.label,
                });
            }
        }
        self.unresolved.settle();
        self.in_flight.settle();
        // The original hold must have been valid until here.
        self.own.settle()?;
        for held_node in &made {
            let granted = self.session.try_grant(held_node.node());
            if !granted.map_err(|reset| reset.error(self.own.path()))? {
                return Err(self.own.loss_by(self.session.loss().unwrap_or(LossReason::LeaseRanOut)).into());
            }
            held_node.node().settle()?;
        }
        Ok(made)
    }

    pub(crate) fn into_unresolved(mut self) -> UnresolvedNodes {
        if self.unresolved.is_empty() {
            self.in_flight.settle();
        } else if self.replaces {
            self.own.set_replaced_in_doubt();
        }
        self.own.end_replacing();
        std::mem::replace(&mut self.unresolved, UnresolvedNodes::none(&self.session))
    }

    fn time_left(&self, deadline: Deadline) -> Result<(), Error> {
        match deadline.has_passed() {
            true => Err(Error::timed_out(deadline, self.own.path(), Phase::Answer)),
            false => Ok(()),
        }
    }

    /// After a timeout, a request without a reply may have committed the transaction.
    pub(crate) fn in_doubt(&self, error: Error) -> Error {
        match error {
            Error::Timeout { waited, .. } if !self.unresolved.is_empty() => {
                self.unknown(&format!("no answer within {waited:.1?}"))
            }
            error => error,
        }
    }

    fn ended(&self, reason: LossReason) -> Error {
        self.own.error_of(reason.into())
    }

    fn unknown(&self, cause: &str) -> Error {
        Error::Unknown { operation: Operation::Commit, path: self.own.path().into(), cause: cause.to_owned() }
    }
}
