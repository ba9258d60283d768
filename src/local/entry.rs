use std::ops::Deref;
use std::pin::pin;
use std::sync::Arc;

use futures::future::{FutureExt, TryFutureExt, select};

use super::decide::{ContenderKind, CreateInFlight, Wait};
use super::last_list::LastList;
use super::local_node::{LocalNode, LocalWake};
use super::local_queues::LocalQueues;
use super::shared_queue::SharedQueue;
use crate::error::Lost;
use crate::session::{OwnedNode, Session};
use crate::shared_future::SharedFuture;
use crate::time::deadline::Deadline;
use crate::time::fractions;
use crate::wire::Reply;
use crate::znode::name::NodeName;

/// A contender of this session in its local queue.
///
/// The node leaves the queue when its delete is sent ([`release`](Self::release)), or when it is known to be
/// deleted ([`abandon`](Self::abandon)).
pub(crate) struct QueueEntry {
    pub(super) queue: Arc<SharedQueue>,
    own: Arc<LocalNode>,
}

impl Deref for QueueEntry {
    type Target = LocalNode;

    fn deref(&self) -> &LocalNode {
        &self.own
    }
}

/// How a contender waits.
pub(crate) enum LocalWait {
    /// For this node of its session.
    Behind(Arc<LocalNode>),
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
            own: Arc::new(LocalNode::new(node, sequence)),
        });
        entry.queue.update(session, |state| {
            state.last_used = session.now();
            state.entries.insert(entry.key.node, Arc::clone(&entry.own));
            ((), state.queue.register(entry.key, kind))
        });
        // The node may have been lost before it was registered, without notice to the queue.
        if node.recorded().is_err() {
            entry.abandon();
        }
        entry
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
    pub(crate) fn own_before_writer(&self) -> Option<Arc<LocalNode>> {
        let state = self.queue.state.lock();
        state.queue.own_before_writer(self.key).and_then(|key| state.entry(key))
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

    /// Lists the directory. After a create that is not judged yet, the list may be one that another contender
    /// sent later than that create.
    ///
    /// The server answers the requests of a connection in their order, so such a list is no older than one
    /// that is sent between the two requests, and it shows the node.
    pub(crate) fn list(
        &self,
        session: &Session,
        connection: Option<u64>,
        create: Option<CreateInFlight>,
    ) -> Reply<Arc<Vec<String>>> {
        let mut state = self.queue.state.lock();
        let last = state.last_list.as_ref().filter(|last| connection == Some(last.list.connection()));
        if let Some(reply) = last.zip(create).and_then(|(last, create)| last.shared_by(&create)) {
            return reply.boxed();
        }
        // Under the lock: what is sent later gets a greater order.
        let reply = session.read(|wire| wire.children(&self.queue.directory)).map_ok(Arc::new);
        let reply = SharedFuture::new(reply.boxed());
        state.last_list = connection
            .map(|connection| LastList { list: state.queue.send_list(connection), reply: reply.downgrade() });
        reply.boxed()
    }
}
