use std::pin::pin;
use std::sync::Arc;

use futures::future::select;

use super::decide::{ContenderKind, CreateInFlight, Judgement, Prediction};
use super::entry::QueueEntry;
use super::local_node::{HandOffPayload, LocalNode};
use super::local_queues::LocalQueues;
use super::shared_queue::SharedQueue;
use crate::error::Outcome;
use crate::session::{Session, janitor};
use crate::time::deadline::Deadline;
use crate::time::fractions;
use crate::wire::{CreateMode, Created, Reply, WireError, WriteOp};
use crate::znode::name::{CreateId, Label};
use crate::znode::path::ZnodePath;

/// A create of this session, from the moment it is sent until its node is judged.
///
/// Dropped at any point, it leaves the rest to the janitor: a pending reply, or a node that may exist. No
/// other create of this session waits for it then.
pub(crate) struct PendingCreate {
    session: Session,
    directory: ZnodePath,
    create_id: CreateId,
    outcome: CreateOutcome,
    /// Its place among the creates of this session, if its sequence number may decide.
    place: Option<CreatePlace>,
}

enum CreateOutcome {
    /// The create is in flight.
    Sent(Reply<Created>),
    /// The node may exist, or may still be created, and has no guard.
    Unresolved,
    /// There is no node, or a guard owns it.
    Settled,
}

struct CreatePlace {
    queue: Arc<SharedQueue>,
    create: CreateInFlight,
}

impl PendingCreate {
    /// Sends the create. With a `kind`, its sequence number may decide, if `connection` carries it.
    pub(crate) fn send(
        session: &Session,
        directory: &ZnodePath,
        label: Label,
        data: &[u8],
        kind: Option<ContenderKind>,
        connection: Option<u64>,
    ) -> Self {
        let mut pending = Self::new(session, directory);
        let path = pending.path(label);
        let send = || session.create(&path, data, CreateMode::EphemeralSequential);
        let Some((kind, connection)) = kind.zip(connection) else {
            pending.outcome = CreateOutcome::Sent(send());
            return pending;
        };
        let queue = LocalQueues::of(session).get_or_new(directory.as_str(), session.now());
        let (reply, create) = queue.update(session, |state| {
            let create = state.queue.send_create(kind, connection);
            // Under the lock: every later request gets a greater sequence number.
            ((send(), create), Vec::new())
        });
        pending.outcome = CreateOutcome::Sent(reply);
        pending.place = Some(CreatePlace { queue, create });
        pending
    }

    /// A create that is part of a transaction. The caller sends it with the others.
    pub(crate) fn in_multi(
        session: &Session,
        directory: &ZnodePath,
        label: Label,
        data: &[u8],
    ) -> (Self, WriteOp) {
        let pending = Self::new(session, directory);
        let (path, mode) = (pending.path(label), CreateMode::EphemeralSequential);
        (pending, WriteOp::Create { path, data: data.to_owned(), mode })
    }

    fn new(session: &Session, directory: &ZnodePath) -> Self {
        let create_id = CreateId::new(session.settings().environment.unique());
        let (session, directory) = (session.clone(), directory.clone());
        Self { session, directory, create_id, outcome: CreateOutcome::Unresolved, place: None }
    }

    fn path(&self, label: Label) -> String {
        self.directory.listed_child(&self.create_id.name(label))
    }

    pub(crate) fn create_id(&self) -> CreateId {
        self.create_id
    }

    pub(crate) fn prediction(&self) -> Prediction {
        self.place.as_ref().map_or(Prediction::Unknown, |place| place.create.prediction)
    }

    /// Waits for the reply to the create. Cancel safe. With an error, no other create of this session waits
    /// for it from then on.
    pub(crate) async fn wait_created(&mut self, deadline: Deadline) -> Result<Created, WireError> {
        let CreateOutcome::Sent(reply) = &mut self.outcome else {
            return Err(WireError::Broken("the create was answered already".to_owned()));
        };
        let answer = self.session.await_reply(reply, deadline).await;
        match &answer {
            Ok(_) => self.outcome = CreateOutcome::Unresolved,
            // The reply may still arrive. It stays here for the janitor.
            Err(WireError::Timeout) => {}
            Err(WireError::SessionEnded(_)) => self.settle(),
            Err(error) if error.outcome() == Outcome::NotApplied => self.settle(),
            Err(_) => self.outcome = CreateOutcome::Unresolved,
        }
        if answer.is_err() {
            self.end_place();
        }
        answer
    }

    /// Records that no node was created, or that a guard owns the node.
    pub(crate) fn settle(&mut self) {
        self.outcome = CreateOutcome::Settled;
    }

    /// Records that the create has its sequence number. Its node is registered first, if the number
    /// determines the order.
    pub(crate) fn mark_created(&self) {
        if let Some(CreatePlace { queue, create }) = &self.place {
            queue.update(&self.session, |state| ((), state.queue.mark_created(create)));
        }
    }

    /// Records whether the list that was sent with the create showed a predecessor.
    pub(crate) fn record_list(&self, contended: bool) {
        if let Some(place) = &self.place {
            place.queue.state.lock().queue.record_list(contended);
        }
    }

    /// Waits until the predecessor is known, if that may be the node of an earlier create.
    pub(crate) async fn await_predecessor(&mut self, entry: &QueueEntry, deadline: Deadline) {
        let Some(CreatePlace { queue, create }) = &self.place else { return };
        if queue.state.lock().queue.awaits_predecessor(create, entry.key) {
            // The reply to that create arrived earlier, so its task is about to run, perhaps behind thousands
            // of others, unless it is never polled again.
            let limit = deadline.or_after(fractions::earlier_create_limit(self.session.timeout()));
            // Boxed: few contenders wait here, but every acquire's future would have to reserve the space.
            select(Box::pin(entry.may_judge()), pin!(limit.passed())).await;
        }
    }

    /// Judges the node by its sequence number, if that may decide. Returns its predecessor with
    /// [`Judgement::Behind`].
    pub(crate) fn judge_by_sequence(mut self, entry: &QueueEntry) -> Option<JudgedCreate> {
        let CreatePlace { queue, create } = self.place.take()?;
        let connection = self.session.connection();
        let (judgement, predecessor) = queue.update(&self.session, |state| {
            let (judgement, effects) = state.queue.judge_by_sequence(create, entry.key, connection);
            let predecessor = match &judgement {
                Judgement::Behind { predecessor, .. } => state.entry(*predecessor),
                Judgement::Head { payload, .. } => {
                    entry.set_payload(payload.clone());
                    None
                }
                Judgement::Unknown => None,
            };
            ((judgement, predecessor), effects)
        });
        Some(JudgedCreate { create, judgement, predecessor })
    }

    /// Records that a list has judged the node. The outcome by its sequence number is counted.
    pub(crate) fn judged_by_list(mut self, entry: &QueueEntry) {
        let Some(CreatePlace { queue, create }) = self.place.take() else { return };
        let connection = self.session.connection();
        queue.update(&self.session, |state| ((), state.queue.judged_by_list(create, entry.key, connection)));
    }

    fn end_place(&mut self) {
        if let Some(CreatePlace { queue, create }) = self.place.take() {
            queue.update(&self.session, |state| ((), state.queue.forget_create(create)));
        }
    }
}

impl Drop for PendingCreate {
    fn drop(&mut self) {
        self.end_place();
        let reply = match std::mem::replace(&mut self.outcome, CreateOutcome::Settled) {
            CreateOutcome::Sent(reply) => Some(reply),
            CreateOutcome::Unresolved => None,
            CreateOutcome::Settled => return,
        };
        if self.session.loss().is_none() {
            janitor::clean_unresolved(&self.session, &self.directory, self.create_id, reply);
        }
    }
}

/// A create whose node was judged by its sequence number.
pub(crate) struct JudgedCreate {
    pub(crate) create: CreateInFlight,
    pub(crate) judgement: Judgement<HandOffPayload>,
    pub(crate) predecessor: Option<Arc<LocalNode>>,
}
