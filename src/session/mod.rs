//! One ZooKeeper session: one epoch.
//!
//! Nothing moves from one session to the next: nodes, watches, replies and guards belong to the session they were
//! made in and end with it. Every wait for a reply ends with the session at the latest.

mod deletion_watch;
pub(crate) mod janitor;
pub(crate) mod lease;
mod lease_renewal;
mod owned_node;
mod parker;
mod settings;
mod table;
mod watch_budget;

use std::collections::BTreeMap;
use std::fmt::{self, Debug, Display, Formatter};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::{Mutex, RwLock};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

pub(crate) use self::owned_node::{Origin, OwnedNode, SharedWatch, TxnInFlight};
use self::parker::Parker;
pub(crate) use self::settings::SessionSettings;
pub(crate) use self::table::SessionTable;
pub(crate) use self::watch_budget::{Reservation, WatchBudget};
use crate::error::LossReason;
use crate::session::janitor::Janitor;
use crate::session::lease::SessionLease;
use crate::time::boot::BootInstant;
use crate::time::deadline::Deadline;
use crate::time::fractions;
use crate::time::server_clock::ServerClock;
use crate::wire::{
    CreateMode, Created, Link, MultiError, Reply, Stat, Wire, WireError, WriteOp, WriteResult,
};

/// The number of a session within its manager: the first is 1, and each expiry adds one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(pub(crate) u64);

impl Epoch {
    /// The number.
    #[must_use]
    pub fn as_u64(self) -> u64 {
        self.0
    }
}

impl Display for Epoch {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        write!(formatter, "epoch {}", self.0)
    }
}

/// The answer to a transaction.
pub(crate) type Committed = Result<Vec<WriteResult>, MultiError>;

/// So many breaks in a row at the same request are no chance.
const HANG_UPS_MAX: usize = 3;

/// For so many session timeouts a connection may answer nothing at all, though it is up.
const SILENT_TIMEOUTS_MAX: u32 = 4;

/// A handle to one session; cheap to clone.
#[derive(Clone)]
pub(crate) struct Session(Arc<Inner>);

struct Inner {
    epoch: Epoch,
    id: i64,
    timeout: Duration,
    settings: Arc<SessionSettings>,
    /// Gone once the session ended: as long as one clone of the client lives, its session is kept alive.
    wire: RwLock<Option<Arc<dyn Wire>>>,
    ended: CancellationToken,
    loss: OnceLock<LossReason>,
    lease: Mutex<SessionLease>,
    /// Tells waiters that the lease was set forward.
    lease_moved: Notify,
    /// Who keeps the lease confirmed, while that is needed.
    renewal: Parker,
    /// Who watches the clock, while something is held.
    clock_watcher: Parker,
    /// Who looks out for what is held.
    deletion_watcher: Parker,
    owned_nodes: Mutex<BTreeMap<u64, Arc<OwnedNode>>>,
    next_owned_node: AtomicU64,
    /// What another part of the library keeps for this session.
    table: OnceLock<Arc<dyn SessionTable>>,
    /// The ensemble was asked to confirm the session over this connection, and did not answer.
    quorum_silent: AtomicBool,
    /// Tasks that wait for the lease to become valid.
    waiting_for_lease: AtomicUsize,
    last_used: Mutex<BootInstant>,
    /// Whether the server knows container nodes, as far as we know.
    has_containers: AtomicBool,
    /// How often in a row the link broke at a request that some servers do not know and hang up on.
    hang_ups: AtomicUsize,
    /// The connection on which reads are known to show all that this session has learned.
    synced_on: AtomicU64,
    watch_budget: WatchBudget,
    /// The connection on which a request had no answer, and since when none had any.
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
        Self(Arc::new(Inner {
            epoch,
            id: wire.session_id(),
            timeout,
            lease: Mutex::new(SessionLease::new(timeout, settings.tick, opened)),
            settings,
            wire: RwLock::new(Some(wire)),
            ended: CancellationToken::new(),
            loss: OnceLock::new(),
            lease_moved: Notify::new(),
            renewal: Parker::default(),
            clock_watcher: Parker::default(),
            deletion_watcher: Parker::default(),
            owned_nodes: Mutex::new(BTreeMap::new()),
            next_owned_node: AtomicU64::new(0),
            table: OnceLock::new(),
            quorum_silent: AtomicBool::new(false),
            waiting_for_lease: AtomicUsize::new(0),
            last_used: Mutex::new(opened),
            has_containers: AtomicBool::new(true),
            hang_ups: AtomicUsize::new(0),
            synced_on: AtomicU64::new(0),
            watch_budget: WatchBudget::default(),
            silence: Mutex::new(None),
            server_clock: ServerClock::default(),
            janitor,
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

    pub(crate) fn janitor(&self) -> &Janitor {
        &self.0.janitor
    }

    pub(crate) fn watch_budget(&self) -> &WatchBudget {
        &self.0.watch_budget
    }

    pub(crate) fn now(&self) -> BootInstant {
        self.0.settings.environment.now()
    }

    /// Why the session is over, if it is.
    pub(crate) fn loss(&self) -> Option<LossReason> {
        self.0.loss.get().copied()
    }

    /// Resolves when the session is over.
    pub(crate) async fn ended(&self) -> LossReason {
        self.0.ended.cancelled().await;
        self.loss().unwrap_or(LossReason::SessionExpired)
    }

    /// Ends the session for ever. Nothing is granted on it from here on; waiters are told before holders. The
    /// connection is dropped, so that the server closes the session if it still has it.
    pub(crate) fn end(&self, reason: LossReason) {
        if self.0.loss.set(reason).is_err() {
            return;
        }
        let mut owned_nodes: Vec<Arc<OwnedNode>> =
            std::mem::take(&mut *self.0.owned_nodes.lock()).into_values().collect();
        owned_nodes.sort_by_key(|node| node.is_held());
        for node in owned_nodes {
            node.lose(reason);
        }
        if let Some(table) = self.existing_table() {
            table.session_ended();
        }
        self.0.ended.cancel();
        if let Some(wire) = self.0.wire.write().take() {
            wire.abandon();
        }
    }

    pub(crate) fn wire(&self) -> Result<Arc<dyn Wire>, WireError> {
        self.0.wire.read().clone().ok_or_else(|| self.over())
    }

    fn over(&self) -> WireError {
        WireError::SessionEnded(self.loss().unwrap_or(LossReason::SessionExpired))
    }

    /// Waits for a reply until the session ends, the deadline passes, or one request has had more time than any
    /// server takes: the session timeout, or the operation timeout if that is longer. A shorter operation timeout is a
    /// deadline of its callers. It does not end a single request here: a waiter would repeat it.
    pub(crate) async fn await_reply<T>(
        &self,
        reply: &mut Reply<T>,
        deadline: Deadline,
    ) -> Result<T, WireError> {
        let limit = deadline.or_after(self.timeout().max(self.settings().operation_timeout));
        let begun = self.now();
        let result = tokio::select! {
            biased;
            result = reply => result,
            _ = self.ended() => Err(self.over()),
            () = limit.passed() => Err(WireError::Timeout),
        };
        match &result {
            Ok(_) | Err(WireError::Refused(_)) => *self.0.silence.lock() = None,
            Err(WireError::SessionEnded(reason)) => self.end(*reason),
            Err(WireError::Timeout) => self.had_no_answer(begun),
            Err(_) => {}
        }
        result
    }

    /// The client takes a connection for well as long as bytes come in, be it that they never make an answer: one wrong
    /// length makes it wait for all that follows. Only a new session helps then.
    fn had_no_answer(&self, begun: BootInstant) {
        let (now, Some(connection)) = (self.now(), self.connection()) else { return };
        // A caller in a hurry proves nothing.
        if now.since(begun) < fractions::silence_min(self.timeout()) || self.link() != Link::Up {
            return;
        }
        let mut silence = self.0.silence.lock();
        let (on, since) = *silence.get_or_insert((connection, begun));
        if on != connection {
            *silence = Some((connection, begun));
        } else if now.since(since) > self.timeout() * SILENT_TIMEOUTS_MAX {
            drop(silence);
            warn!(
                epoch = self.0.epoch.0,
                "no answer for long on a connection that is up; giving the session up"
            );
            self.end(LossReason::LeaseRanOut);
        }
    }

    /// A read: sent now, awaited later.
    pub(crate) fn read<T: Send + 'static>(&self, send: impl FnOnce(&dyn Wire) -> Reply<T>) -> Reply<T> {
        match self.wire() {
            Ok(wire) => send(&*wire),
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
    }

    /// A write: sent now, awaited later. Its success confirms the lease.
    pub(crate) fn write<T: Send + 'static>(&self, send: impl FnOnce(&dyn Wire) -> Reply<T>) -> Reply<T> {
        let wire = match self.wire() {
            Ok(wire) => wire,
            Err(error) => return Box::pin(std::future::ready(Err(error))),
        };
        let (connection, sent) = (wire.connection_id(), self.now());
        let reply = send(&*wire);
        let session = self.clone();
        Box::pin(async move {
            let result = reply.await;
            if result.is_ok() {
                session.confirmed(connection, sent);
            }
            result
        })
    }

    /// Creates a node of this session, and checks that it is of this session.
    pub(crate) fn create(&self, path: &str, data: &[u8], mode: CreateMode) -> Reply<Created> {
        let wire = match self.wire() {
            Ok(wire) => wire,
            Err(error) => return Box::pin(std::future::ready(Err(error))),
        };
        let (connection, sent) = (wire.connection_id(), self.now());
        let reply = wire.create(path, data, mode);
        let session = self.clone();
        let is_ephemeral = matches!(mode, CreateMode::Ephemeral | CreateMode::EphemeralSequential);
        Box::pin(async move {
            let created = reply.await?;
            session.confirmed(connection, sent);
            if let Some(stat) = created.stat {
                session.observe_server_time(stat.ctime);
            }
            if let (true, Some(stat)) = (is_ephemeral, created.stat) {
                session.check_owner(&created.path, &stat)?;
                // What this connection made is ours, so this connection carries our session.
                session.verified(connection);
            }
            Ok(created)
        })
    }

    /// All writes or none: sent now, awaited later. A refusal by the quorum confirms the lease as much as a success.
    pub(crate) fn send_multi(&self, operations: &[WriteOp]) -> Reply<Committed> {
        let wire = match self.wire() {
            Ok(wire) => wire,
            Err(error) => return Box::pin(std::future::ready(Err(error))),
        };
        let (connection, sent) = (wire.connection_id(), self.now());
        let commit = wire.multi(operations);
        let session = self.clone();
        Box::pin(async move {
            match commit.await {
                Err(MultiError::Request(error)) => Err(error),
                answered => {
                    session.confirmed(connection, sent);
                    if let Some(time) = answered.iter().flatten().filter_map(WriteResult::time).max() {
                        session.observe_server_time(time);
                    }
                    Ok(answered)
                }
            }
        })
    }

    /// Writes a node's data: sent now, awaited later.
    pub(crate) fn set_data(&self, path: &str, data: &[u8], version: Option<i32>) -> Reply<Stat> {
        let reply = self.write(|wire| wire.set_data(path, data, version));
        let session = self.clone();
        Box::pin(async move {
            let stat = reply.await?;
            session.observe_server_time(stat.mtime);
            Ok(stat)
        })
    }

    /// A write was answered that took place at this time of the servers.
    fn observe_server_time(&self, millis: i64) {
        self.0.server_clock.observe(millis, self.now());
    }

    /// What time it is on the servers, at the earliest, in milliseconds; `None` before the first write.
    pub(crate) fn server_time(&self) -> Option<i64> {
        self.0.server_clock.now(self.now())
    }

    /// As [`send_multi`](Self::send_multi), and waits for the answer.
    pub(crate) async fn multi(&self, operations: &[WriteOp], deadline: Deadline) -> Committed {
        let mut reply = self.send_multi(operations);
        self.await_reply(&mut reply, deadline).await.map_err(MultiError::Request)?
    }

    /// Compares a node's owner with this session: some servers replace the session on reconnect without a word.
    pub(crate) fn check_owner(&self, path: &str, stat: &Stat) -> Result<(), WireError> {
        if stat.ephemeral_owner == self.id() {
            return Ok(());
        }
        warn!(path, owner = stat.ephemeral_owner, session = self.id(), "the server replaced our session");
        self.end(LossReason::SessionReplaced);
        Err(self.over())
    }

    pub(crate) fn has_containers(&self) -> bool {
        self.0.has_containers.load(Ordering::Relaxed)
    }

    /// The server does not know container nodes: parents will be persistent and stay.
    pub(crate) fn without_containers(&self) {
        debug!("the server has no container nodes; empty lock directories will stay");
        self.0.has_containers.store(false, Ordering::Relaxed);
    }

    /// Notes how a request ended that some servers do not know and hang up on; `true` once it broke the link too
    /// often for chance.
    pub(crate) fn record_disconnect<T>(&self, result: &Result<T, WireError>) -> bool {
        match result {
            Err(WireError::Broken(_)) => self.0.hang_ups.fetch_add(1, Ordering::Relaxed) + 1 >= HANG_UPS_MAX,
            _ => {
                self.0.hang_ups.store(0, Ordering::Relaxed);
                false
            }
        }
    }

    /// Sees to it that a read that follows shows all that this session has learned.
    ///
    /// A watch's event does not move the mark by which a server that is behind refuses a client. Who was granted a
    /// lock by an event and was then moved to such a server would read old data: one `sync` per connection helps.
    /// Yields the connection for which that is so.
    pub(crate) async fn ensure_synced(&self, deadline: Deadline) -> Result<u64, WireError> {
        let connection = self.wire()?.connection_id();
        if self.0.synced_on.load(Ordering::Acquire) == connection {
            return Ok(connection);
        }
        let mut sync = self.read(|wire| wire.sync("/"));
        self.await_reply(&mut sync, deadline).await?;
        self.0.synced_on.store(connection, Ordering::Release);
        Ok(connection)
    }

    /// The number of the present connection; every interruption of the link makes another one.
    pub(crate) fn connection(&self) -> Option<u64> {
        self.wire().ok().map(|wire| wire.connection_id())
    }

    /// Resolves once the link is up on another connection than `before`.
    pub(crate) async fn reconnected(&self, before: Option<u64>) {
        loop {
            let changed = match self.wire() {
                Ok(wire) => {
                    let changed = wire.link_changed();
                    if wire.link() == Link::Up && Some(wire.connection_id()) != before {
                        return;
                    }
                    changed
                }
                Err(_) => return std::future::pending().await,
            };
            changed.await;
        }
    }

    /// Resolves once the link is down, or up on another connection than this one.
    pub(crate) async fn interrupted(&self, connection: Option<u64>) {
        while let Ok(wire) = self.wire() {
            // Armed first, then looked at: no change falls between.
            let changed = wire.link_changed();
            if wire.link() != Link::Up || Some(wire.connection_id()) != connection {
                return;
            }
            drop(wire);
            changed.await;
        }
    }

    /// As [`connection`](Self::connection), if the link is up: what is sent now is sent over it, and not kept
    /// for later.
    pub(crate) fn live_connection(&self) -> Option<u64> {
        let wire = self.wire().ok()?;
        let connection = wire.connection_id();
        (wire.link() == Link::Up && wire.connection_id() == connection).then_some(connection)
    }

    fn link(&self) -> Link {
        match self.wire() {
            Ok(wire) => wire.link(),
            Err(_) => Link::Ended(self.loss().unwrap_or(LossReason::SessionExpired)),
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
