//! The state that the readers of a view share with its task.

use std::sync::Arc;

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use tokio::sync::watch;

use super::changes::{Subscriptions, ViewChanges};
use super::decide::Mirror;
use super::snapshot::{Snapshot, ViewState};
use crate::telemetry::metrics;

/// The latest snapshot, and the readers of the differences.
pub(super) struct Hub<T> {
    /// Read without a lock.
    latest: ArcSwap<Snapshot<T>>,
    /// Locked by every change of the latest snapshot, so that a subscription and its snapshot fit together.
    subscriptions: Mutex<Subscriptions<T>>,
    state: watch::Sender<ViewState>,
}

impl<T> Default for Hub<T> {
    fn default() -> Self {
        Self {
            latest: ArcSwap::from_pointee(Snapshot::first()),
            subscriptions: Mutex::default(),
            state: watch::Sender::new(ViewState::Loading),
        }
    }
}

impl<T> Hub<T> {
    pub(super) fn latest(&self) -> Arc<Snapshot<T>> {
        self.latest.load_full()
    }

    pub(super) fn subscribe(&self) -> ViewChanges<T> {
        let mut subscriptions = self.subscriptions.lock();
        subscriptions.subscribe(self.latest())
    }

    /// Resolves with the first state that `is_wanted` accepts; it may be another one by then.
    pub(super) async fn state_is(&self, is_wanted: impl Fn(ViewState) -> bool) -> ViewState {
        let mut states = self.state.subscribe();
        // The sender lives as long as this borrow.
        states.wait_for(|state| is_wanted(*state)).await.map_or(ViewState::Closed, |state| *state)
    }

    /// Publishes what changed in the mirror.
    pub(super) fn publish(&self, state: ViewState, mirror: &mut Mirror<T>) {
        let changes = mirror.take_changes();
        let mut subscriptions = self.subscriptions.lock();
        let latest = self.latest();
        if changes.is_empty() && latest.state() == state {
            return;
        }
        metrics::view_changes(changes.len());
        let next = Arc::new(latest.next(state, mirror));
        self.replace(&mut subscriptions, next, &changes);
    }

    /// Publishes another state of the same nodes.
    pub(super) fn enter(&self, state: ViewState) {
        let mut subscriptions = self.subscriptions.lock();
        let latest = self.latest();
        if latest.state() != state {
            self.replace(&mut subscriptions, Arc::new(latest.in_state(state)), &[]);
        }
    }

    fn replace(
        &self,
        subscriptions: &mut Subscriptions<T>,
        next: Arc<Snapshot<T>>,
        changes: &[super::decide::Changed<T>],
    ) {
        self.latest.store(Arc::clone(&next));
        subscriptions.publish(&next, changes);
        self.state.send_replace(next.state());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::bounds::ViewBounds;
    use crate::wire::Stat;

    #[test]
    fn what_is_as_it_was_is_not_published_again() {
        let hub = Hub::<()>::default();
        let decode = Arc::new(|_: &str, _: &[u8], _: &Stat| Ok(()));
        let mut mirror = Mirror::new(None, ViewBounds::default(), decode);
        for (state, revision) in [(ViewState::Live, 1), (ViewState::Stale, 2)] {
            for _ in 0..2 {
                hub.publish(state, &mut mirror);
                assert_eq!(hub.latest().revision(), revision);
            }
            hub.enter(state);
            assert_eq!(hub.latest().revision(), revision);
        }
    }
}
