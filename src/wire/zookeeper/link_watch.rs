use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;
use zookeeper_client as client;

use crate::shared_future::SharedFuture;

/// The states of a session of the client crate, and their changes.
///
/// All tasks share one waiter of the client's channel, which is dropped only when it has its result. In
/// `asyncs-sync` 0.4.0 a waiter that is dropped while another thread notifies it is unlinked from a list that
/// no longer exists, and a reader may see a state just before it is published, which panics at its next read
/// (`docs/upstream`).
pub(super) struct LinkWatch(Mutex<Seen>);

/// The next state, and the watcher that has seen it; `None` if this client is not followed any more.
type NextState = SharedFuture<Option<(client::SessionState, client::StateWatcher)>>;

struct Seen {
    state: client::SessionState,
    /// The changes before this state.
    changes: u64,
    next: NextState,
    /// The client is not followed any more.
    replaced: CancellationToken,
}

impl Seen {
    fn new(state: client::SessionState, changes: u64, watcher: Option<client::StateWatcher>) -> Self {
        let replaced = CancellationToken::new();
        let next = next_change(state, watcher, replaced.clone());
        Self { state, changes, next, replaced }
    }
}

impl LinkWatch {
    pub(super) fn new(client: &client::Client) -> Arc<Self> {
        let mut watcher = client.state_watcher();
        let state = watcher.state();
        Arc::new(Self(Mutex::new(Seen::new(state, 0, Some(watcher)))))
    }

    /// The client has ended, and the session has none until [`resume`](Self::resume). Not before the task of
    /// the client has ended: the waiter of its channel is dropped here.
    pub(super) fn interrupt(&self) {
        self.replace(client::SessionState::Disconnected, None);
    }

    /// Another client carries the session.
    pub(super) fn resume(&self, client: &client::Client) {
        let mut watcher = client.state_watcher();
        let state = watcher.state();
        self.replace(state, Some(watcher));
    }

    /// The session is over, and has no client.
    pub(super) fn end(&self, state: client::SessionState) {
        self.replace(state, None);
    }

    fn replace(&self, state: client::SessionState, watcher: Option<client::StateWatcher>) {
        let mut seen = self.0.lock();
        let next = Seen::new(state, seen.changes + 1, watcher);
        let former = std::mem::replace(&mut *seen, next);
        drop(seen);
        former.replaced.cancel();
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
        while let Some(Some((state, watcher))) = seen.next.now() {
            *seen = Seen::new(state, seen.changes + 1, Some(watcher));
        }
        read(&seen)
    }
}

impl Drop for LinkWatch {
    fn drop(&mut self) {
        let mut next = self.read(|seen| seen.next.clone());
        // The client is about to publish the end of the session.
        if self.state().is_terminated() {
            return;
        }
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move {
                while let Some((state, watcher)) = next.await.filter(|(state, _)| !state.is_terminated()) {
                    next = next_change(state, Some(watcher), CancellationToken::new());
                }
            });
        }
    }
}

fn next_change(
    state: client::SessionState,
    watcher: Option<client::StateWatcher>,
    replaced: CancellationToken,
) -> NextState {
    // There is no state after the last one: the client closes the channel.
    let watcher = watcher.filter(|_| !state.is_terminated());
    SharedFuture::new(Box::pin(async move {
        let change = async {
            match watcher {
                Some(watcher) => changed(watcher).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = replaced.cancelled() => None,
            change = change => Some(change),
        }
    }))
}

async fn changed(mut watcher: client::StateWatcher) -> (client::SessionState, client::StateWatcher) {
    loop {
        let changed = AssertUnwindSafe(watcher.changed()).catch_unwind().await;
        if let Ok(state) = changed {
            return (state, watcher);
        }
        // This watcher has seen a state that is published in the next moment.
        tokio::task::yield_now().await;
    }
}
