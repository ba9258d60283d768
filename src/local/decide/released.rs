//! The released heads, and the watch that shows whether the directory is still the one in which they were
//! released.

use super::entry::EntryKey;
use super::local_queue::LocalQueue;
use super::released_head::{DirectoryWatchState, ReleasedHead, WatchId};

/// How many released heads are remembered.
const RELEASED_MAX: usize = 16;

impl<P: Clone> LocalQueue<P> {
    /// Records that a watch on the directory is requested over this connection. It replaces an earlier one.
    pub(crate) fn directory_watch_requested(&mut self, connection: u64) {
        let id = WatchId(self.next_order());
        self.directory_watch = DirectoryWatchState::Requested { id, connection };
    }

    /// Records that the requested watch is set.
    pub(crate) fn directory_watch_set(&mut self) {
        if let DirectoryWatchState::Requested { id, connection } = self.directory_watch {
            self.directory_watch = DirectoryWatchState::Set { id, connection };
        }
    }

    /// Records that the watch has fired, or could not be set.
    ///
    /// The caller polls the watch in place before every other call: the server sends the event before the
    /// replies to later requests.
    pub(crate) fn directory_watch_ended(&mut self) {
        self.directory_watch = DirectoryWatchState::None;
    }

    /// Whether a watch on the directory is requested or set.
    #[cfg(test)]
    pub(super) fn has_directory_watch(&self) -> bool {
        self.directory_watch != DirectoryWatchState::None
    }

    /// Assigns the head its position in the order of requests. Its delete is sent now.
    pub(super) fn released_now(&mut self, key: EntryKey, connection: u64) -> Option<ReleasedHead<P>> {
        let (kind, clear_since) =
            self.entry(key).and_then(|entry| Some((entry.kind, entry.clear_since()?)))?;
        Some(ReleasedHead {
            sequence: key.sequence,
            kind,
            connection,
            order: self.next_order(),
            clear_since,
            covered_by: self.directory_watch.set_on(connection),
            payload: None,
        })
    }

    pub(super) fn remember(&mut self, head: ReleasedHead<P>) {
        if self.released.len() == RELEASED_MAX {
            self.released.pop_front();
        }
        self.released.push_back(head);
    }

    /// The head with this sequence number whose delete was sent over this connection.
    pub(super) fn released_at(&self, sequence: i32, connection: u64) -> Option<&ReleasedHead<P>> {
        self.released.iter().rev().find(|head| head.sequence == sequence && head.connection == connection)
    }

    /// Whether the directory is still the one in which the head's delete was sent.
    pub(super) fn is_directory_unchanged_since(&self, head: &ReleasedHead<P>) -> bool {
        head.covered_by.is_some() && head.covered_by == self.directory_watch.set_on(head.connection)
    }

    /// Whether this number is a released head's, and the directory unchanged since.
    pub(super) fn directory_unchanged(&self, sequence: i32, connection: u64) -> bool {
        self.released_at(sequence, connection).is_some_and(|head| self.is_directory_unchanged_since(head))
    }

    /// Whether this number is or was a node of this session, as far as is known.
    pub(super) fn is_known(&self, sequence: i32, connection: u64) -> bool {
        self.entries.contains_key(&sequence) || self.released_at(sequence, connection).is_some()
    }

    /// The node was released as the head, over any connection.
    #[cfg(test)]
    pub(super) fn was_released(&self, sequence: i32) -> bool {
        self.released.iter().any(|head| head.sequence == sequence)
    }
}
