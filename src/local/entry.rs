use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use futures::future::select;
use parking_lot::Mutex;

use super::{HandOffPayload, LocalQueues, SharedQueue};
use crate::error::Lost;
use crate::local::decide::{ContenderKind, Effect, EntryKey, LocalQueue, NodeId, Wait};
use crate::session::OwnedNode;
use crate::time::deadline::Deadline;
use crate::time::fractions;
use crate::znode::name::NodeName;

/// A node of this session in a local queue.
///
/// The node leaves the queue when its delete is sent ([`release`](Self::release)), or when it is known to be
/// deleted ([`abandon`](Self::abandon)).
pub(crate) struct QueueEntry {
    pub(super) queue: Arc<SharedQueue>,
    pub(super) key: EntryKey,
    pub(crate) node: Arc<OwnedNode>,
    /// How many contenders were ahead at the last count.
    ahead: AtomicU32,
    wakes: Mutex<Wakes>,
}

/// The decisions of the queue that the contender has not seen yet. Written under the lock of the queue.
#[derive(Default)]
struct Wakes {
    /// The connection that carried the hand-off to this contender.
    granted_on: Option<u64>,
    relist: bool,
    judge: bool,
    payload: Option<HandOffPayload>,
}

/// The end of a wait for a node of this session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LocalWake {
    /// The node is the head of the queue.
    Head,
    /// A list decides.
    Relist,
}

/// How a contender waits.
pub(crate) enum LocalWait {
    /// For this node of its session.
    Behind(Arc<QueueEntry>),
    /// The wait is over.
    Over(LocalWake),
    /// For a watch.
    Remote,
}

/// A head whose release waits for the create of a successor.
struct Releasing<'a>(&'a QueueEntry);

impl Drop for Releasing<'_> {
    fn drop(&mut self) {
        self.0.queue.state.lock().releasing.retain(|node| !Arc::ptr_eq(node, &self.0.node));
    }
}

impl QueueEntry {
    pub(crate) fn register(
        node: &Arc<OwnedNode>,
        directory: &str,
        sequence: i32,
        kind: ContenderKind,
    ) -> Arc<Self> {
        let session = node.session();
        let entry = Arc::new(Self {
            queue: LocalQueues::of(session).get_or_new(directory, session.now()),
            key: EntryKey { sequence, node: NodeId(node.number()) },
            node: Arc::clone(node),
            ahead: AtomicU32::new(0),
            wakes: Mutex::default(),
        });
        entry.queue.update(session, |state| {
            state.last_used = session.now();
            state.entries.insert(entry.key.node, Arc::clone(&entry));
            ((), state.queue.register(entry.key, kind))
        });
        // The node may have been lost before it was registered, without notice to the queue.
        if node.recorded().is_err() {
            entry.abandon();
        }
        entry
    }

    pub(crate) fn directory(&self) -> &str {
        &self.queue.directory
    }

    pub(crate) fn ahead(&self) -> u32 {
        self.ahead.load(Ordering::Relaxed)
    }

    pub(crate) fn set_ahead(&self, ahead: u32) {
        self.ahead.store(ahead, Ordering::Relaxed);
    }

    pub(super) fn note(&self, effect: Effect<HandOffPayload>) {
        let mut wakes = self.wakes.lock();
        match effect {
            Effect::Grant { connection, payload, .. } => {
                wakes.granted_on = Some(connection);
                wakes.payload = payload;
            }
            Effect::Relist { .. } => wakes.relist = true,
            Effect::JudgeBySequence { .. } => wakes.judge = true,
            Effect::WatchDirectory { .. } => {}
        }
    }

    /// Under the lock of the queue.
    fn take_wake(&self, queue: &mut LocalQueue<HandOffPayload>) -> Option<LocalWake> {
        let mut wakes = self.wakes.lock();
        let live = self.node.session().live_connection();
        match wakes.granted_on {
            Some(granted_on) if live == Some(granted_on) => Some(LocalWake::Head),
            // The answer to the check of this node is lost.
            Some(_) => {
                (wakes.granted_on, wakes.payload) = (None, None);
                queue.withdraw_grant(self.key);
                Some(LocalWake::Relist)
            }
            None => std::mem::take(&mut wakes.relist).then_some(LocalWake::Relist),
        }
    }

    /// Resolves when the queue has decided, or the node is lost.
    pub(crate) async fn local_wake(&self) -> Result<LocalWake, Lost> {
        self.node
            .until(|| match self.node.verdict() {
                Err(lost) => Some(Err(lost)),
                Ok(()) => self.take_wake(&mut self.queue.state.lock().queue).map(Ok),
            })
            .await
    }

    /// Resolves when the sequence numbers of all creates are known that may belong to predecessors.
    pub(super) async fn may_judge(&self) {
        // The check reads the node's own watch, which would wake this task again and again once it has fired.
        let is_due = || self.node.verdict().is_err() || self.wakes.lock().judge;
        self.node.until(|| is_due().then_some(())).await;
    }

    /// The payload of the previous holder.
    pub(crate) fn payload(&self) -> Option<HandOffPayload> {
        self.wakes.lock().payload.clone()
    }

    pub(super) fn set_payload(&self, payload: Option<HandOffPayload>) {
        self.wakes.lock().payload = payload;
    }

    /// Records that a list showed no node ahead that the contender waits for.
    pub(crate) fn mark_clear(&self) {
        self.queue.state.lock().queue.mark_clear(self.key);
    }

    /// Records that the contender holds.
    pub(crate) fn mark_held(&self) {
        self.queue.state.lock().queue.mark_held(self.key);
    }

    /// Records the nearest node ahead that the contender waits for.
    pub(crate) fn record_predecessor(&self, predecessor: &NodeName) -> LocalWait {
        self.queue.update(self.node.session(), |state| {
            if let Some(wake) = self.take_wake(&mut state.queue) {
                return (LocalWait::Over(wake), Vec::new());
            }
            let own = state
                .queue
                .node_at(predecessor.sequence())
                .and_then(|node| state.entries.get(&node).cloned())
                .filter(|own| predecessor.has_ordered_sequence() && own.node.name() == predecessor.as_str());
            let (wait, effects) = state.queue.record_predecessor(self.key, own.as_ref().map(|own| own.key));
            let wait = match (wait, own) {
                (Wait::Local, Some(own)) => LocalWait::Behind(own),
                _ => LocalWait::Remote,
            };
            (wait, effects)
        })
    }

    /// The last node of this session ahead of a writer's, which waits for all of them before it lists.
    pub(crate) fn own_before_writer(&self) -> Option<Arc<Self>> {
        let state = self.queue.state.lock();
        state.queue.own_before_writer(self.key).and_then(|key| state.entry(key))
    }

    /// The connection that may carry the node's release as the head, if its contender holds.
    pub(super) fn hand_off_connection(&self) -> Option<u64> {
        let may_hand_off = self.node.is_settled() && self.node.recorded().is_ok();
        self.node.session().live_connection().filter(|_| may_hand_off)
    }

    /// Waits for the successor of this session whose create is in flight, if any: a delete that checks the
    /// successor's node saves the successor a list. To be called before [`release`](Self::release).
    pub(crate) async fn await_successor(&self, deadline: Deadline) {
        let order = {
            let mut state = self.queue.state.lock();
            let order = state.queue.last_order();
            if self.hand_off_connection().is_none() || !state.queue.expects_successor(self.key, order) {
                return;
            }
            state.releasing.push(Arc::clone(&self.node));
            order
        };
        let _releasing = Releasing(self);
        // The check reads the node's own watch, which would wake this task again and again once it has fired.
        let is_decided = || {
            self.node.verdict().is_err() || !self.queue.state.lock().queue.expects_successor(self.key, order)
        };
        // The reply is pending, unless the client is disconnected or the successor's task is not polled.
        let limit = deadline.or_after(fractions::earlier_create_limit(self.node.session().timeout()));
        select(pin!(self.node.until(|| is_decided().then_some(()))), pin!(limit.passed())).await;
    }

    /// Sends the delete of the node by `send`, which checks the nodes it is given: their contenders hold from
    /// then on.
    pub(crate) fn release<T>(&self, send: impl FnOnce(Vec<Arc<OwnedNode>>) -> T) -> T {
        debug_assert!(self.node.is_given_up(), "its delete would count as another client's");
        self.queue.update(self.node.session(), |state| {
            let release = state.queue.begin_release(self.key, self.hand_off_connection());
            let checks = release.checks.iter().filter_map(|next| state.entries.get(next));
            // Under the lock: every later request gets a greater sequence number.
            let sent = send(checks.map(|next| Arc::clone(&next.node)).collect());
            let effects = state.queue.finish_release(release, self.hand_off_connection(), None);
            state.entries.remove(&self.key.node);
            (sent, effects)
        })
    }

    /// Records that the node was deleted otherwise than as the head: its successors list.
    pub(crate) fn abandon(&self) {
        self.queue.abandon(self.node.session(), self.key.node);
    }

    /// Records that the node is deleted together with others: nothing is handed off.
    pub(crate) fn mark_leaving(&self) {
        self.queue.state.lock().queue.mark_leaving(self.key);
    }
}
