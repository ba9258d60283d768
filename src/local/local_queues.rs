use std::sync::Arc;

use dashmap::DashMap;

use super::decide::NodeId;
use super::shared_queue::SharedQueue;
use crate::session::{Session, SessionTable, WeakSession};
use crate::time::boot::BootInstant;

/// The local queues of one session, by directory.
pub(crate) struct LocalQueues {
    session: WeakSession,
    queues: DashMap<Arc<str>, Arc<SharedQueue>>,
}

impl LocalQueues {
    pub(crate) fn of(session: &Session) -> Arc<Self> {
        session.table(|session| Self { session, queues: DashMap::new() })
    }

    fn get(&self, directory: &str) -> Option<Arc<SharedQueue>> {
        self.queues.get(directory).map(|queue| Arc::clone(&queue))
    }

    pub(super) fn get_or_new(&self, directory: &str, now: BootInstant) -> Arc<SharedQueue> {
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
        // Contenders and pending creates hold references to the queue, too. While its entry in the table is
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
                // Each node keeps the session, also as long as a contender keeps the queue.
                let entries = std::mem::take(&mut state.entries);
                drop(state);
                drop(entries);
            }
        }
    }
}
