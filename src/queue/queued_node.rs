//! A contender's node in the queue, and what is known of its predecessors.

use std::collections::HashSet;
use std::sync::Arc;

use futures::future::{FutureExt, TryFutureExt, join_all};
use lockkeeper_lock::count_of;
use parking_lot::Mutex;
use tracing::warn;

use super::lock_queue::LockQueue;
use super::predecessors::Predecessors;
use super::rule::{ListJudgement, Rule};
use super::step_error::{StepError, sequence_exhausted};
use crate::error::{Error, Operation, Refusal};
use crate::hold::{NodeGuard, NodeRegistration, Prefetch};
use crate::local::decide::{CreateInFlight, Judgement};
use crate::local::{JudgedCreate, PendingCreate, QueueEntry};
use crate::session::{NodeWatch, Origin, Session};
use crate::time::deadline::Deadline;
use crate::wire::{Reply, Stat, WireError};
use crate::znode::name::NodeName;
use crate::znode::zxid::Zxid;

/// At most so many paths are warned of.
const WARNED_MAX: usize = 64;

/// A contender's node in the queue.
pub(super) struct QueuedNode {
    // Drop order: the registration is removed first, then the node is deleted.
    pub(super) registration: NodeRegistration,
    pub(super) node_guard: NodeGuard,
    pub(super) czxid: Option<Zxid>,
    pub(super) state: QueueState,
    /// The reads that were sent behind the list that granted the hold.
    pub(super) prefetched: Option<Box<Prefetch>>,
    /// The create that made the node, if a list decides, and none was sent.
    unlisted_create: Option<CreateInFlight>,
    /// A watch on the nearest blocker that was requested before it was needed.
    pub(super) early_watch: Option<Box<PendingWatch>>,
}

/// A watch that was requested.
pub(super) struct PendingWatch {
    // The mutex is needed only so that threads may share a ticket.
    pub(super) reply: Mutex<Reply<(Vec<u8>, Stat, NodeWatch)>>,
    /// The connection that carried the request.
    pub(super) connection: Option<u64>,
    pub(super) path: String,
}

/// What is known of the contenders ahead.
pub(super) enum QueueState {
    /// Nothing is known, or the knowledge may be stale.
    Unknown,
    Held,
    Waiting(Predecessors),
}

impl QueuedNode {
    /// `connection` is the connection from before the create was sent; `None` for a node that a search found.
    /// With a `stat`, the owner of the node was compared with the session.
    pub(super) fn new(
        session: &Session,
        mut node_guard: NodeGuard,
        queue: &LockQueue,
        stat: Option<Stat>,
        connection: Option<u64>,
    ) -> Self {
        debug_assert_eq!(
            queue.full_directory().listed_child(node_guard.name()),
            node_guard.path(),
            "a node outside its directory"
        );
        let (path, data) = (node_guard.shared_path(), Arc::clone(queue.data()));
        let origin = Origin::answered(connection, stat.as_ref());
        let node = session.register(path, data, origin);
        node_guard.attach(queue.register(&node));
        Self {
            registration: NodeRegistration(node),
            node_guard,
            czxid: czxid(stat.as_ref()),
            state: QueueState::Unknown,
            prefetched: None,
            unlisted_create: None,
            early_watch: None,
        }
    }

    pub(super) fn session(&self) -> &Session {
        self.registration.0.session()
    }

    /// The node's entry in the local queue, if it has one.
    pub(super) fn entry(&self) -> Option<&Arc<QueueEntry>> {
        self.node_guard.entry()
    }

    /// Lists the directory until the state is known.
    pub(super) async fn ensure_judged(
        &mut self,
        queue: &LockQueue,
        deadline: Deadline,
    ) -> Result<(), StepError> {
        while matches!(self.state, QueueState::Unknown) {
            self.list(queue, deadline).await?;
        }
        Ok(())
    }

    pub(super) async fn list(&mut self, queue: &LockQueue, deadline: Deadline) -> Result<(), StepError> {
        let directory = queue.full_directory().as_str();
        let connection = self.session().connection();
        let create = self.unlisted_create.take();
        let mut reply = match self.entry() {
            Some(entry) => entry.list(self.session(), connection, create),
            None => self.session().read(|wire| wire.children(directory)).map_ok(Arc::new).boxed(),
        };
        // Sent behind the list, as with the create.
        let prefetched = Prefetch::send(queue.reads(), self.session(), connection);
        match self.session().await_reply(&mut reply, deadline).await {
            Ok(children) => {
                let decided_by_list_alone = self.judge(&children, connection, queue, deadline).await?;
                self.prefetched = Some(prefetched)
                    .filter(|_| decided_by_list_alone && matches!(self.state, QueueState::Held))
                    .map(Box::new);
                Ok(())
            }
            // Without the directory, the node does not exist either.
            Err(WireError::Refused(Refusal::NoNode)) => Err(StepError::Restart),
            Err(error) => self.retry_after(&error, Operation::List, directory, deadline).await,
        }
    }

    /// Judges a list that was read on `connection`. Returns `true` if the list alone decided. Otherwise more
    /// was read after the list, and reads from between the two are older than the verdict.
    pub(super) async fn judge(
        &mut self,
        children: &[String],
        connection: Option<u64>,
        queue: &LockQueue,
        deadline: Deadline,
    ) -> Result<bool, StepError> {
        warn_of_semaphore(children, queue);
        let mut decided_by_list_alone = true;
        let mut verdict = queue.rule().judge(children, self.node_guard.name(), queue.ignored_names());
        if let ListJudgement::CompareCzxid(contenders) = verdict {
            decided_by_list_alone = false;
            match Box::pin(self.creation_order(contenders, queue, deadline)).await? {
                Some(ordered) => verdict = ordered,
                None => return Ok(false),
            }
        }
        self.state = match verdict {
            ListJudgement::Held => {
                self.entry().into_iter().for_each(|entry| entry.mark_clear());
                QueueState::Held
            }
            ListJudgement::WaitFor(lower) => {
                self.entry().into_iter().for_each(|entry| entry.set_ahead(count_of(lower.len())));
                Predecessors::new(lower, connection).map_or(QueueState::Held, QueueState::Waiting)
            }
            // Restarting deletes whatever node of this contender still exists: a list alone does not prove
            // that none does.
            ListJudgement::Gone | ListJudgement::CompareCzxid(_) => return Err(StepError::Restart),
            ListJudgement::SequenceExhausted => {
                return Err(sequence_exhausted(queue.full_directory().as_str()).into());
            }
            ListJudgement::ConflictingKind(node) => {
                return Err(
                    Error::ConflictingKind { path: queue.whole_path(), child: node.to_string() }.into()
                );
            }
        };
        Ok(decided_by_list_alone)
    }

    /// Orders contenders by creation zxid where sequence numbers do not give the order. Returns `None` if the
    /// zxids could not be read.
    async fn creation_order(
        &mut self,
        contenders: Vec<NodeName>,
        queue: &LockQueue,
        deadline: Deadline,
    ) -> Result<Option<ListJudgement>, StepError> {
        let mine = self.token_zxid(deadline, queue.full_directory().as_str()).await?;
        let session = self.session().clone();
        let stats = contenders.into_iter().map(|node| {
            let path = queue.full_directory().listed_child(node.as_str());
            let mut reply = session.read(|wire| wire.exists(&path));
            let session = session.clone();
            async move { (session.await_reply(&mut reply, deadline).await, node) }
        });
        let mut ordered = Vec::new();
        for (stat, node) in join_all(stats).await {
            match stat {
                Ok(Some(stat)) => ordered.push((stat.czxid, node)),
                Ok(None) => {}
                Err(error) => {
                    self.retry_after(&error, Operation::Read, queue.full_directory().as_str(), deadline)
                        .await?;
                    return Ok(None);
                }
            }
        }
        Ok(Some(Rule::judge_by_creation(ordered, mine)))
    }

    /// Judges the node by its sequence number. No list is needed where the number determines the predecessor.
    /// `prefetched` was sent behind the create.
    pub(super) async fn judge_by_sequence(
        &mut self,
        mut create: PendingCreate,
        prefetched: Option<Box<Prefetch>>,
        connection: Option<u64>,
        deadline: Deadline,
    ) {
        let Some(entry) = self.node_guard.entry() else { return };
        create.await_predecessor(entry, deadline).await;
        let Some(JudgedCreate { create, judgement, predecessor }) = create.judge_by_sequence(entry) else {
            return;
        };
        self.state = match (judgement, predecessor) {
            (Judgement::Head { since_send, .. }, _) => {
                self.prefetched = prefetched.filter(|_| since_send);
                QueueState::Held
            }
            (Judgement::Behind { is_second, .. }, Some(predecessor)) => {
                // Unless the predecessor is known to be the head, at least one contender may be ahead of it.
                let hidden = if is_second { 0 } else { predecessor.ahead().max(1) };
                entry.set_ahead(hidden.saturating_add(1));
                NodeName::parse(predecessor.node.name()).map_or(QueueState::Unknown, |name| {
                    QueueState::Waiting(Predecessors::behind(name, hidden, connection))
                })
            }
            (Judgement::Behind { .. } | Judgement::Unknown, _) => {
                self.unlisted_create = Some(create);
                QueueState::Unknown
            }
        };
    }

    /// The node no longer exists. The node itself showed that, not a list, which may be stale.
    pub(super) fn deleted(&mut self) -> StepError {
        self.node_guard.mark_deleted();
        StepError::Restart
    }

    pub(super) async fn token_zxid(
        &mut self,
        deadline: Deadline,
        directory: &str,
    ) -> Result<Zxid, StepError> {
        loop {
            if let Some(czxid) = self.czxid {
                return Ok(czxid);
            }
            let path = self.registration.0.path().to_owned();
            let mut reply = self.session().read(|wire| wire.exists(&path));
            match self.session().await_reply(&mut reply, deadline).await {
                Ok(Some(stat)) => self.czxid = czxid(Some(&stat)),
                Ok(None) => return Err(self.deleted()),
                Err(error) => self.retry_after(&error, Operation::Read, directory, deadline).await?,
            }
        }
    }

    /// Handles a failed read: fails, restarts, or marks the state as unknown, so that the directory is listed
    /// again.
    pub(super) async fn retry_after(
        &mut self,
        error: &WireError,
        operation: Operation,
        path: &str,
        deadline: Deadline,
    ) -> Result<(), StepError> {
        self.state = QueueState::Unknown;
        Ok(self.session().retry_after(error, operation, path, deadline).await?)
    }
}

/// The creation zxid, if the server returned one.
pub(super) fn czxid(stat: Option<&Stat>) -> Option<Zxid> {
    stat.map(|stat| stat.czxid).filter(|czxid| *czxid > Zxid::ZERO)
}

/// Logs once for each path that it is also that of a semaphore: its leases are no contenders, so a lock and
/// the semaphore do not exclude each other.
fn warn_of_semaphore(children: &[String], queue: &LockQueue) {
    let has = |name: &str| children.iter().any(|child| child == name);
    if !has("leases") || !has("locks") {
        return;
    }
    let warned: Arc<WarnedPaths> = queue.manager().shared_table();
    if warned.record(queue.full_directory().as_str()) {
        warn!(
            path = %queue.full_directory(),
            "a semaphore has the path of a lock, and they do not exclude each other: give each its own path"
        );
    }
}

/// The paths that were warned of.
#[derive(Default)]
struct WarnedPaths(Mutex<HashSet<String>>);

impl WarnedPaths {
    /// Records a path that is warned of. Returns whether it was not yet.
    fn record(&self, path: &str) -> bool {
        let mut paths = self.0.lock();
        // There is one mistake, or a few: the log is not for all of them.
        paths.len() < WARNED_MAX && paths.insert(path.to_owned())
    }
}
