//! One ZooKeeper session: one epoch.
//!
//! Nothing moves from one session to the next: nodes, watches, replies and guards belong to their session and
//! end with it. Every wait for a reply ends with the session at the latest.

mod child_watch;
mod closing;
mod connections;
mod counted_wire;
mod deletion_watch;
mod directory;
mod epoch;
mod grant;
mod hang_ups;
pub(crate) mod janitor;
mod lease_keeper;
mod lease_renewal;
mod loss_notice;
pub(crate) mod lost_create;
mod node_bytes;
#[cfg(test)]
mod node_bytes_test;
mod node_flags;
mod node_register;
mod origin;
mod own_watch;
mod owned_node;
#[cfg(test)]
mod owned_node_test;
mod owned_nodes;
mod parker;
mod requests;
mod retry;
mod settings;
mod suspect_requests;
#[cfg(test)]
mod suspect_requests_test;
mod table;
mod txn_in_flight;
mod verify;
mod watches;
mod zxid_history;

use std::fmt::{self, Debug, Formatter};
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tracing::warn;

pub(crate) use self::child_watch::{until_changed, until_child};
pub(crate) use self::closing::ClosingNodes;
use self::connections::{Connections, LinkChange};
use self::counted_wire::CountedWire;
pub(crate) use self::directory::{ParentLifetime, make_directory, make_queue_directory};
pub use self::epoch::Epoch;
pub(crate) use self::hang_ups::{HangUps, Suspect};
use self::lease_keeper::LeaseKeeper;
#[cfg(feature = "__simulation")]
pub(crate) use self::lease_keeper::SessionLease;
use self::node_bytes::NodeBytes;
pub(crate) use self::origin::Origin;
pub(crate) use self::own_watch::SharedWatch;
pub(crate) use self::owned_node::OwnedNode;
use self::owned_nodes::OwnedNodes;
pub(crate) use self::retry::Stop;
pub(crate) use self::settings::{SessionPurpose, SessionSettings};
use self::suspect_requests::SuspectRequests;
pub(crate) use self::table::SessionTable;
pub(crate) use self::txn_in_flight::TxnInFlight;
use self::watches::Watches;
pub(crate) use self::watches::{PathWatch, ReadRoom, ReadWindow, Reservation, WatchBudget};
pub(crate) use self::zxid_history::{ServersReset, ZxidHistory};
use crate::error::LossReason;
use crate::session::janitor::Janitor;
use crate::time::boot::BootInstant;
use crate::time::server_clock::ServerClock;
use crate::wire::{Link, Wire, WireError};

/// A handle to one session; cheap to clone.
#[derive(Clone)]
pub(crate) struct Session(Arc<SessionInner>);

struct SessionInner {
    epoch: Epoch,
    id: i64,
    timeout: Duration,
    settings: Arc<SessionSettings>,
    ended: CancellationToken,
    connections: Connections,
    lease: LeaseKeeper,
    owned_nodes: OwnedNodes<OwnedNode>,
    /// The state that another part of the library keeps for this session.
    table: OnceLock<Arc<dyn SessionTable>>,
    suspect_requests: Mutex<SuspectRequests>,
    /// Notifies of the end of one of them.
    suspect_ended: Notify,
    watches: Watches,
    node_bytes: NodeBytes,
    server_clock: ServerClock,
    janitor: Janitor,
}

impl Session {
    pub(crate) fn new(
        epoch: Epoch,
        wire: Arc<dyn Wire>,
        opened: BootInstant,
        settings: Arc<SessionSettings>,
        janitor: Janitor,
    ) -> Self {
        let timeout = wire.session_timeout();
        let node_bytes = NodeBytes::new(settings.node_bytes_max);
        let wire: Arc<dyn Wire> = Arc::new(CountedWire::new(wire, node_bytes.clone()));
        Self(Arc::new(SessionInner {
            epoch,
            id: wire.session_id(),
            timeout,
            lease: LeaseKeeper::new(Arc::clone(&settings), timeout, opened),
            settings,
            connections: Connections::new(wire),
            ended: CancellationToken::new(),
            owned_nodes: OwnedNodes::new(),
            table: OnceLock::new(),
            suspect_requests: Mutex::default(),
            suspect_ended: Notify::new(),
            watches: Watches::default(),
            node_bytes,
            server_clock: ServerClock::default(),
            janitor,
        }))
    }

    /// Runs until the session is over, and reports each change of the link to `on_link`.
    pub(crate) async fn run(&self, on_link: impl Fn(Link)) -> LossReason {
        let on_change = |change| match change {
            LinkChange::Down => on_link(Link::Down),
            LinkChange::Replaced => {
                on_link(Link::Down);
                self.0.lease.forget_silence();
            }
            LinkChange::Up => {
                on_link(Link::Up);
                self.0.lease.wake_renewal();
            }
        };
        tokio::select! {
            biased;
            reason = self.0.connections.follow(|| self.now(), on_change) => match reason {
                Some(reason) => reason,
                None => self.ended().await,
            },
            () = self.verify_connections() => LossReason::SessionExpired,
            reason = self.ended() => reason,
            () = self.0.lease.confirm_while_needed(self) => LossReason::SessionExpired,
            () = self.0.lease.expire_by_clock(self) => LossReason::SessionExpired,
            () = self.watch_held_nodes() => LossReason::SessionExpired,
        }
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

    pub(crate) fn janitor(&self) -> &Janitor {
        &self.0.janitor
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

    /// Registers a node of this session.
    pub(crate) fn register(&self, path: Arc<str>, data: Arc<[u8]>, origin: Origin) -> Arc<OwnedNode> {
        let make = |number| OwnedNode::new(number, path, self.clone(), origin, data);
        let (node, loss) = self.0.owned_nodes.register(make);
        match loss {
            None => self.0.lease.wants_renewal(),
            Some(reason) => _ = node.lose(reason),
        }
        node
    }

    /// Removes a node of this session.
    pub(crate) fn unregister(&self, node: &OwnedNode) {
        self.0.owned_nodes.remove(node.number());
    }

    pub(super) fn is_registered(&self, node: &OwnedNode) -> bool {
        self.0.owned_nodes.contains(node.number())
    }

    fn holds_something(&self) -> bool {
        self.0.owned_nodes.any(OwnedNode::is_held)
    }

    fn held_nodes(&self) -> Vec<Arc<OwnedNode>> {
        self.0.owned_nodes.all(OwnedNode::is_held)
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
            node.lose(reason);
        }
        if let Some(table) = self.existing_table() {
            table.session_ended();
        }
        self.0.ended.cancel();
        self.0.node_bytes.end();
        self.end_suspect_requests();
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

    fn link(&self) -> Link {
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

    fn over(&self) -> WireError {
        WireError::SessionEnded(self.loss().unwrap_or(LossReason::SessionExpired))
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
