//! The local queues of a session, and the execution of their effects.
//!
//! [`LocalQueue`] decides. Each local queue has a lock here. The requests whose order matters are sent while
//! the lock is held. The decisions of the queue are noted in the entries under the same lock, and their
//! contenders are woken after the lock is released.

mod create;
pub(crate) mod decide;
mod directory_watch;
mod entry;
mod exchange;
#[cfg(test)]
mod idle_test;
mod list;
mod missing_czxid;

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;

use dashmap::DashMap;
use parking_lot::Mutex;

pub(crate) use self::create::PendingCreate;
use self::decide::{Effect, EntryKey, LocalQueue, NodeId};
use self::directory_watch::DirectoryWatch;
pub(crate) use self::entry::{LocalWait, LocalWake, QueueEntry};
pub(crate) use self::exchange::ExchangeInFlight;
use self::list::LastList;
use self::missing_czxid::MissingCzxid;
use crate::session::{OwnedNode, Session, SessionTable, WeakSession};
use crate::time::boot::BootInstant;

/// The payload that a holder passes to the next holder of this process.
pub(crate) type HandOffPayload = Arc<dyn Any + Send + Sync>;

/// The local queues of one session, by directory.
pub(crate) struct LocalQueues {
    session: WeakSession,
    queues: DashMap<Arc<str>, Arc<SharedQueue>>,
}

/// The local queue of one directory.
struct SharedQueue {
    directory: Arc<str>,
    state: Mutex<SharedState>,
}

struct SharedState {
    queue: LocalQueue<HandOffPayload>,
    /// The nodes of the queue.
    entries: BTreeMap<NodeId, Arc<QueueEntry>>,
    /// The heads whose release waits for the create of a successor: each change may end the wait. Nodes
    /// rather than entries, which would keep the queue in use.
    releasing: Vec<Arc<OwnedNode>>,
    watch: DirectoryWatch,
    last_list: Option<LastList>,
    missing_czxid: MissingCzxid,
    last_used: BootInstant,
}

impl LocalQueues {
    pub(crate) fn of(session: &Session) -> Arc<Self> {
        session.table(|session| Self { session, queues: DashMap::new() })
    }

    fn get(&self, directory: &str) -> Option<Arc<SharedQueue>> {
        self.queues.get(directory).map(|queue| Arc::clone(&queue))
    }

    fn get_or_new(&self, directory: &str, now: BootInstant) -> Arc<SharedQueue> {
        if let Some(queue) = self.get(directory) {
            return queue;
        }
        let directory: Arc<str> = directory.into();
        let new = || Arc::new(SharedQueue::new(Arc::clone(&directory), now));
        Arc::clone(&self.queues.entry(Arc::clone(&directory)).or_insert_with(new))
    }

    /// Records that the server returned this sequence number without a creation zxid.
    pub(crate) fn record_missing_czxid(&self, directory: &str, sequence: i32, now: BootInstant) {
        let queue = self.get_or_new(directory, now);
        let mut state = queue.state.lock();
        state.last_used = now;
        state.missing_czxid.record(sequence);
    }

    /// The sequence number that the next create is likely to get, if the server returns it without a creation
    /// zxid.
    pub(crate) fn sequence_to_prefetch(&self, directory: &str) -> Option<i32> {
        self.get(directory)?.state.lock().missing_czxid.next_sequence()
    }

    /// The directories of the selected queues, in a deterministic order.
    fn directories(&self, which: impl Fn(&Arc<SharedQueue>) -> bool) -> Vec<Arc<str>> {
        let chosen = self.queues.iter().filter(|queue| which(queue.value()));
        let mut directories: Vec<_> = chosen.map(|queue| Arc::clone(queue.key())).collect();
        directories.sort();
        directories
    }
}

impl SessionTable for LocalQueues {
    fn node_lost(&self, path: &str, number: u64) {
        let directory = path.rsplit_once('/').map_or("", |(directory, _)| directory);
        if let (Some(queue), Some(session)) = (self.get(directory), self.session.upgrade()) {
            queue.abandon(&session, NodeId(number));
        }
    }

    fn is_empty(&self) -> bool {
        self.queues.is_empty()
    }

    fn forget_idle(&self, since: BootInstant) {
        // Nodes and pending creates hold references to the queue, too. While its entry in the table is
        // locked, no new reference can be taken.
        let is_idle =
            |queue: &Arc<SharedQueue>| Arc::strong_count(queue) == 1 && queue.state.lock().poll_idle(since);
        for directory in self.directories(is_idle) {
            self.queues.remove_if(&directory, |_, queue| is_idle(queue));
        }
    }

    fn session_ended(&self) {
        for directory in self.directories(|_| true) {
            if let Some((_, queue)) = self.queues.remove(&directory) {
                let mut state = queue.state.lock();
                state.queue.end_session();
                // The entries refer to the queue, and the queue to the entries.
                let entries = std::mem::take(&mut state.entries);
                drop(state);
                drop(entries);
            }
        }
    }
}

impl SharedQueue {
    fn new(directory: Arc<str>, now: BootInstant) -> Self {
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
    fn update<T>(
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
    fn abandon(&self, session: &Session, node: NodeId) {
        self.update(session, |state| {
            let entry = state.entries.remove(&node);
            let effects = entry.map(|entry| state.queue.abandon(entry.key)).unwrap_or_default();
            ((), effects)
        });
    }
}

impl SharedState {
    fn poll_watch(&mut self) {
        self.watch.poll(&mut self.queue);
    }

    /// Polls the watch. Returns whether the queue has been unused since `since`, and can be dropped. Dropping
    /// a watch removes it from the server only if its reply has been read.
    fn poll_idle(&mut self, since: BootInstant) -> bool {
        self.poll_watch();
        self.last_used <= since && !self.watch.is_in_flight()
    }

    fn entry(&self, key: EntryKey) -> Option<Arc<QueueEntry>> {
        self.entries.get(&key.node).cloned()
    }

    /// Notes the decisions. Returns the contenders to wake.
    fn apply(
        &mut self,
        effects: Vec<Effect<HandOffPayload>>,
        session: &Session,
        directory: &str,
    ) -> Vec<Arc<QueueEntry>> {
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
