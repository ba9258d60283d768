//! The queue of this session's own nodes: which contender waits for which.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::contender_kind::ContenderKind;
use super::entry::{Entry, EntryKey, EntryState, NodeId, Predecessor};
use super::in_flight::SequenceWaiter;
use super::prediction::PredictionHistory;
use super::released_head::{DirectoryWatchState, ReleasedHead};

/// What the caller has to do, in this order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[must_use]
pub(crate) enum Effect<P> {
    /// The node is the head of the queue. Its contender holds once the session's lease is found valid. The
    /// connection carries the check of the node.
    Grant { node: NodeId, connection: u64, payload: Option<P> },
    /// The contender's knowledge is stale: it lists.
    Relist { node: NodeId },
    /// The contender no longer waits for the sequence numbers of earlier creates.
    JudgeBySequence { node: NodeId },
    /// A watch on the directory pays off. It is optional.
    WatchDirectory { connection: u64 },
}

/// How a contender waits for its predecessor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// The predecessor is of this session: an [`Effect`] ends the wait.
    Local,
    /// A watch on the predecessor ends the wait.
    Remote,
}

/// The queue of this session's own nodes in one directory. `P` is the payload that a holder passes to the
/// next one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct LocalQueue<P> {
    pub(super) entries: BTreeMap<i32, Entry>,
    /// `(predecessor, successor)`: the inverse of the local predecessors of all entries.
    pub(super) successors: BTreeSet<(i32, i32)>,
    /// The heads that were released last, the newest one at the end.
    pub(super) released: VecDeque<ReleasedHead<P>>,
    /// Numbers the requests: creates, and deletes of heads.
    pub(super) last_order: u64,
    /// The creates that were sent and are not judged yet.
    pub(super) pending_creates: BTreeSet<u64>,
    /// The pending creates whose sequence number is not known.
    pub(super) unsequenced: BTreeSet<u64>,
    /// The waiters until the node with this sequence number is known.
    pub(super) sequence_waiters: BTreeMap<i32, SequenceWaiter>,
    pub(super) history: PredictionHistory,
    pub(super) directory_watch: DirectoryWatchState,
}

impl<P> Default for LocalQueue<P> {
    fn default() -> Self {
        Self {
            entries: BTreeMap::new(),
            successors: BTreeSet::new(),
            released: VecDeque::new(),
            last_order: 0,
            pending_creates: BTreeSet::new(),
            unsequenced: BTreeSet::new(),
            sequence_waiters: BTreeMap::new(),
            history: PredictionHistory::default(),
            directory_watch: DirectoryWatchState::default(),
        }
    }
}

impl<P: Clone> LocalQueue<P> {
    /// Adds a node of this session that exists at `key`.
    pub(crate) fn register(&mut self, key: EntryKey, kind: ContenderKind) -> Vec<Effect<P>> {
        let mut effects = Vec::new();
        if let Some(earlier) = self.key_at(key.sequence).filter(|earlier| *earlier != key) {
            // A number is given twice only in two directories of the same path: the earlier directory is
            // deleted, with all its nodes.
            effects.push(Effect::Relist { node: earlier.node });
            effects.extend(self.abandon(earlier));
        }
        self.entries.insert(key.sequence, Entry::new(key.node, kind));
        effects.extend(self.end_wait_for(key.sequence));
        effects
    }

    /// The node with this sequence number.
    pub(crate) fn node_at(&self, sequence: i32) -> Option<NodeId> {
        self.entries.get(&sequence).map(|entry| entry.node)
    }

    /// Records that a list, or an event, showed no predecessor of the contender. Until it
    /// [holds](Self::mark_held) it hands nothing off.
    pub(crate) fn mark_clear(&mut self, key: EntryKey) {
        self.clear_since(key, self.last_order);
    }

    pub(super) fn clear_since(&mut self, key: EntryKey, since: u64) {
        if self.entry(key).is_some_and(|entry| !entry.has_no_predecessor()) {
            self.set_predecessor(key.sequence, Predecessor::None { since });
        }
    }

    /// Records that the contender holds.
    pub(crate) fn mark_held(&mut self, key: EntryKey) {
        self.mark_clear(key);
        if let Some(entry) = self.entry_mut(key) {
            entry.state = EntryState::Held;
        }
    }

    /// Records that a list showed `predecessor` as the nearest node that the contender waits for. `None` if
    /// that node is not of this session.
    pub(crate) fn record_predecessor(
        &mut self,
        key: EntryKey,
        predecessor: Option<EntryKey>,
    ) -> (Wait, Vec<Effect<P>>) {
        match self.entry(key) {
            None => return (Wait::Remote, Vec::new()),
            // The list is older than the hand-off, whose effect is pending.
            Some(entry) if entry.is_head() => return (Wait::Local, Vec::new()),
            Some(_) => {}
        }
        match predecessor.filter(|predecessor| predecessor.sequence < key.sequence) {
            Some(predecessor) if self.entry(predecessor).is_some() => {
                (Wait::Local, self.link(key, predecessor.sequence))
            }
            _ => {
                self.set_predecessor(key.sequence, Predecessor::Unknown);
                (Wait::Remote, Vec::new())
            }
        }
    }

    /// The last node of this session ahead of a writer's, which waits for all of them before it lists. `None`
    /// for other kinds.
    pub(crate) fn own_before_writer(&self, key: EntryKey) -> Option<EntryKey> {
        self.entry(key).filter(|entry| entry.kind == ContenderKind::Write)?;
        let (sequence, entry) = self.entries.range(..key.sequence).next_back()?;
        Some(EntryKey { sequence: *sequence, node: entry.node })
    }

    /// Removes a node that is lost, or that a request without a check of its successors deleted. Its
    /// successors list.
    pub(crate) fn abandon(&mut self, key: EntryKey) -> Vec<Effect<P>> {
        if self.entry(key).is_none() {
            return Vec::new();
        }
        let successors = self.successors_of(key.sequence);
        self.remove(key.sequence);
        self.relist(successors)
    }

    /// Ends the session. No node of it is granted any more.
    pub(crate) fn end_session(&mut self) {
        *self = Self::default();
    }

    /// Whether no node exists here and none is being created.
    #[cfg(test)]
    pub(super) fn is_idle(&self) -> bool {
        self.entries.is_empty() && self.pending_creates.is_empty()
    }

    /// Links a waiter to its local predecessor.
    pub(super) fn link(&mut self, key: EntryKey, predecessor: i32) -> Vec<Effect<P>> {
        let kind = self.entry(key).map(|entry| entry.kind);
        let others: Vec<i32> = match kind {
            // Each contender of a mutex waits for the one before it. Another waiter behind the same
            // predecessor has lost its node, and may not know that yet.
            Some(ContenderKind::Lock(_)) => {
                self.successors_of(predecessor).into_iter().filter(|other| *other != key.sequence).collect()
            }
            _ => Vec::new(),
        };
        self.set_predecessor(key.sequence, Predecessor::Own(predecessor));
        self.relist(others)
    }

    pub(super) fn relist(&mut self, waiters: Vec<i32>) -> Vec<Effect<P>> {
        let mut effects = Vec::new();
        for sequence in waiters {
            self.set_predecessor(sequence, Predecessor::Unknown);
            effects.extend(self.node_at(sequence).map(|node| Effect::Relist { node }));
        }
        effects
    }

    /// The node with this sequence number is known from now on.
    fn end_wait_for(&mut self, sequence: i32) -> Option<Effect<P>> {
        let waiter = self.sequence_waiters.remove(&sequence)?;
        Some(Effect::JudgeBySequence { node: waiter.node })
    }

    fn key_at(&self, sequence: i32) -> Option<EntryKey> {
        self.node_at(sequence).map(|node| EntryKey { sequence, node })
    }

    pub(super) fn entry(&self, key: EntryKey) -> Option<&Entry> {
        self.entries.get(&key.sequence).filter(|entry| entry.node == key.node)
    }

    pub(super) fn entry_mut(&mut self, key: EntryKey) -> Option<&mut Entry> {
        self.entries.get_mut(&key.sequence).filter(|entry| entry.node == key.node)
    }

    pub(super) fn successors_of(&self, sequence: i32) -> Vec<i32> {
        let range = (sequence, i32::MIN)..=(sequence, i32::MAX);
        self.successors.range(range).map(|(_, successor)| *successor).collect()
    }

    /// The only place where a predecessor is written, so that both directions agree.
    pub(super) fn set_predecessor(&mut self, sequence: i32, predecessor: Predecessor) {
        let Some(entry) = self.entries.get_mut(&sequence) else { return };
        if let Predecessor::Own(earlier) = std::mem::replace(&mut entry.predecessor, predecessor) {
            self.successors.remove(&(earlier, sequence));
        }
        if let Predecessor::Own(predecessor) = predecessor {
            self.successors.insert((predecessor, sequence));
        }
    }

    pub(super) fn remove(&mut self, sequence: i32) {
        self.set_predecessor(sequence, Predecessor::Unknown);
        self.entries.remove(&sequence);
    }

    pub(super) fn next_order(&mut self) -> u64 {
        self.last_order += 1;
        self.last_order
    }
}
