//! Where this session's own nodes stand behind each other, and what follows from that without asking.
//!
//! The server gives every number of a directory once: between two of ours that follow each other there is nobody.

mod directory_watch;
mod fast_path;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use dashmap::DashMap;
use parking_lot::Mutex;
use tokio::sync::oneshot;

use self::directory_watch::DirectoryWatch;
pub(crate) use self::fast_path::{CreateInFlight, FastPath, Predecessor};
use super::Session;
use super::owned_node::{HandOffPayload, OwnedNode};
use crate::queue::Kind;
use crate::time::boot::BootInstant;

/// A place in a line in which numbers tell who is in front.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SequenceKey {
    pub(crate) directory: Arc<str>,
    pub(crate) sequence: i32,
    pub(crate) kind: Kind,
}

/// How many of the heads that left last are remembered.
const RELEASED_MAX: usize = 16;

/// The lines of one session, by directory.
#[derive(Default)]
pub(crate) struct LocalQueues(DashMap<Arc<str>, Arc<Mutex<LocalQueue>>>);

struct LocalQueue {
    nodes: BTreeMap<i32, Arc<OwnedNode>>,
    last_used: BootInstant,
    /// The last heads of ours whose deletes were sent, newest last.
    released: VecDeque<ReleasedHead>,
    /// Numbers creates, and deletes of heads, in the order in which they are sent.
    sent: u64,
    /// The creates of which nobody has said yet who is in front.
    pending_creates: BTreeSet<u64>,
    /// Those of them of which nobody has said yet what number they got.
    unsequenced: BTreeSet<u64>,
    /// Who wants to know when one of ours stands with this number, and when that one sent its own create.
    sequence_waiters: BTreeMap<i32, (u64, oneshot::Sender<()>)>,
    /// Our greatest number here, and the connection that made it.
    last_sequence: Option<(i32, u64)>,
    /// How many of ours in a row got the number after another one of ours.
    consecutive_creates: u8,
    /// Somebody was in front when the line was read last.
    last_list_contended: bool,
    /// The last number that came without a creation time, and whether it was the one after the last but one.
    missing_czxid: Option<(i32, bool)>,
    /// Somebody else got a number between two of ours, and so many in a row have not followed yet.
    foreign_interleaved: bool,
    watch: DirectoryWatch,
    /// How often no watch could show that the directory is the same: a later watch says nothing of nodes that
    /// left before it.
    gaps: u64,
}

/// A node of ours that was the head, and whose delete was sent.
struct ReleasedHead {
    sequence: i32,
    kind: Kind,
    /// The connection over which it was.
    connection: u64,
    sent: u64,
    /// If the directory was watched then: after how many [gaps](LocalQueue::gaps).
    covered_after: Option<u64>,
    /// What it had to tell the next one.
    payload: Option<HandOffPayload>,
}

impl LocalQueue {
    fn new(now: BootInstant) -> Self {
        Self {
            nodes: BTreeMap::new(),
            last_used: now,
            released: VecDeque::new(),
            sent: 0,
            pending_creates: BTreeSet::new(),
            unsequenced: BTreeSet::new(),
            sequence_waiters: BTreeMap::new(),
            last_sequence: None,
            consecutive_creates: 0,
            last_list_contended: false,
            missing_czxid: None,
            foreign_interleaved: false,
            watch: DirectoryWatch::None,
            gaps: 0,
        }
    }

    fn next_sent(&mut self) -> u64 {
        self.sent += 1;
        self.sent
    }

    fn new_release(&mut self, sequence_key: &SequenceKey, connection: u64) -> ReleasedHead {
        let SequenceKey { sequence, kind, .. } = *sequence_key;
        let covered_after = self.is_same_directory(connection).then_some(self.gaps);
        ReleasedHead { sequence, kind, connection, sent: self.next_sent(), covered_after, payload: None }
    }

    /// Whether this is the directory that it was since the watch was set, and so for all that have left since.
    fn is_same_directory(&mut self, connection: u64) -> bool {
        let is_same = self.watch.is_quiet(connection);
        if !is_same {
            self.gaps += 1;
        }
        is_same
    }

    /// Whether the present watch stood when the delete of this node was sent. The answer may be looked at only
    /// much later.
    fn directory_unchanged(&self, released: &ReleasedHead) -> bool {
        released.covered_after == Some(self.gaps)
    }

    fn add_released(&mut self, released: ReleasedHead) {
        if self.released.len() == RELEASED_MAX {
            self.released.pop_front();
        }
        self.released.push_back(released);
    }

    fn released_at(&self, sequence: i32, connection: u64) -> Option<&ReleasedHead> {
        self.released
            .iter()
            .rev()
            .find(|released| released.sequence == sequence && released.connection == connection)
    }

    /// Whether our number before this one is known.
    fn follows(&self, sequence: i32, connection: u64) -> bool {
        let before = sequence.checked_sub(1);
        before.is_some_and(|before| {
            self.nodes.contains_key(&before) || self.released_at(before, connection).is_some()
        })
    }

    fn is_idle(&self, long_ago: BootInstant) -> bool {
        self.nodes.is_empty() && self.pending_creates.is_empty() && self.last_used <= long_ago
    }

    fn forget(&mut self) {
        // A watch that nobody has waited for yet is taken in, so that it is taken back.
        self.watch.take_in();
        self.watch = DirectoryWatch::None;
    }
}

impl Session {
    fn local_queue(&self, directory: &str) -> Option<Arc<Mutex<LocalQueue>>> {
        self.local_queues().0.get(directory).map(|queue| Arc::clone(&queue))
    }

    fn local_queue_or_new(&self, directory: &str) -> Arc<Mutex<LocalQueue>> {
        if let Some(queue) = self.local_queue(directory) {
            return queue;
        }
        let new = || Arc::new(Mutex::new(LocalQueue::new(self.now())));
        Arc::clone(&self.local_queues().0.entry(directory.into()).or_insert_with(new))
    }

    /// A node of ours took its place.
    pub(super) fn add_node(&self, sequence_key: &SequenceKey, node: &Arc<OwnedNode>) {
        let queue = self.local_queue_or_new(&sequence_key.directory);
        let mut queue = queue.lock();
        queue.last_used = self.now();
        queue.nodes.insert(sequence_key.sequence, Arc::clone(node));
        if let Some((_, stands)) = queue.sequence_waiters.remove(&sequence_key.sequence) {
            let _ = stands.send(());
        }
    }

    pub(super) fn remove_node(&self, sequence_key: &SequenceKey) {
        if let Some(queue) = self.local_queue(&sequence_key.directory) {
            queue.lock().nodes.remove(&sequence_key.sequence);
        }
    }

    /// The last node of ours in front of this position, if one stands.
    pub(crate) fn owned_node_before(&self, sequence_key: &SequenceKey) -> Option<Arc<OwnedNode>> {
        let queue = self.local_queue(&sequence_key.directory)?;
        let last = |queue: &LocalQueue| {
            queue.nodes.range(..sequence_key.sequence).next_back().map(|(_, node)| Arc::clone(node))
        };
        let last = last(&queue.lock());
        // Not under the lock of the line: who leaves takes that under its own.
        last.filter(|node| node.released().is_none())
    }

    /// The node of ours with this number, if it stands in line.
    pub(crate) fn owned_node_at(&self, directory: &str, sequence: i32) -> Option<Arc<OwnedNode>> {
        self.local_queue(directory)?.lock().nodes.get(&sequence).cloned()
    }

    /// The server told no creation time with this number.
    pub(crate) fn record_missing_czxid(&self, directory: &str, sequence: i32) {
        let queue = self.local_queue_or_new(directory);
        let mut queue = queue.lock();
        queue.last_used = self.now();
        let follows = queue.missing_czxid.is_some_and(|(last, _)| last.checked_add(1) == Some(sequence));
        queue.missing_czxid = Some((sequence, follows));
    }

    /// The number that the next create of ours there is likely to get, where the server tells no creation time with it.
    pub(crate) fn sequence_to_prefetch(&self, directory: &str) -> Option<i32> {
        let missing_czxid = self.local_queue(directory)?.lock().missing_czxid;
        missing_czxid.filter(|(_, follows)| *follows)?.0.checked_add(1)
    }

    pub(super) fn has_local_queues(&self) -> bool {
        !self.local_queues().0.is_empty()
    }

    /// Forgets the lines in which nothing of ours has stood for a session timeout, and their watches with them.
    pub(super) fn forget_idle_queues(&self) {
        let long_ago = self.now().before(self.timeout());
        let queues = &self.local_queues().0;
        let idle = queues.iter().filter(|entry| entry.value().lock().is_idle(long_ago));
        let mut idle: Vec<Arc<str>> = idle.map(|entry| Arc::clone(entry.key())).collect();
        // In an order that chance has no part in.
        idle.sort();
        for directory in idle {
            let forgotten = queues.remove_if(&directory, |_, queue| queue.lock().is_idle(long_ago));
            if let Some((_, queue)) = forgotten {
                queue.lock().forget();
            }
        }
    }

    pub(super) fn forget_local_queues(&self) {
        let mut all: Vec<Arc<str>> =
            self.local_queues().0.iter().map(|entry| Arc::clone(entry.key())).collect();
        all.sort();
        for directory in all {
            if let Some((_, queue)) = self.local_queues().0.remove(&directory) {
                // Who approaches holds the line, and the nodes in it hold the session.
                queue.lock().nodes.clear();
            }
        }
    }
}
