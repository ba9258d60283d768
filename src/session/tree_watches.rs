//! The watches of views.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::{Stream, StreamExt};
use parking_lot::Mutex;
use tracing::warn;

use super::{Reservation, Session, Suspect};
use crate::time::deadline::Deadline;
use crate::wire::{ChangedPaths, WatchDepth, WireError};

/// How many watches of this session reach below their path, by path.
///
/// A server keeps one kind of watch per path and session, the last one set (ZOOKEEPER-4466). So a watch on a
/// node alone, set after one on its tree, would end the events of the tree. On such a path every watch
/// reaches below it, until the last one ends.
#[derive(Debug, Default)]
pub(super) struct TreeWatches(Mutex<BTreeMap<String, usize>>);

/// A count in [`TreeWatches`].
struct TreeWatch {
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

impl Session {
    /// Watches a path, for as long as the connection lasts. Returns `None` without room for the path, and on
    /// servers that close the connection on such a watch.
    ///
    /// The events come before the answers to reads that show what happened.
    pub(crate) async fn watch_path(
        &self,
        path: &str,
        depth: WatchDepth,
        deadline: Deadline,
    ) -> Result<Option<PathWatch>, WireError> {
        if self.hangs_up_on(Suspect::PathWatch) {
            warn!(path, "the servers close the connection on the watch of a view, which polls instead");
            return Ok(None);
        }
        let Some(room) = self.watch_budget().reserve(path) else { return Ok(None) };
        let mut counted = None;
        let send = || {
            // The kinds are counted in the order in which the requests are sent.
            let mut counts = self.0.tree_watches.0.lock();
            let is_tree = depth == WatchDepth::Tree || counts.contains_key(path);
            counted = is_tree.then(|| {
                *counts.entry(path.to_owned()).or_default() += 1;
                TreeWatch { path: path.to_owned(), watches: Arc::clone(&self.0.tree_watches) }
            });
            let depth = if is_tree { WatchDepth::Tree } else { WatchDepth::Node };
            self.read(|wire| wire.watch_all_changes(path, depth))
        };
        let mut reply = self.send_suspect(Suspect::PathWatch, deadline, send).await;
        let paths = self.await_reply(&mut reply, deadline).await?;
        Ok(Some(PathWatch { paths, _counted: counted, _room: room }))
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
