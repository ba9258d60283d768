use std::sync::Arc;

use super::decide::ReleaseInFlight;
use super::entry::QueueEntry;
use super::local_node::HandOffPayload;
use crate::session::OwnedNode;

/// A transaction that deletes the node of a holder. If its outcome stays unknown, the node is given up.
#[must_use]
pub(crate) struct ExchangeInFlight {
    pub(super) entry: Arc<QueueEntry>,
    pub(super) release: ReleaseInFlight<HandOffPayload>,
    /// The successor's node, which the transaction checks. Its contender holds once the transaction is
    /// committed.
    pub(crate) next: Option<Arc<OwnedNode>>,
}

impl QueueEntry {
    /// Announces that a transaction that deletes the holder's node is about to be sent.
    pub(crate) fn begin_exchange(self: &Arc<Self>) -> ExchangeInFlight {
        let mut state = self.queue.state.lock();
        state.poll_watch();
        let release = state.queue.begin_exchange(self.key, self.hand_off_connection());
        let next = release.checks.iter().find_map(|next| state.entries.get(next));
        let next = next.map(|next| Arc::clone(&next.node));
        ExchangeInFlight { entry: Arc::clone(self), release, next }
    }
}

impl ExchangeInFlight {
    pub(crate) fn committed(self, payload: Option<HandOffPayload>) {
        let Self { entry, release, .. } = self;
        entry.queue.update(entry.node.session(), |state| {
            let effects = state.queue.finish_release(release, entry.hand_off_connection(), payload);
            state.entries.remove(&entry.key.node);
            ((), effects)
        });
    }

    /// Records that the transaction was not committed.
    pub(crate) fn cancel(self) {
        self.entry.queue.state.lock().queue.cancel_exchange(&self.release);
    }
}
