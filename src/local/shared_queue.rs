use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::decide::{Effect, EntryKey, LocalQueue, NodeId};
use super::directory_watch::DirectoryWatch;
use super::last_list::LastList;
use super::local_node::{HandOffPayload, LocalNode};
use super::missing_czxid::MissingCzxid;
use crate::session::{OwnedNode, Session};
use crate::time::boot::BootInstant;

/// The local queue of one directory.
pub(super) struct SharedQueue {
    pub(super) directory: Arc<str>,
    pub(super) state: Mutex<SharedState>,
}

pub(super) struct SharedState {
    pub(super) queue: LocalQueue<HandOffPayload>,
    /// The nodes of the queue.
    pub(super) entries: BTreeMap<NodeId, Arc<LocalNode>>,
    /// The heads whose release waits for the create of a successor: each change may end the wait. Nodes
    /// rather than entries, which would keep the queue in use.
    pub(super) releasing: Vec<Arc<OwnedNode>>,
    pub(super) watch: DirectoryWatch,
    pub(super) last_list: Option<LastList>,
    pub(super) missing_czxid: MissingCzxid,
    pub(super) last_used: BootInstant,
}

impl SharedQueue {
    pub(super) fn new(directory: Arc<str>, now: BootInstant) -> Self {
        let state = SharedState {
            queue: LocalQueue::default(),
            entries: BTreeMap::new(),
            releasing: Vec::new(),
            watch: DirectoryWatch::default(),
            last_list: None,
            missing_czxid: MissingCzxid::default(),
            last_used: now,
        };
        Self { directory, state: Mutex::new(state) }
    }

    /// Lets the queue decide, and executes the decisions.
    pub(super) fn update<T>(
        &self,
        session: &Session,
        change: impl FnOnce(&mut SharedState) -> (T, Vec<Effect<HandOffPayload>>),
    ) -> T {
        let mut state = self.state.lock();
        // The server sends the watch's event before the replies to later requests.
        state.poll_watch();
        let (value, effects) = change(&mut state);
        let woken = state.apply(effects, session, &self.directory);
        let releasing = state.releasing.clone();
        drop(state);
        woken.iter().map(|entry| &entry.node).chain(&releasing).for_each(|node| node.notify());
        value
    }

    /// Records that the node was deleted otherwise than as the head.
    pub(super) fn abandon(&self, session: &Session, node: NodeId) {
        self.update(session, |state| {
            let entry = state.entries.remove(&node);
            let effects = entry.map(|entry| state.queue.abandon(entry.key)).unwrap_or_default();
            ((), effects)
        });
    }
}

impl SharedState {
    pub(super) fn poll_watch(&mut self) {
        self.watch.poll(&mut self.queue);
    }

    /// Polls the watch. Returns whether the queue has no node, has been unused since `since`, and can be
    /// dropped. Dropping a watch removes it from the server only if its reply has been read.
    pub(super) fn poll_idle(&mut self, since: BootInstant) -> bool {
        self.poll_watch();
        self.entries.is_empty() && self.last_used <= since && !self.watch.is_in_flight()
    }

    pub(super) fn entry(&self, key: EntryKey) -> Option<Arc<LocalNode>> {
        self.entries.get(&key.node).cloned()
    }

    /// Notes the decisions. Returns the contenders to wake.
    fn apply(
        &mut self,
        effects: Vec<Effect<HandOffPayload>>,
        session: &Session,
        directory: &str,
    ) -> Vec<Arc<LocalNode>> {
        let mut woken = Vec::new();
        for effect in effects {
            let node = match &effect {
                Effect::Grant { node, .. } | Effect::Relist { node } | Effect::JudgeBySequence { node } => {
                    *node
                }
                Effect::WatchDirectory { connection } => {
                    if self.watch.request(session, directory) {
                        self.queue.directory_watch_requested(*connection);
                    }
                    continue;
                }
            };
            if let Some(entry) = self.entries.get(&node) {
                entry.note(effect);
                woken.push(Arc::clone(entry));
            }
        }
        woken
    }
}
