use std::pin::pin;
use std::sync::Arc;

use futures::future::select;

use super::decide::{ContenderKind, CreateInFlight, Judgement, Prediction};
use super::entry::QueueEntry;
use super::local_node::{HandOffPayload, LocalNode};
use super::local_queues::LocalQueues;
use super::shared_queue::SharedQueue;
use crate::session::Session;
use crate::time::deadline::Deadline;
use crate::time::fractions;

/// A create of this session, from the moment it is sent until its node is judged.
pub(crate) struct PendingCreate {
    session: Session,
    queue: Arc<SharedQueue>,
    create: CreateInFlight,
}

impl Drop for PendingCreate {
    fn drop(&mut self) {
        self.queue.update(&self.session, |state| ((), state.queue.forget_create(self.create)));
    }
}

impl PendingCreate {
    /// Sends the create by `send`.
    pub(crate) fn send<T>(
        session: &Session,
        directory: &str,
        kind: ContenderKind,
        connection: u64,
        send: impl FnOnce() -> T,
    ) -> (T, Self) {
        let queue = LocalQueues::of(session).get_or_new(directory, session.now());
        let (sent, create) = queue.update(session, |state| {
            let create = state.queue.send_create(kind, connection);
            // Under the lock: every later request gets a greater sequence number.
            ((send(), create), Vec::new())
        });
        (sent, Self { session: session.clone(), queue, create })
    }

    pub(crate) fn in_flight(&self) -> CreateInFlight {
        self.create
    }

    pub(crate) fn prediction(&self) -> Prediction {
        self.create.prediction
    }

    /// Records that the create has its sequence number. Its node is registered first, if the number
    /// determines the order.
    pub(crate) fn mark_created(&self) {
        self.queue.update(&self.session, |state| ((), state.queue.mark_created(&self.create)));
    }

    /// Records whether the list that was sent with the create showed a predecessor.
    pub(crate) fn record_list(&self, contended: bool) {
        self.queue.state.lock().queue.record_list(contended);
    }

    /// Waits until the predecessor is known, if that may be the node of an earlier create.
    pub(crate) async fn await_predecessor(&self, entry: &QueueEntry, deadline: Deadline) {
        if self.queue.state.lock().queue.awaits_predecessor(&self.create, entry.key) {
            // The reply to that create arrived earlier, so its task is about to run, perhaps behind thousands
            // of others, unless it is never polled again.
            let limit = deadline.or_after(fractions::earlier_create_limit(self.session.timeout()));
            // Boxed: few contenders wait here, but every acquire's future would have to reserve the space.
            select(Box::pin(entry.may_judge()), pin!(limit.passed())).await;
        }
    }

    /// Judges the node by its sequence number. Returns its predecessor with [`Judgement::Behind`].
    pub(crate) fn judge_by_sequence(
        self,
        entry: &QueueEntry,
    ) -> (Judgement<HandOffPayload>, Option<Arc<LocalNode>>) {
        let connection = self.session.connection();
        self.queue.update(&self.session, |state| {
            let (judgement, effects) = state.queue.judge_by_sequence(self.create, entry.key, connection);
            let predecessor = match &judgement {
                Judgement::Behind { predecessor, .. } => state.entry(*predecessor),
                Judgement::Head { payload, .. } => {
                    entry.set_payload(payload.clone());
                    None
                }
                Judgement::Unknown => None,
            };
            ((judgement, predecessor), effects)
        })
    }

    /// Records that a list has judged the node. The outcome by its sequence number is counted.
    pub(crate) fn judged_by_list(self, entry: &QueueEntry) {
        let connection = self.session.connection();
        self.queue.update(&self.session, |state| {
            ((), state.queue.judged_by_list(self.create, entry.key, connection))
        });
    }
}
