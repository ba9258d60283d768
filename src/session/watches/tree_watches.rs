//! The watches of views.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::{Stream, StreamExt};
use parking_lot::Mutex;

use super::Reservation;
use crate::wire::{ChangedPaths, WatchDepth};

/// How many watches of this session reach below their path, by path.
///
/// A server keeps one kind of watch per path and session, the last one set (ZOOKEEPER-4466). So a watch on a
/// node alone, set after one on its tree, would end the events of the tree. On such a path every watch
/// reaches below it, until the last one ends.
#[derive(Debug, Default)]
pub(super) struct TreeWatches(Mutex<BTreeMap<String, usize>>);

/// A count in [`TreeWatches`].
pub(super) struct TreeWatch {
    path: String,
    watches: Arc<TreeWatches>,
}

/// The changes below a path, until the connection breaks. Dropping it removes the watch.
pub(crate) struct PathWatch {
    // Dropped first: the client removes the watch before the next one on this path counts anew.
    paths: ChangedPaths,
    _counted: Option<TreeWatch>,
    _room: Reservation,
}

/// A watch that is to be sent, or whose answer has not come.
pub(crate) struct UnansweredWatch {
    watches: Arc<TreeWatches>,
    counted: Option<TreeWatch>,
    room: Reservation,
}

impl UnansweredWatch {
    pub(super) fn new(watches: Arc<TreeWatches>, room: Reservation) -> Self {
        Self { watches, counted: None, room }
    }

    /// Sends the watch of a path by `send`, which gets the depth that the watch must have.
    pub(crate) fn send<T>(&mut self, path: &str, depth: WatchDepth, send: impl FnOnce(WatchDepth) -> T) -> T {
        // The kinds are counted in the order in which the requests are sent.
        let mut counts = self.watches.0.lock();
        let is_tree = depth == WatchDepth::Tree || counts.contains_key(path);
        self.counted = is_tree.then(|| {
            *counts.entry(path.to_owned()).or_default() += 1;
            TreeWatch { path: path.to_owned(), watches: Arc::clone(&self.watches) }
        });
        send(if is_tree { WatchDepth::Tree } else { WatchDepth::Node })
    }

    /// The answer is the stream of changes.
    pub(crate) fn answered(self, paths: ChangedPaths) -> PathWatch {
        PathWatch { paths, _counted: self.counted, _room: self.room }
    }
}

impl Drop for TreeWatch {
    fn drop(&mut self) {
        let mut counts = self.watches.0.lock();
        if let Some(count) = counts.get_mut(&self.path) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.path);
            }
        }
    }
}

impl Stream for PathWatch {
    type Item = String;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<String>> {
        self.paths.poll_next_unpin(context)
    }
}
