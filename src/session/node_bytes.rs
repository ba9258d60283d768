//! The sizes of the paths of a session's ephemeral nodes.
//!
//! When a session ends, the leader proposes one transaction that lists the paths of all of its nodes. No
//! server can read a record that is larger than its `jute.maxbuffer` (1 MiB by default, and as much again for
//! the servers' own records): neither from another server nor from its own log, also after a restart
//! (ZOOKEEPER-4306). So a session whose paths are too many takes every server of the ensemble down when it
//! ends, however it ends.
//!
//! Source: ZooKeeper's `CloseSessionTxn` and `BinaryOutputArchive`: four bytes of length before each path.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::telemetry::metrics;
use crate::znode::name::CreateId;
use crate::znode::path::ZnodePath;

/// The length that precedes each path in the record.
const FRAME: usize = 4;

/// The sequence number that the server appends.
const SEQUENCE_BYTES: usize = 10;

/// The nodes of one session: those that exist, and those that may. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct NodeBytes(Arc<Mutex<Ledger>>);

#[derive(Debug)]
struct Ledger {
    max: usize,
    used: usize,
    /// The number of the last create that was sent.
    sent: u64,
    /// The nodes that exist, and every node whose path is known before its create.
    nodes: BTreeMap<String, ChargedNode>,
    /// Sequential creates without an answer, by number: the path without its sequence number.
    in_doubt: BTreeMap<u64, (String, usize)>,
    is_over: bool,
}

/// A path at which the session may have a node.
#[derive(Debug, Default)]
struct ChargedNode {
    bytes: usize,
    /// Creates that were sent and not answered.
    in_flight: usize,
    /// The last create that made the node, or may have. 0: none.
    created_by: u64,
    /// No create up to this one has left a node.
    gone_after: u64,
}

/// A create of an ephemeral node that was sent and has no answer. If it is dropped, the node may exist.
#[derive(Debug)]
pub(super) struct NodeCharge {
    ledger: NodeBytes,
    number: u64,
    path: String,
    bytes: usize,
    is_sequential: bool,
    is_settled: bool,
}

impl NodeBytes {
    pub(super) fn new(max: usize) -> Self {
        let (nodes, in_doubt) = (BTreeMap::new(), BTreeMap::new());
        Self(Arc::new(Mutex::new(Ledger { max, used: 0, sent: 0, nodes, in_doubt, is_over: false })))
    }

    /// The number of the last create that was sent. A delete that is sent now comes after it.
    pub(super) fn last_create(&self) -> u64 {
        self.0.lock().sent
    }

    /// Charges the creates of one request, which also deletes the nodes at `deleted`. A create is a path, and
    /// whether the server appends a sequence number. `None` if there is no room: then nothing may be sent.
    pub(super) fn charge<'a>(
        &self,
        creates: impl IntoIterator<Item = (&'a str, bool)>,
        deleted: impl IntoIterator<Item = &'a str>,
    ) -> Option<Vec<NodeCharge>> {
        let mut ledger = self.0.lock();
        let (before, mut charges) = (ledger.used, Vec::new());
        if ledger.is_over {
            return Some(charges);
        }
        let creates: Vec<(&str, bool)> = creates.into_iter().collect();
        for &(path, is_sequential) in &creates {
            let sequence = if is_sequential { SEQUENCE_BYTES } else { 0 };
            let bytes = path.len() + sequence + FRAME;
            let number = ledger.send(path, bytes, is_sequential);
            let (ledger, path) = (self.clone(), path.to_owned());
            charges.push(NodeCharge { ledger, number, path, bytes, is_sequential, is_settled: false });
        }
        // The request is applied as a whole, so the nodes that it deletes make room for the new ones. A node
        // that is replaced at its path makes none: it is counted already, or is of another session.
        let is_gone = |path: &&str| !creates.iter().any(|(created, _)| created == path);
        let gone = deleted.into_iter().filter(is_gone).filter_map(|path| ledger.nodes.get(path));
        let freed: usize = gone.map(|node| node.bytes).sum();
        let has_room = charges.is_empty() || ledger.used == before || ledger.used <= ledger.max + freed;
        if !has_room {
            charges.iter_mut().for_each(|charge| charge.refuse(&mut ledger));
            return None;
        }
        ledger.moved_from(before);
        Some(charges)
    }

    /// A delete was answered: no create up to `last_create` has left a node at `path`.
    pub(super) fn deleted(&self, path: &str, last_create: u64) {
        let mut ledger = self.0.lock();
        let before = ledger.used;
        ledger.delete(path, last_create);
        ledger.moved_from(before);
    }

    /// The node is known not to exist, and no create of it is in flight.
    pub(crate) fn forget(&self, path: &str) {
        self.deleted(path, self.last_create());
    }

    /// The node at `path` exists and is of this session. If the answer to its create was lost, this ends the
    /// doubt.
    pub(crate) fn found(&self, path: &str) {
        let mut ledger = self.0.lock();
        let before = ledger.used;
        let is_known = ledger.nodes.contains_key(path);
        if let Some(created_by) = (!is_known).then(|| ledger.take_doubt(path, u64::MAX)).flatten() {
            let bytes = path.len() + FRAME;
            ledger.used += bytes;
            ledger.nodes.insert(path.to_owned(), ChargedNode { bytes, created_by, ..ChargedNode::default() });
        }
        ledger.moved_from(before);
    }

    /// No create with this id leaves a node, but for those that were [found](Self::found).
    pub(crate) fn forget_create(&self, directory: &ZnodePath, create_id: CreateId) {
        let prefix = directory.listed_child(&create_id.to_string());
        let mut ledger = self.0.lock();
        let before = ledger.used;
        let mut freed = 0;
        ledger.in_doubt.retain(|_, (path, bytes)| {
            let is_forgotten = path.starts_with(&prefix);
            freed += if is_forgotten { *bytes } else { 0 };
            !is_forgotten
        });
        ledger.used -= freed;
        ledger.moved_from(before);
    }

    /// A search has found no node of the create with this id, and no request of it is in flight.
    pub(crate) fn create_left_nothing(&self, directory: &ZnodePath, create_id: CreateId) {
        self.forget_create(directory, create_id);
        let prefix = directory.listed_child(&create_id.to_string());
        let first = (Bound::Included(prefix.clone()), Bound::Unbounded);
        let ledger = self.0.lock();
        let named =
            ledger.nodes.range(first).map(|(path, _)| path).take_while(|path| path.starts_with(&prefix));
        let nodes: Vec<String> = named.cloned().collect();
        drop(ledger);
        nodes.iter().for_each(|path| self.forget(path));
    }

    /// The paths of the nodes that exist, and of those that may and whose path is known.
    pub(crate) fn paths(&self) -> Vec<String> {
        self.0.lock().nodes.keys().cloned().collect()
    }

    /// The size of the record that ends the session.
    pub(crate) fn used(&self) -> usize {
        self.0.lock().used
    }

    /// The session is over, and its nodes with it.
    pub(super) fn end(&self) {
        let mut ledger = self.0.lock();
        let before = std::mem::take(&mut ledger.used);
        ledger.is_over = true;
        ledger.nodes.clear();
        ledger.in_doubt.clear();
        ledger.moved_from(before);
    }
}

impl Ledger {
    fn send(&mut self, path: &str, bytes: usize, is_sequential: bool) -> u64 {
        self.sent += 1;
        if is_sequential {
            self.used += bytes;
            return self.sent;
        }
        if !self.nodes.contains_key(path) {
            self.used += bytes;
            self.nodes.insert(path.to_owned(), ChargedNode { bytes, ..ChargedNode::default() });
        }
        if let Some(node) = self.nodes.get_mut(path) {
            node.in_flight += 1;
        }
        self.sent
    }

    /// A create was answered, or will not be.
    fn settle(&mut self, path: &str, created_by: Option<u64>) {
        let Some(node) = self.nodes.get_mut(path) else { return };
        node.in_flight = node.in_flight.saturating_sub(1);
        if let Some(number) = created_by.filter(|number| *number > node.gone_after) {
            node.created_by = node.created_by.max(number);
        }
        self.remove_unused(path);
    }

    fn delete(&mut self, path: &str, last_create: u64) {
        if let Some(node) = self.nodes.get_mut(path) {
            node.gone_after = node.gone_after.max(last_create);
            if node.created_by <= last_create {
                node.created_by = 0;
            }
            return self.remove_unused(path);
        }
        // The search for a create without an answer found it.
        self.take_doubt(path, last_create);
    }

    /// Ends the doubt about the create that made the sequential node at `path`, up to `last_create`.
    fn take_doubt(&mut self, path: &str, last_create: u64) -> Option<u64> {
        let made = |create: &str| {
            let sequence = path.strip_prefix(create).unwrap_or_default();
            sequence.len() >= SEQUENCE_BYTES
                && sequence.bytes().all(|byte| byte == b'-' || byte.is_ascii_digit())
        };
        let found =
            self.in_doubt.iter().find(|(number, (create, _))| **number <= last_create && made(create));
        let number = *found?.0;
        let (_, bytes) = self.in_doubt.remove(&number)?;
        self.used -= bytes;
        Some(number)
    }

    fn remove_unused(&mut self, path: &str) {
        if self.nodes.get(path).is_some_and(|node| node.in_flight == 0 && node.created_by == 0) {
            self.used -= self.nodes.remove(path).map_or(0, |node| node.bytes);
        }
    }

    fn moved_from(&self, before: usize) {
        if self.used != before {
            #[expect(clippy::cast_precision_loss, reason = "a gauge; the sums are far below 2^52")]
            metrics::node_bytes(self.used as f64 - before as f64);
        }
    }
}

impl NodeCharge {
    /// The server created the node at `path`.
    pub(super) fn created(mut self, path: &str) {
        self.end(|charge, ledger| match charge.is_sequential {
            false => ledger.settle(&charge.path, Some(charge.number)),
            true => {
                let bytes = path.len() + FRAME;
                let node = ChargedNode { bytes, created_by: charge.number, ..ChargedNode::default() };
                let former = ledger.nodes.insert(path.to_owned(), node).map_or(0, |node| node.bytes);
                ledger.used = (ledger.used + bytes).saturating_sub(charge.bytes + former);
            }
        });
    }

    /// The create was not applied, and never will be.
    pub(super) fn refused(mut self) {
        self.end(Self::refuse);
    }

    fn refuse(&mut self, ledger: &mut Ledger) {
        self.is_settled = true;
        match self.is_sequential {
            false => ledger.settle(&self.path, None),
            true => ledger.used -= self.bytes,
        }
    }

    fn end(&mut self, settle: impl FnOnce(&mut Self, &mut Ledger)) {
        let shared = Arc::clone(&self.ledger.0);
        let mut ledger = shared.lock();
        self.is_settled = true;
        // The end of the session has settled everything.
        if !ledger.is_over {
            let before = ledger.used;
            settle(self, &mut ledger);
            ledger.moved_from(before);
        }
    }
}

impl Drop for NodeCharge {
    fn drop(&mut self) {
        if self.is_settled {
            return;
        }
        self.end(|charge, ledger| match charge.is_sequential {
            false => ledger.settle(&charge.path, Some(charge.number)),
            true => {
                ledger.in_doubt.insert(charge.number, (charge.path.clone(), charge.bytes));
            }
        });
    }
}

impl Drop for Ledger {
    fn drop(&mut self) {
        let before = std::mem::take(&mut self.used);
        self.moved_from(before);
    }
}
