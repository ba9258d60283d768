//! The task of a view: one connection after the other, it watches, reads and publishes.

use std::sync::Arc;
use std::time::Duration;

use futures::future::Either;
use futures::{FutureExt, StreamExt};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, debug, debug_span, warn};

use super::decide::Mirror;
use super::hub::Hub;
use super::node::is_same_state;
use super::reads::{ReadReply, ReadsInFlight, Sync};
use super::scope::ViewScope;
use super::snapshot::ViewState;
use super::stop::{ViewPauses, ViewStop};
use crate::manager::ConnectionManager;
use crate::session::{PathWatch, Session, Suspect};
use crate::telemetry::metrics;
use crate::telemetry::timers::ViewCount;
use crate::time::deadline::Deadline;
use crate::time::fractions;
use crate::wire::{Stat, WatchDepth, WireError};
use crate::znode::path::ZnodePath;

pub(super) struct ViewTask<T> {
    manager: ConnectionManager,
    /// On the server.
    root: ZnodePath,
    depth: WatchDepth,
    mirror: Mirror<T>,
    hub: Arc<Hub<T>>,
    requested: mpsc::UnboundedReceiver<Sync>,
    /// Wait for the next connection.
    syncs: Vec<Sync>,
    /// Wait until the visits of these causes are finished.
    settling: Vec<(u64, Vec<Sync>)>,
    has_watch: bool,
}

impl<T: Send + std::marker::Sync + 'static> ViewTask<T> {
    pub(super) fn new(
        manager: ConnectionManager,
        root: ZnodePath,
        scope: ViewScope,
        mirror: Mirror<T>,
        hub: Arc<Hub<T>>,
        requested: mpsc::UnboundedReceiver<Sync>,
    ) -> Self {
        let depth = if scope == ViewScope::Node { WatchDepth::Node } else { WatchDepth::Tree };
        Self {
            manager,
            root,
            depth,
            mirror,
            hub,
            requested,
            syncs: Vec::new(),
            settling: Vec::new(),
            has_watch: false,
        }
    }

    /// Runs until the last handle of the view is dropped, or the manager is shut down.
    pub(super) async fn run(mut self, ended: CancellationToken) {
        let _counted = ViewCount::new();
        let span = debug_span!("view", path = %self.root);
        let manager = self.manager.clone();
        let follow = async {
            tokio::select! {
                biased;
                () = ended.cancelled() => {}
                () = manager.closing() => {}
                () = self.follow() => {}
            }
        };
        follow.instrument(span).await;
    }

    async fn follow(&mut self) {
        let mut pauses = None;
        while let Ok(session) = self.manager.session(Deadline::never(), self.root.as_str()).await {
            let connection = session.live_connection();
            let stop = self.follow_connection(&session).await;
            // A comparison on this connection shows nothing of what happened since: the callers ask again.
            self.settling.clear();
            let latest = self.hub.latest().state();
            self.hub.enter(stop.state_after(latest));
            match &stop {
                ViewStop::Interrupted => {}
                ViewStop::Failed(error) => {
                    debug!(%error, "a read of the view failed; all nodes are compared again");
                }
                ViewStop::Exceeded(exceeded) => {
                    warn!(%exceeded, "the view keeps its last snapshot");
                    self.mirror.clear();
                }
                ViewStop::Refused(refusal) => warn!(%refusal, "the root of the view may not be read"),
            }
            let lives = session.live_connection() == connection;
            let pauses = pauses.get_or_insert_with(|| ViewPauses::new(session.settings().retry));
            let pause = pauses.pause_behind(&stop, latest, lives, session.timeout());
            self.pause(pause, stop.may_be_waited_for()).await;
        }
    }

    /// Pauses. Callers that ask for a sync meanwhile wait for the next connection, or get the state.
    async fn pause(&mut self, pause: Duration, may_wait: bool) {
        let mut over = std::pin::pin!(tokio::time::sleep(pause));
        loop {
            tokio::select! {
                biased;
                () = &mut over => return,
                Some(sync) = self.requested.recv() => if may_wait {
                    self.syncs.push(sync);
                },
            }
        }
    }

    /// Watches and follows the root over the present connection.
    async fn follow_connection(&mut self, session: &Session) -> ViewStop {
        let connection = session.connection();
        // This server may be behind what an earlier session of this view has seen.
        let mut sync = session.quorum_sync();
        if let Err(error) = session.await_reply(&mut sync, Deadline::never()).await {
            return ViewStop::Failed(error);
        }
        // If it was answered over another connection, what follows is interrupted before it reads an answer.
        let watched = session.watch_path(self.root.as_str(), self.depth, Deadline::never()).await;
        let watch = match watched {
            Ok(watch) => watch,
            Err(WireError::Refused(refusal)) if !refusal.is_transient() => return ViewStop::Refused(refusal),
            Err(error) => return ViewStop::Failed(error),
        };
        self.has_watch = watch.is_some();
        self.mirror.restart();
        metrics::view_compared();
        self.follow_watch(session, connection, watch).await
    }

    /// Reads what the watch tells. Without a watch, compares all nodes from time to time.
    async fn follow_watch(
        &mut self,
        session: &Session,
        connection: Option<u64>,
        mut watch: Option<PathWatch>,
    ) -> ViewStop {
        let root = self.root.clone();
        let mut in_flight = ReadsInFlight::new(session, &root);
        let waiting = std::mem::take(&mut self.syncs);
        if !waiting.is_empty() {
            in_flight.sync(waiting);
        }
        let mut interrupted = std::pin::pin!(session.interrupted(connection));
        let poll_interval = fractions::poll_interval(session.timeout());
        let lacks_watches = || session.hangs_up_on(Suspect::PathWatch);
        let lacked_watches = lacks_watches();
        loop {
            in_flight.send(&mut self.mirror);
            self.publish();
            let room = in_flight.room();
            let polls = watch.is_none() && in_flight.is_empty();
            let event = match &mut watch {
                Some(watch) => Either::Left(watch.next()),
                None => Either::Right(std::future::pending()),
            };
            tokio::select! {
                biased;
                () = &mut interrupted => return ViewStop::Interrupted,
                event = event => match event {
                    Some(path) => self.hint(&path),
                    None => return ViewStop::Interrupted,
                },
                Some(reply) = in_flight.next() => {
                    // The events that belong to the answer were received before it.
                    self.take_events(watch.as_mut());
                    if let Err(stop) = self.take(reply) {
                        return stop;
                    }
                }
                room = room => in_flight.set_room(room),
                Some(sync) = self.requested.recv() => {
                    let mut syncs = vec![sync];
                    syncs.extend(std::iter::from_fn(|| self.requested.try_recv().ok()));
                    in_flight.sync(syncs);
                }
                () = tokio::time::sleep(poll_interval), if polls => {
                    if lacked_watches && !lacks_watches() {
                        // The verdict has lapsed: the next watch is its trial.
                        return ViewStop::Interrupted;
                    }
                    self.mirror.compare();
                }
            }
        }
    }

    fn hint(&mut self, path: &str) {
        if let Some(below) = below(self.root.as_str(), path) {
            self.mirror.hint(below);
        }
    }

    fn take_events(&mut self, watch: Option<&mut PathWatch>) {
        let Some(watch) = watch else { return };
        // The next poll sees the end of the stream as well.
        while let Some(Some(path)) = watch.next().now_or_never() {
            self.hint(&path);
        }
    }

    fn take(&mut self, reply: ReadReply) -> Result<(), ViewStop> {
        match reply {
            ReadReply::Answers(answers) => {
                for (request, answer) in answers {
                    self.mirror.answer(request, answer);
                }
            }
            ReadReply::Synced(syncs, root) => {
                if !self.has_watch {
                    // No events were received.
                    self.mirror.compare();
                } else if !self.has_root(root.as_ref()) {
                    // A read is on its way, or the server sent no event.
                    self.mirror.hint("");
                }
                self.settling.push((self.mirror.begin_cause(), syncs));
            }
            ReadReply::RootRefused(refusal) => return Err(ViewStop::Refused(refusal)),
            ReadReply::Failed(error) => return Err(ViewStop::Failed(error)),
        }
        self.mirror.exceeded().map_or(Ok(()), |exceeded| Err(ViewStop::Exceeded(exceeded)))
    }

    /// Whether the copy has the root in this state.
    fn has_root(&self, stat: Option<&Stat>) -> bool {
        let known = self.mirror.nodes().get("").map(|known| known.stat());
        match (known, stat) {
            (Some(known), Some(stat)) => is_same_state(known, stat),
            (None, None) => true,
            _ => false,
        }
    }

    /// Publishes what was read, once it is complete, and notifies the callers that wait for it.
    fn publish(&mut self) {
        if !self.mirror.is_complete() {
            if self.hub.latest().state() == ViewState::Live {
                self.hub.enter(ViewState::Stale);
            }
            return;
        }
        self.hub.publish(ViewState::Live, &mut self.mirror);
        let is_settled = |(cause, _): &(u64, _)| self.mirror.is_finished(*cause);
        let (settled, settling): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.settling).into_iter().partition(is_settled);
        self.settling = settling;
        for sync in settled.into_iter().flat_map(|(_, syncs)| syncs) {
            let _ = sync.send(());
        }
    }
}

impl<T> Drop for ViewTask<T> {
    fn drop(&mut self) {
        self.hub.enter(ViewState::Closed);
    }
}

/// The path below the root of a view; `None` for a path that is not below it.
fn below<'a>(root: &str, path: &'a str) -> Option<&'a str> {
    if root == "/" {
        return path.strip_prefix('/');
    }
    match path.strip_prefix(root)? {
        "" => Some(""),
        below => below.strip_prefix('/'),
    }
}

#[cfg(test)]
mod tests {
    use super::below;

    #[test]
    fn a_path_below_the_root_of_a_view_is_shown_without_the_root() {
        for (root, path, shown) in [
            ("/", "/", Some("")),
            ("/", "/a/b", Some("a/b")),
            ("/a", "/a", Some("")),
            ("/a", "/a/b/c", Some("b/c")),
            ("/a", "/ab", None),
            ("/a", "/b", None),
        ] {
            assert_eq!(below(root, path), shown, "{path} below {root}");
        }
    }
}
