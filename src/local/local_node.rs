use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use parking_lot::Mutex;

use super::decide::{Effect, EntryKey, LocalQueue, NodeId};
use crate::session::OwnedNode;

/// The payload that a holder passes to the next holder of this process.
pub(crate) type HandOffPayload = Arc<dyn Any + Send + Sync>;

/// A node of this session in a local queue, and the decisions that its contender has not seen yet.
pub(crate) struct LocalNode {
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

impl LocalNode {
    pub(super) fn new(node: &Arc<OwnedNode>, sequence: i32) -> Self {
        let key = EntryKey { sequence, node: NodeId(node.number()) };
        Self { key, node: Arc::clone(node), ahead: AtomicU32::new(0), wakes: Mutex::default() }
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
    pub(super) fn take_wake(&self, queue: &mut LocalQueue<HandOffPayload>) -> Option<LocalWake> {
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

    /// The connection that may carry the node's release as the head, if its contender holds.
    pub(super) fn hand_off_connection(&self) -> Option<u64> {
        let may_hand_off = self.node.is_settled() && self.node.recorded().is_ok();
        self.node.session().live_connection().filter(|_| may_hand_off)
    }
}
