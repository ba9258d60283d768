//! One ZooKeeper session: one epoch.
//!
//! Nothing moves from one session to the next: nodes, watches, replies and guards belong to their session and
//! end with it. Every wait for a reply ends with the session at the latest.

mod child_watch;
mod closing;
mod connection;
mod counted_wire;
mod deletion_watch;
mod directory;
mod epoch;
mod grant;
mod hang_ups;
pub(crate) mod janitor;
pub(crate) mod lease;
mod lease_expiry;
mod lease_renewal;
mod loss_notice;
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
mod read_window;
mod requests;
mod retry;
mod settings;
mod suspect_requests;
#[cfg(test)]
mod suspect_requests_test;
mod table;
mod tree_watches;
mod txn_in_flight;
mod verify;
mod watch_budget;
mod zxid_history;

use std::fmt::{self, Debug, Formatter};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::{Mutex, RwLock};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tracing::warn;

pub(crate) use self::child_watch::{until_changed, until_child};
pub(crate) use self::closing::ClosingNodes;
use self::counted_wire::CountedWire;
pub(crate) use self::directory::{ParentLifetime, make_directory, make_queue_directory};
pub use self::epoch::Epoch;
pub(crate) use self::hang_ups::{HangUps, Suspect};
use self::node_bytes::NodeBytes;
use self::node_register::NodeRegister;
pub(crate) use self::origin::Origin;
pub(crate) use self::own_watch::SharedWatch;
pub(crate) use self::owned_node::OwnedNode;
use self::parker::Parker;
pub(crate) use self::read_window::{ReadRoom, ReadWindow};
pub(crate) use self::retry::Stop;
pub(crate) use self::settings::{SessionPurpose, SessionSettings};
use self::suspect_requests::SuspectRequests;
pub(crate) use self::table::SessionTable;
pub(crate) use self::tree_watches::PathWatch;
use self::tree_watches::TreeWatches;
pub(crate) use self::txn_in_flight::TxnInFlight;
pub(crate) use self::watch_budget::{Reservation, WatchBudget};
pub(crate) use self::zxid_history::{ServersReset, ZxidHistory};
use crate::error::LossReason;
use crate::session::janitor::Janitor;
use crate::session::lease::SessionLease;
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
    /// `None` once the session ended: a session is kept alive as long as one clone of its client exists.
    wire: RwLock<Option<Arc<dyn Wire>>>,
    ended: CancellationToken,
    lease: Mutex<SessionLease>,
    /// Notifies waiters that the lease was renewed.
    lease_moved: Notify,
    /// The task that keeps the lease confirmed while that is needed.
    renewal: Parker,
    /// The task that reads the clock while a lock is held.
    clock_watcher: Parker,
    /// The task that awaits the watches on held nodes.
    deletion_watcher: Parker,
    owned_nodes: NodeRegister<OwnedNode, LossReason>,
    next_owned_node: AtomicU64,
    /// The state that another part of the library keeps for this session.
    table: OnceLock<Arc<dyn SessionTable>>,
    /// The ensemble did not answer a confirmation over this connection.
    quorum_silent: AtomicBool,
    /// Tasks that wait for the lease to become valid.
    waiting_for_lease: AtomicUsize,
    last_used: Mutex<BootInstant>,
    suspect_requests: Mutex<SuspectRequests>,
    /// Notifies of the end of one of them.
    suspect_ended: Notify,
    /// The connection on which reads show everything that this session has learned.
    synced_on: AtomicU64,
    watch_budget: WatchBudget,
    node_bytes: NodeBytes,
    read_window: ReadWindow,
    tree_watches: Arc<TreeWatches>,
    /// Since when the link is down, if it is.
    down_since: Mutex<Option<BootInstant>>,
    /// The connection on which requests get no answers, and since when.
    silence: Mutex<Option<(u64, BootInstant)>>,
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
            lease: Mutex::new(SessionLease::new(timeout, settings.tick, opened)),
            settings,
            wire: RwLock::new(Some(wire)),
            ended: CancellationToken::new(),
            lease_moved: Notify::new(),
            renewal: Parker::default(),
            clock_watcher: Parker::default(),
            deletion_watcher: Parker::default(),
            owned_nodes: NodeRegister::new(),
            next_owned_node: AtomicU64::new(0),
            table: OnceLock::new(),
            quorum_silent: AtomicBool::new(false),
            waiting_for_lease: AtomicUsize::new(0),
            last_used: Mutex::new(opened),
            suspect_requests: Mutex::default(),
            suspect_ended: Notify::new(),
            synced_on: AtomicU64::new(0),
            watch_budget: WatchBudget::default(),
            node_bytes,
            read_window: ReadWindow::default(),
            tree_watches: Arc::default(),
            down_since: Mutex::new(None),
            silence: Mutex::new(None),
            server_clock: ServerClock::default(),
            janitor,
        }))
    }

    /// Runs until the session is over, and reports each change of the link to `on_link`.
    pub(crate) async fn run(&self, on_link: impl Fn(Link)) -> LossReason {
        tokio::select! {
            biased;
            reason = self.follow_link(on_link) => reason,
            () = self.verify_connections() => LossReason::SessionExpired,
            reason = self.ended() => reason,
            () = self.confirm_while_needed() => LossReason::SessionExpired,
            () = self.expire_by_clock() => LossReason::SessionExpired,
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
        &self.0.watch_budget
    }

    pub(crate) fn node_bytes(&self) -> &NodeBytes {
        &self.0.node_bytes
    }

    pub(crate) fn now(&self) -> BootInstant {
        self.0.settings.environment.now()
    }

    /// Why the session is over, if it is.
    pub(crate) fn loss(&self) -> Option<LossReason> {
        self.0.owned_nodes.loss().copied()
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
        if let Some(wire) = self.0.wire.write().take() {
            wire.abandon();
        }
    }

    /// The client reports a session as expired also if no server answered for long. Then it is not known
    /// whether the session expired. The client never does so earlier than a session timeout after the link
    /// went down.
    fn known(&self, reason: LossReason) -> LossReason {
        let is_down_for_long =
            || self.0.down_since.lock().is_some_and(|since| self.now().since(since) >= self.0.timeout);
        match reason {
            LossReason::SessionExpired if is_down_for_long() => LossReason::NoAnswer,
            _ => reason,
        }
    }

    pub(crate) fn wire(&self) -> Result<Arc<dyn Wire>, WireError> {
        self.0.wire.read().clone().ok_or_else(|| self.over())
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
