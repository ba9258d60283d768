//! The copy of a tree: which reads keep it equal to the tree of the server.
//!
//! Pure: events and answers go in, reads and differences come out.
//!
//! An event says nothing but that a node may have changed; the read that follows it decides. Answers are
//! taken in the order of their requests, so a later answer shows a later state. An event that arrives
//! while a read of its node is in flight causes another read, because the answer may be older than the event.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use super::bounds::{Exceeded, ViewBounds};
use super::followed::Followed;
use super::listed_children::ListedChildren;
use super::node::{Decode, ViewNode, differ, is_same_state};
use super::node_map::{NodeMap, child, parent};
use super::visit::{Cause, Visit};
use crate::wire::Stat;
use crate::znode::zxid::Zxid;

/// A read that the copy needs. The path is below the root, which has the empty path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ReadRequest {
    /// The data and stat of a node.
    Data(Arc<str>),
    /// The stat of a node whose data is large and may be the same.
    Stat(Arc<str>),
    /// The names of the children of a node.
    Names(Arc<str>),
}

impl ReadRequest {
    /// The path of the node, below the root.
    pub(super) fn path(&self) -> &str {
        match self {
            Self::Data(path) | Self::Stat(path) | Self::Names(path) => path,
        }
    }
}

/// The answer to a [`ReadRequest`].
#[derive(Debug)]
pub(super) enum Answer {
    Data(Vec<u8>, Stat),
    Stat(Stat),
    Names(Vec<String>, Stat),
    /// The node does not exist, or may not be read.
    Missing,
}

/// A node that differs: its path, its state before, and its state now.
pub(super) type Changed<T> = (Arc<str>, Option<Arc<ViewNode<T>>>, Option<Arc<ViewNode<T>>>);

/// From this size on the stat of a known node is read before its data.
const LARGE: i32 = 4096;

pub(super) struct Mirror<T> {
    followed: Followed,
    bounds: ViewBounds,
    decode: Arc<Decode<T>>,
    nodes: NodeMap<T>,
    bytes: usize,
    /// What the stat of a node said when its children were last listed. A node without an entry had no
    /// children when it was read.
    listed: HashMap<Arc<str>, ListedChildren>,
    visits: HashMap<Arc<str>, Visit>,
    /// The number of unfinished visits by their cause.
    unfinished: BTreeMap<u64, usize>,
    /// The number of the cause of the next visits.
    cause: u64,
    /// The cause of the last full comparison.
    comparison: u64,
    /// Events were dropped, so a full comparison must follow.
    has_dropped: bool,
    requests: VecDeque<ReadRequest>,
    /// The state of each node that differs, before the first difference.
    before: BTreeMap<Arc<str>, Option<Arc<ViewNode<T>>>>,
    exceeded: Option<Exceeded>,
}

impl<T> Mirror<T> {
    pub(super) fn new(followed: impl Into<Followed>, bounds: ViewBounds, decode: Arc<Decode<T>>) -> Self {
        Self {
            followed: followed.into(),
            bounds,
            decode,
            nodes: NodeMap::default(),
            bytes: 0,
            listed: HashMap::new(),
            visits: HashMap::new(),
            unfinished: BTreeMap::new(),
            cause: 0,
            comparison: 0,
            has_dropped: false,
            requests: VecDeque::new(),
            before: BTreeMap::new(),
            exceeded: None,
        }
    }

    /// The connection is a new one: nothing that was requested or told on the last one counts.
    pub(super) fn restart(&mut self) {
        for path in std::mem::take(&mut self.visits).into_keys() {
            // A child that was listed, and not read yet, is not known.
            self.listed.remove(parent(&path));
        }
        self.unfinished.clear();
        self.requests.clear();
        self.has_dropped = false;
        self.exceeded = None;
        self.compare();
    }

    /// Forgets all nodes.
    pub(super) fn clear(&mut self) {
        self.remove("");
        self.listed.clear();
    }

    /// Compares every node with the server.
    pub(super) fn compare(&mut self) {
        self.comparison = self.begin_cause();
        self.visit("", Cause { number: self.comparison, is_deep: true });
        self.begin_cause();
    }

    /// Later visits have another cause. Returns the number of the last one.
    pub(super) fn begin_cause(&mut self) -> u64 {
        let last = self.cause;
        self.cause += 1;
        last
    }

    /// A node below the root may have changed.
    pub(super) fn hint(&mut self, path: &str) {
        if self.has_dropped || !self.followed.has(path) {
            return;
        }
        // The causes of comparisons are smaller.
        let hinted: usize = self.unfinished.range(self.comparison + 1..).map(|(_, count)| count).sum();
        if hinted >= self.bounds.events_max() {
            self.has_dropped = true;
            return;
        }
        self.visit(path, Cause { number: self.cause, is_deep: false });
    }

    /// Whether all visits of causes up to this one are finished.
    pub(super) fn is_finished(&self, cause: u64) -> bool {
        self.unfinished.first_key_value().is_none_or(|(first, _)| *first > cause)
    }

    /// Whether the last full comparison is finished, and none has to follow.
    pub(super) fn is_complete(&self) -> bool {
        !self.has_dropped && self.is_finished(self.comparison)
    }

    /// Whether no read is needed or in flight.
    #[cfg(test)]
    pub(super) fn is_idle(&self) -> bool {
        self.visits.is_empty() && !self.has_dropped
    }

    /// The nodes that are being read, and those whose state before the first difference is kept.
    #[cfg(test)]
    pub(super) fn kept(&self) -> (usize, usize) {
        (self.visits.len(), self.before.len())
    }

    /// The bound that the tree exceeds.
    pub(super) fn exceeded(&self) -> Option<Exceeded> {
        self.exceeded
    }

    pub(super) fn nodes(&self) -> &NodeMap<T> {
        &self.nodes
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The next read to request, if `takes` accepts it.
    pub(super) fn next_request(&mut self, takes: impl FnOnce(&ReadRequest) -> bool) -> Option<ReadRequest> {
        if self.has_dropped && self.visits.is_empty() {
            self.has_dropped = false;
            self.compare();
        }
        self.requests.front().is_some_and(takes).then(|| self.requests.pop_front())?
    }

    /// The differences since the last call, in the order of the paths.
    pub(super) fn take_changes(&mut self) -> Vec<Changed<T>> {
        let before = std::mem::take(&mut self.before);
        let changes = before.into_iter().map(|(path, before)| {
            let now = self.nodes.get(&path).cloned();
            (path, before, now)
        });
        changes.filter(|(_, before, now)| differ(before.as_ref(), now.as_ref())).collect()
    }

    /// Takes the answer to a request. Answers come in the order of the requests.
    pub(super) fn answer(&mut self, request: ReadRequest, answer: Answer) {
        match (request, answer) {
            (
                ReadRequest::Data(path) | ReadRequest::Stat(path) | ReadRequest::Names(path),
                Answer::Missing,
            ) => {
                self.remove(&path);
                self.finish(&path);
            }
            (ReadRequest::Stat(path), Answer::Stat(stat)) => match self.find_unchanged(&path, &stat) {
                true => self.visit_children(&path, &stat),
                false => self.requests.push_back(ReadRequest::Data(path)),
            },
            (ReadRequest::Data(path), Answer::Data(data, stat)) if self.has_parent(&path) => {
                // The value of a known state is not decoded again.
                if !self.find_unchanged(&path, &stat) {
                    let node = ViewNode::decoded(&path, (data, stat), &*self.decode);
                    self.insert(&path, Arc::new(node));
                }
                self.visit_children(&path, &stat);
            }
            (ReadRequest::Names(path), Answer::Names(names, stat)) if self.nodes.contains(&path) => {
                self.take_names(&path, names, &stat);
            }
            // Without its parent, a node is no part of the tree. The list of the parent causes another visit.
            (ReadRequest::Data(path) | ReadRequest::Stat(path) | ReadRequest::Names(path), _) => {
                self.finish(&path)
            }
        }
    }

    fn has_parent(&self, path: &str) -> bool {
        path.is_empty() || self.nodes.contains(parent(path))
    }

    fn visit(&mut self, path: &str, cause: Cause) {
        if let Some(visit) = self.visits.get_mut(path) {
            let again = visit.again.map_or(cause, |again| again.and(cause));
            if let Some(earlier) = visit.again.replace(again) {
                self.uncount(earlier.number);
            }
            self.count(again.number);
            return;
        }
        let known = self.nodes.get_key(path);
        let path = known.map_or_else(|| path.into(), |(path, _)| Arc::clone(path));
        let is_large = self.nodes.get(&path).is_some_and(|known| known.stat().data_length > LARGE);
        let read: fn(_) -> _ = if is_large { ReadRequest::Stat } else { ReadRequest::Data };
        self.requests.push_back(read(Arc::clone(&path)));
        self.visits.insert(path, Visit { cause, again: None });
        self.count(cause.number);
    }

    /// Whether the node is as it was. If it is the root, which an event named, any node may have changed:
    /// some servers name the watched node in every event of a watch that reaches below it.
    fn find_unchanged(&mut self, path: &str, stat: &Stat) -> bool {
        let is_same = self.nodes.get(path).is_some_and(|known| is_same_state(known.stat(), stat));
        if let Some(visit) = self.visits.get_mut(path).filter(|_| is_same && path.is_empty()) {
            visit.cause.is_deep = true;
        }
        is_same
    }

    fn finish(&mut self, path: &str) {
        let Some(visit) = self.visits.remove(path) else { return };
        self.uncount(visit.cause.number);
        if let Some(again) = visit.again {
            self.uncount(again.number);
            self.visit(path, again);
        }
    }

    fn count(&mut self, cause: u64) {
        *self.unfinished.entry(cause).or_default() += 1;
    }

    fn uncount(&mut self, cause: u64) {
        if let Some(count) = self.unfinished.get_mut(&cause) {
            *count -= 1;
            if *count == 0 {
                self.unfinished.remove(&cause);
            }
        }
    }

    /// The node is as `stat` says; what is below it follows.
    fn visit_children(&mut self, path: &str, stat: &Stat) {
        if stat.children == 0 || !self.followed.has_children_of(path) {
            self.remove_below(path);
            self.listed.remove(path);
            self.finish(path);
            return;
        }
        let listed = self.listed.get(path).copied();
        if listed != Some(ListedChildren::of(stat)) {
            self.requests.push_back(ReadRequest::Names(path.into()));
            return;
        }
        let cause = self.visits.get(path).map(|visit| visit.cause);
        if let Some(cause) = cause.filter(|cause| cause.is_deep) {
            for child in self.nodes.children(path) {
                self.visit(&child, cause);
            }
        }
        self.finish(path);
    }

    fn take_names(&mut self, path: &str, names: Vec<String>, stat: &Stat) {
        let cause = self.visits.get(path).map(|visit| visit.cause);
        let children = names.into_iter().map(|name| child(path, &name));
        let listed: BTreeSet<String> = children.filter(|child| self.followed.has(child)).collect();
        for known in self.nodes.children(path) {
            if !listed.contains(&*known) {
                self.remove(&known);
            }
        }
        let pending_max = self.bounds.nodes_max().saturating_add(self.bounds.events_max());
        if self.nodes.len().max(listed.len()) > self.bounds.nodes_max() {
            self.exceeded = Some(Exceeded::Nodes);
        } else if let Some(cause) = cause {
            for child in listed {
                // Nothing is known of what is below a new child.
                let is_new = !self.nodes.contains(&child);
                if cause.is_deep || is_new {
                    self.visit(&child, Cause { is_deep: true, ..cause });
                }
                // All lists of a level come before its first child, so names count before they are read.
                if self.visits.len() > pending_max {
                    self.exceeded = Some(Exceeded::Nodes);
                    break;
                }
            }
        }
        self.listed.insert(path.into(), ListedChildren::of(stat));
        self.finish(path);
    }

    fn insert(&mut self, path: &Arc<str>, node: Arc<ViewNode<T>>) {
        self.bytes += node.size(path);
        let earlier = self.nodes.insert(Arc::clone(path), Arc::clone(&node));
        if let Some(earlier) = &earlier {
            self.bytes -= earlier.size(path);
            if earlier.stat().czxid != node.stat().czxid {
                self.remove_older_below(path, node.stat().czxid);
                self.listed.remove(path);
            }
        }
        self.before.entry(Arc::clone(path)).or_insert(earlier);
        if self.nodes.len() > self.bounds.nodes_max() {
            self.exceeded = Some(Exceeded::Nodes);
        }
        if self.bytes > self.bounds.bytes_max() {
            self.exceeded = Some(Exceeded::Bytes);
        }
    }

    /// Removes a node and everything below it.
    fn remove(&mut self, path: &str) {
        self.remove_below(path);
        self.remove_node(path);
    }

    fn remove_below(&mut self, path: &str) {
        for below in self.nodes.below(path) {
            self.remove_node(&below);
        }
    }

    /// Removes what was deleted with an earlier node of this path. What was created after the node may have
    /// been read before it; a node above such a one stays until its own read.
    fn remove_older_below(&mut self, path: &str, czxid: Zxid) {
        let mut kept = HashSet::new();
        // From the last level up.
        for below in self.nodes.below(path).into_iter().rev() {
            let is_newer = self.nodes.get(&below).is_some_and(|node| node.stat().czxid > czxid);
            if is_newer || kept.contains(&*below) {
                kept.insert(parent(&below).to_owned());
            } else {
                self.remove_node(&below);
            }
        }
    }

    fn remove_node(&mut self, path: &str) {
        self.listed.remove(path);
        let Some((path, node)) = self.nodes.remove(path) else { return };
        self.bytes -= node.size(&path);
        if matches!(self.before.get(&path), Some(None)) {
            // The node was created since the last change was taken: nothing differs.
            self.before.remove(&path);
        } else {
            self.before.entry(path).or_insert(Some(node));
        }
    }
}
