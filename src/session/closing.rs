//! The nodes of a session that is about to be closed.

use std::time::Duration;

use futures::future::join_all;
use tracing::debug;

use super::handle::Session;
use crate::time::deadline::Deadline;
use crate::wire::{Wire, WireError};

/// The paths that the record of the close may have. Fewer nodes are left to the close: it costs one request.
const CLOSE_BYTES_MAX: usize = 64 * 1024;

/// The deletes in flight at once.
const PORTION: usize = 128;

/// The pause before a portion without answers is sent again.
const PAUSE: Duration = Duration::from_millis(50);

/// The nodes that are deleted before the close, so that [its record](super::node_bytes) is small.
pub(crate) struct ClosingNodes {
    /// Nodes of waiters first: a delete of a holder's node then grants to a contender of another session.
    paths: Vec<String>,
    bytes: usize,
}

impl ClosingNodes {
    /// Read before the [end](Session::end) of the session, which forgets its nodes.
    pub(crate) fn of(session: &Session) -> Self {
        let bytes = session.node_bytes().used();
        if bytes <= CLOSE_BYTES_MAX {
            return Self { paths: Vec::new(), bytes };
        }
        let mut held: Vec<_> = session.held_nodes().iter().map(|node| node.path().to_owned()).collect();
        held.sort_unstable();
        let mut paths = session.node_bytes().paths();
        paths.sort_by_key(|path| held.binary_search(path).is_ok());
        Self { paths, bytes }
    }

    /// Deletes nodes, some at a time, until the others fit into the record. No guard may rest on any of them
    /// any more.
    pub(crate) async fn delete(mut self, wire: &dyn Wire, limit: Deadline) {
        while self.bytes > CLOSE_BYTES_MAX && !self.paths.is_empty() {
            let portion = self.paths.len().min(PORTION);
            // All requests are sent before the first reply is awaited.
            let sent: Vec<_> = self.paths.iter().take(portion).map(|path| wire.delete(path, None)).collect();
            let answers = tokio::select! {
                biased;
                answers = join_all(sent) => answers,
                () = limit.passed() => return debug!(nodes = self.paths.len(), "closing with many nodes"),
            };
            let is_over = |answer: &Result<(), WireError>| matches!(answer, Err(WireError::SessionEnded(_)));
            if answers.iter().any(is_over) {
                return;
            }
            let needs_retry = |answer: &Result<(), WireError>| match answer {
                Ok(()) => false,
                // A node that cannot be deleted is left to the close.
                Err(WireError::Refused(refusal)) => refusal.is_transient(),
                Err(_) => true,
            };
            let mut answered = answers.iter().map(|answer| !needs_retry(answer));
            let mut done = 0;
            self.paths.retain(|path| {
                let is_done = answered.next().unwrap_or_default();
                done += if is_done { path.len() } else { 0 };
                !is_done
            });
            self.bytes = self.bytes.saturating_sub(done);
            if done == 0 {
                tokio::select! {
                    biased;
                    () = tokio::time::sleep(PAUSE) => {}
                    () = limit.passed() => return,
                }
            }
        }
    }
}
