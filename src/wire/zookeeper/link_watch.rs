use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use zookeeper_client as client;

use crate::shared_future::SharedFuture;

/// The states of a session of the client crate, and their changes.
///
/// All tasks share one waiter of the client's channel, which is dropped only when it has its result. In
/// `asyncs-sync` 0.4.0 a waiter that is dropped while another thread notifies it is unlinked from a list that
/// no longer exists, and a reader may see a state just before it is published, which panics at its next read
/// (`docs/upstream`).
pub(super) struct LinkWatch(Mutex<Seen>);

/// The next state, and the watcher that has seen it.
type NextState = SharedFuture<(client::SessionState, client::StateWatcher)>;

struct Seen {
    state: client::SessionState,
    /// The changes before this state.
    changes: u64,
    next: NextState,
}

impl LinkWatch {
    pub(super) fn new(client: &client::Client) -> Arc<Self> {
        let mut watcher = client.state_watcher();
        let state = watcher.state();
        Arc::new(Self(Mutex::new(Seen { state, changes: 0, next: next_change(state, watcher) })))
    }

    pub(super) fn state(&self) -> client::SessionState {
        self.read(|seen| seen.state)
    }

    /// The number of changes so far.
    ///
    /// The client publishes a change before it delivers any reply that came after the change, and each change
    /// is seen once. So a call at a reply misses no change.
    pub(super) fn changes(&self) -> u64 {
        self.read(|seen| seen.changes)
    }

    /// Resolves at the next change.
    pub(super) fn changed(&self) -> impl Future<Output = ()> + Send + 'static {
        self.read(|seen| seen.next.clone()).map(drop)
    }

    fn read<T>(&self, read: impl FnOnce(&Seen) -> T) -> T {
        let mut seen = self.0.lock();
        while let Some((state, watcher)) = seen.next.now() {
            *seen = Seen { state, changes: seen.changes + 1, next: next_change(state, watcher) };
        }
        read(&seen)
    }
}

impl Drop for LinkWatch {
    fn drop(&mut self) {
        let mut next = self.read(|seen| seen.next.clone());
        // The client is about to publish the end of the session.
        if !self.state().is_terminated()
            && let Ok(runtime) = Handle::try_current()
        {
            runtime.spawn(async move {
                loop {
                    let (state, watcher) = next.await;
                    if state.is_terminated() {
                        return;
                    }
                    next = next_change(state, watcher);
                }
            });
        }
    }
}

fn next_change(state: client::SessionState, mut watcher: client::StateWatcher) -> NextState {
    if state.is_terminated() {
        // There is no other one. The client closes the channel.
        return SharedFuture::new(Box::pin(std::future::pending()));
    }
    SharedFuture::new(Box::pin(async move {
        loop {
            let changed = AssertUnwindSafe(watcher.changed()).catch_unwind().await;
            if let Ok(state) = changed {
                return (state, watcher);
            }
            // This watcher has seen a state that is published in the next moment.
            tokio::task::yield_now().await;
        }
    }))
}
