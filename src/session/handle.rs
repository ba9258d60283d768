//! A session: its parts, and its end.

use std::fmt::{self, Debug, Formatter};
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::cleanup_jobs::CleanupJobs;
use super::connections::Connections;
use super::counted_wire::CountedWire;
use super::epoch::Epoch;
use super::hang_ups::Suspect;
use super::known_node::KnownNode;
use super::lease_keeper::LeaseKeeper;
#[cfg(feature = "metrics")]
use super::measured_wire::MeasuredWire;
use super::node_bytes::NodeBytes;
use super::owned_nodes::OwnedNodes;
use super::settings::SessionSettings;
use super::suspect_requests::Suspects;
use super::table::SessionTable;
use super::watches::{WatchBudget, Watches};
use crate::error::LossReason;
use crate::time::boot::BootInstant;
use crate::time::server_clock::ServerClock;
use crate::wire::{Link, Wire, WireError};

/// A handle to one session; cheap to clone.
#[derive(Clone)]
pub(crate) struct Session(Arc<SessionInner>);

/// A session that may be gone.
pub(crate) struct WeakSession(Weak<SessionInner>);

impl WeakSession {
    pub(crate) fn upgrade(&self) -> Option<Session> {
        self.0.upgrade().map(Session)
    }
}

struct SessionInner {
    epoch: Epoch,
    id: i64,
    timeout: Duration,
    settings: Arc<SessionSettings>,
    ended: CancellationToken,
    connections: Connections,
    lease: LeaseKeeper,
    owned_nodes: OwnedNodes<KnownNode>,
    /// The state that another part of the library keeps for this session.
    table: OnceLock<Arc<dyn SessionTable>>,
    suspects: Suspects,
    watches: Watches,
    node_bytes: NodeBytes,
    server_clock: ServerClock,
    cleanup_jobs: CleanupJobs,
}

impl Session {
    pub(crate) fn new(
        epoch: Epoch,
        wire: Arc<dyn Wire>,
        opened: BootInstant,
        settings: Arc<SessionSettings>,
        cleanup_jobs: CleanupJobs,
    ) -> Self {
        let timeout = wire.session_timeout();
        let node_bytes = NodeBytes::new(settings.node_bytes_max);
        #[cfg(feature = "metrics")]
        let wire: Arc<dyn Wire> = Arc::new(MeasuredWire::new(wire, Arc::clone(&settings.environment)));
        let wire: Arc<dyn Wire> = Arc::new(CountedWire::new(wire, node_bytes.clone()));
        Self(Arc::new(SessionInner {
            epoch,
            id: wire.session_id(),
            timeout,
            lease: LeaseKeeper::new(Arc::clone(&settings), timeout, opened),
            suspects: Suspects::new(epoch, Arc::clone(&settings)),
            settings,
            connections: Connections::new(wire),
            ended: CancellationToken::new(),
            owned_nodes: OwnedNodes::new(),
            table: OnceLock::new(),
            watches: Watches::default(),
            node_bytes,
            server_clock: ServerClock::default(),
            cleanup_jobs,
        }))
    }

    pub(crate) fn epoch(&self) -> Epoch {
        self.0.epoch
    }

    pub(crate) fn is_same_as(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    pub(crate) fn id(&self) -> i64 {
        self.0.id
    }

    /// The timeout the server granted.
    pub(crate) fn timeout(&self) -> Duration {
        self.0.timeout
    }

    pub(crate) fn settings(&self) -> &SessionSettings {
        &self.0.settings
    }

    pub(super) fn connections(&self) -> &Connections {
        &self.0.connections
    }

    pub(super) fn lease(&self) -> &LeaseKeeper {
        &self.0.lease
    }

    pub(super) fn owned_nodes(&self) -> &OwnedNodes<KnownNode> {
        &self.0.owned_nodes
    }

    pub(super) fn watches(&self) -> &Watches {
        &self.0.watches
    }

    pub(super) fn suspects(&self) -> &Suspects {
        &self.0.suspects
    }

    pub(super) fn server_clock(&self) -> &ServerClock {
        &self.0.server_clock
    }

    pub(super) fn cleanup_jobs(&self) -> &CleanupJobs {
        &self.0.cleanup_jobs
    }

    pub(crate) fn watch_budget(&self) -> &WatchBudget {
        self.0.watches.budget()
    }

    pub(crate) fn node_bytes(&self) -> &NodeBytes {
        &self.0.node_bytes
    }

    pub(crate) fn now(&self) -> BootInstant {
        self.0.settings.environment.now()
    }

    /// Removes a node of this session.
    pub(crate) fn unregister(&self, node: &KnownNode) {
        self.0.owned_nodes.remove(node.number());
    }

    pub(super) fn is_registered(&self, node: &KnownNode) -> bool {
        self.0.owned_nodes.contains(node.number())
    }

    pub(super) fn holds_something(&self) -> bool {
        self.0.owned_nodes.any(KnownNode::is_held)
    }

    /// The table of this session, which the first call makes by `new`. It has the type that this call names.
    pub(crate) fn table<T: SessionTable>(&self, new: impl Fn(WeakSession) -> T) -> Arc<T> {
        let new = || Arc::new(new(WeakSession(Arc::downgrade(&self.0))));
        let table: Arc<dyn SessionTable> = Arc::clone(self.0.table.get_or_init(|| new()));
        table.into_any().downcast().unwrap_or_else(|_| new())
    }

    pub(super) fn existing_table(&self) -> Option<&dyn SessionTable> {
        self.0.table.get().map(|table| &**table)
    }

    /// Ends the hold or the wait of a node. Returns whether this call was the first to do so.
    pub(super) fn lose(&self, node: &KnownNode, reason: LossReason) -> bool {
        let first = self.end_node(node, reason);
        if first {
            node.tell_holder(reason);
        }
        first
    }

    /// As [`lose`](Self::lose), and does not tell the holder.
    pub(super) fn end_node(&self, node: &KnownNode, reason: LossReason) -> bool {
        let first = node.record(reason, self.now());
        if first {
            self.report_end(node);
        }
        first
    }

    pub(super) fn report_end(&self, node: &KnownNode) {
        // A lost node needs no confirmation.
        self.unregister(node);
        if let Some(table) = self.existing_table() {
            table.node_lost(node.path(), node.number());
        }
        node.notify();
    }

    /// Why the session is over, if it is.
    pub(crate) fn loss(&self) -> Option<LossReason> {
        self.0.owned_nodes.loss()
    }

    /// Resolves when the session is over.
    pub(crate) async fn ended(&self) -> LossReason {
        self.0.ended.cancelled().await;
        self.loss().unwrap_or(LossReason::SessionExpired)
    }

    /// Ends the session for ever. From here on it grants nothing. Waiters learn of the end before holders do.
    /// The client is dropped, so the server closes the session if it still exists.
    pub(crate) fn end(&self, reason: LossReason) {
        let reason = self.known(reason);
        let Some(mut owned_nodes) = self.0.owned_nodes.end(reason) else { return };
        owned_nodes.sort_by_key(|node| node.is_held());
        for node in owned_nodes {
            self.lose(&node, reason);
        }
        if let Some(table) = self.existing_table() {
            table.session_ended();
        }
        self.0.ended.cancel();
        self.0.node_bytes.end();
        self.0.suspects.end(self.0.connections.seen_link(), self.now());
        self.0.connections.close();
    }

    /// The client reports a session as expired also if no server answered for long. Then it is not known
    /// whether the session expired. The client never does so earlier than a session timeout after the link
    /// went down.
    fn known(&self, reason: LossReason) -> LossReason {
        let is_down_for_long = || self.0.connections.is_down_for(self.0.timeout, self.now());
        match reason {
            LossReason::SessionExpired if is_down_for_long() => LossReason::NoAnswer,
            _ => reason,
        }
    }

    pub(crate) fn wire(&self) -> Result<Arc<dyn Wire>, WireError> {
        self.0.connections.wire().ok_or_else(|| self.over())
    }

    pub(super) fn link(&self) -> Link {
        match self.wire() {
            Ok(wire) => wire.link(),
            Err(_) => Link::Ended(self.loss().unwrap_or(LossReason::SessionExpired)),
        }
    }

    /// The number of the present connection. Every interruption of the link begins another one.
    pub(crate) fn connection(&self) -> Option<u64> {
        self.0.connections.present()
    }

    /// As [`connection`](Self::connection), but only if the link is up: a request that is sent now is sent
    /// over it, and not queued.
    pub(crate) fn live_connection(&self) -> Option<u64> {
        self.0.connections.live()
    }

    /// Resolves once the link is up on another connection than `before`.
    pub(crate) async fn reconnected(&self, before: Option<u64>) {
        self.0.connections.reconnected(before).await;
    }

    /// Resolves once the link is down, or up on another connection than this one.
    pub(crate) async fn interrupted(&self, connection: Option<u64>) {
        self.0.connections.interrupted(connection).await;
    }

    pub(super) fn over(&self) -> WireError {
        WireError::SessionEnded(self.loss().unwrap_or(LossReason::SessionExpired))
    }

    /// Whether the servers close the connection on requests of this kind.
    pub(crate) fn hangs_up_on(&self, suspect: Suspect) -> bool {
        self.0.suspects.is_cause(suspect, self.now())
    }

    /// Whether the servers support container nodes, as far as is known.
    pub(crate) fn has_containers(&self) -> bool {
        !self.0.settings.lacks_containers.load(Ordering::Relaxed) && !self.hangs_up_on(Suspect::Container)
    }

    /// The servers have said that they do not support container nodes: the directories of this manager are
    /// persistent from now on, and stay.
    pub(crate) fn without_containers(&self) {
        if !self.0.settings.lacks_containers.swap(true, Ordering::Relaxed) {
            warn!("the servers have no container nodes; empty lock directories will stay");
        }
    }
}

impl Debug for Session {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Session")
            .field("epoch", &self.0.epoch)
            .field("id", &format_args!("{:#x}", self.0.id))
            .field("timeout", &self.0.timeout)
            .field("loss", &self.loss())
            .finish_non_exhaustive()
    }
}
