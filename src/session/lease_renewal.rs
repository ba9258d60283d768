//! What runs beside a session for as long as it lives: it follows the link, keeps the lease confirmed while that is
//! needed, and watches the clock.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tracing::{debug, warn};

use super::{Origin, OwnedNode, Session};
use crate::config::lease_renewal::LeaseRenewal;
use crate::error::{LossReason, Refusal};
use crate::telemetry::metrics;
use crate::time::boot::BootInstant;
use crate::time::deadline::Deadline;
use crate::time::fractions;
use crate::wire::{Link, MultiError, WireError, WriteOp};

/// At most so many bytes of paths are checked by one request, to stay far below the server's request size.
const CHECKED_BYTES_MAX: usize = 256 * 1024;

impl Session {
    /// Runs until the session is over; `on_link` is told of each change of the link.
    pub(crate) async fn run(&self, on_link: impl Fn(Link)) -> LossReason {
        tokio::select! {
            biased;
            reason = self.follow_link(on_link) => reason,
            reason = self.ended() => reason,
            () = self.confirm_while_needed() => LossReason::SessionExpired,
            () = self.expire_by_clock() => LossReason::SessionExpired,
            () = self.watch_held_nodes() => LossReason::SessionExpired,
        }
    }

    pub(crate) fn lease_valid_until(&self) -> BootInstant {
        self.0.lease.lock().valid_until()
    }

    /// Whether the server cannot have expired the session yet.
    pub(crate) fn is_lease_valid(&self) -> bool {
        self.loss().is_none() && self.0.lease.lock().is_valid(self.now())
    }

    pub(crate) fn expirations(&self) -> u64 {
        self.0.lease.lock().observe(self.now())
    }

    /// Notes that locks are in use here: the lease is kept confirmed for a while, so that the next one is cheap.
    pub(crate) fn mark_used(&self) {
        *self.0.last_used.lock() = self.now();
        self.0.renewal.notify();
    }

    /// Enters a node of ours.
    pub(crate) fn register(&self, path: Arc<str>, data: Arc<[u8]>, origin: Origin) -> Arc<OwnedNode> {
        let number = self.0.next_owned_node.fetch_add(1, Ordering::Relaxed);
        let node = Arc::new(OwnedNode::new(number, path, self.clone(), origin, data));
        self.0.owned_nodes.lock().insert(number, Arc::clone(&node));
        self.0.renewal.notify();
        // The session may have ended meanwhile, and its end does not see what is entered later.
        if let Some(reason) = self.loss() {
            self.unregister(&node);
            node.lose(reason);
        }
        node
    }

    /// Strikes a node of ours out.
    pub(crate) fn unregister(&self, node: &OwnedNode) {
        self.0.owned_nodes.lock().remove(&node.number());
    }

    /// Whether the present connection was seen to carry this session. Without that, a node of ours that does not
    /// exist may have ended with the session.
    pub(super) fn is_connection_verified(&self) -> bool {
        self.connection().is_some_and(|connection| self.0.lease.lock().is_verified(connection))
    }

    /// The last step before "held" is said: the session lives, and the lease covers this instant.
    pub(crate) fn try_grant(&self, node: &OwnedNode) -> bool {
        let mut lease = self.0.lease.lock();
        let now = self.now();
        if self.loss().is_some() || !lease.is_valid(now) {
            return false;
        }
        node.mark_held(lease.observe(now), now);
        drop(lease);
        self.0.clock_watcher.notify();
        self.0.deletion_watcher.notify();
        self.mark_used();
        true
    }

    /// The lease ran out while a node was held: it is lost, and must not stand in anyone's way if the session lives
    /// on.
    pub(super) fn expire_hold(&self, node: &OwnedNode) {
        // What was given up before is being deleted.
        if node.lose(LossReason::LeaseRanOut) && !node.is_given_up() {
            self.janitor().delete(self, node.path());
        }
    }

    /// Waits until the lease is valid; `Ok(false)` when the deadline passed first.
    pub(crate) async fn until_lease_is_valid(&self, deadline: Deadline) -> Result<bool, LossReason> {
        if self.is_lease_valid() {
            return Ok(true);
        }
        debug!(epoch = self.epoch().as_u64(), "waiting for the ensemble to confirm the session");
        self.0.waiting_for_lease.fetch_add(1, Ordering::AcqRel);
        let _waiting = Countdown(&self.0.waiting_for_lease);
        loop {
            let mut moved = std::pin::pin!(self.0.lease_moved.notified());
            moved.as_mut().enable();
            if self.is_lease_valid() {
                return Ok(true);
            }
            self.0.renewal.wake();
            tokio::select! {
                biased;
                () = moved => {}
                reason = self.ended() => return Err(reason),
                () = deadline.passed() => return Ok(false),
            }
        }
    }

    /// Whether the ensemble stays silent though the link stands.
    pub(crate) fn quorum_silent(&self) -> bool {
        self.0.quorum_silent.load(Ordering::Acquire)
    }

    /// A request sent at `sent` on `connection` was processed by the quorum.
    pub(super) fn confirmed(&self, connection: u64, sent: BootInstant) {
        self.0.quorum_silent.store(false, Ordering::Release);
        // Sent on one connection and answered on another: it proves nothing about either.
        if self.wire().is_ok_and(|wire| wire.connection_id() == connection) {
            let (now, mut lease) = (self.now(), self.0.lease.lock());
            let before = lease.valid_until();
            lease.confirm(connection, sent, now);
            let is_renewed = lease.valid_until() > before;
            drop(lease);
            if is_renewed {
                metrics::lease_margin(|| self.holds_something().then(|| before.since(now)));
            }
            self.0.lease_moved.notify_waiters();
        }
    }

    /// The present connection was seen to carry this session.
    pub(super) fn verified(&self, connection: u64) {
        if self.wire().is_ok_and(|wire| wire.connection_id() == connection) {
            self.0.lease.lock().verify(connection, self.now());
            self.0.lease_moved.notify_waiters();
        }
    }

    async fn follow_link(&self, on_link: impl Fn(Link)) -> LossReason {
        let mut connection_seen = 0;
        loop {
            let Ok(wire) = self.wire() else {
                return self.ended().await;
            };
            // Armed first, then looked at: no change falls between.
            let changed = wire.link_changed();
            let (link, connection_id) = (wire.link(), wire.connection_id());
            match link {
                Link::Ended(reason) => return reason,
                Link::Down => on_link(Link::Down),
                Link::Up => {
                    if connection_id != connection_seen {
                        // It may have been down for so short a time that only its being up again was seen.
                        on_link(Link::Down);
                        self.0.quorum_silent.store(false, Ordering::Release);
                    }
                    on_link(Link::Up);
                    wire.on_connected();
                    self.0.renewal.wake();
                }
            }
            connection_seen = connection_id;
            drop(wire);
            let changed = async {
                changed.await;
            };
            if link == Link::Up && !self.0.lease.lock().is_verified(connection_id) {
                tokio::select! {
                    biased;
                    () = changed => {}
                    () = self.verify_until_known(connection_id) => {}
                }
            } else {
                changed.await;
            }
        }
    }

    /// Finds out whether the new connection carries this session, by a node of ours.
    ///
    /// Resolves when another look at the link is due.
    async fn verify_until_known(&self, connection: u64) {
        loop {
            let nodes: Vec<Arc<OwnedNode>> = self.0.owned_nodes.lock().values().take(4).cloned().collect();
            for node in nodes {
                if self.verify_by(&node, connection).await {
                    return;
                }
            }
            // With no node of ours standing, the next create tells.
            tokio::time::sleep(fractions::verify_interval(self.timeout())).await;
            if self.0.lease.lock().is_verified(connection) {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Whether this node of ours showed what session the connection carries.
    async fn verify_by(&self, node: &OwnedNode, connection: u64) -> bool {
        let path = node.path();
        let limit = Deadline::never();
        // What this very connection made belongs to whatever session it carries: its owner tells.
        if node.created_on() == Some(connection) {
            return self.verify_by_owner(node, connection).await;
        }
        // What an earlier one made may be of another session, which the present one may carry, too.
        if !node.is_owner_seen() && !self.see_owner(node).await {
            return false;
        }
        let mut listed = self.read(|wire| wire.own_ephemerals(path));
        let listed = self.await_reply(&mut listed, limit).await;
        let is_unknown_to_server = self.record_disconnect(&listed);
        match listed {
            Ok(mine) if mine.iter().any(|own| own == path) => {
                self.verified(connection);
                true
            }
            Ok(_) => {
                let mut reply = self.read(|wire| wire.exists(path));
                match self.await_reply(&mut reply, limit).await {
                    // It stands, but not among this connection's nodes.
                    Ok(Some(stat)) if stat.ephemeral_owner == self.id() => {
                        warn!(path, "the server replaced our session on reconnect");
                        self.end(LossReason::SessionReplaced);
                        true
                    }
                    Ok(None) => {
                        node.on_missing();
                        false
                    }
                    _ => false,
                }
            }
            Err(error) if is_unknown_to_server || error == WireError::Refused(Refusal::Unimplemented) => {
                warn!(
                    "this server cannot show which session a connection carries; a reconnect ends the session"
                );
                self.end(LossReason::SessionReplaced);
                true
            }
            Err(_) => false,
        }
    }

    /// Whether the owner of a node that `connection` made showed what session that carries.
    async fn verify_by_owner(&self, node: &OwnedNode, connection: u64) -> bool {
        if self.see_owner(node).await {
            self.verified(connection);
            return true;
        }
        self.loss().is_some()
    }

    /// Compares the owner of a node with this session; whether it was seen to be the same.
    async fn see_owner(&self, node: &OwnedNode) -> bool {
        let mut reply = self.read(|wire| wire.exists(node.path()));
        match self.await_reply(&mut reply, Deadline::never()).await {
            Ok(Some(stat)) => {
                let is_ours = self.check_owner(node.path(), &stat).is_ok();
                if is_ours {
                    node.set_owner_seen();
                }
                is_ours
            }
            Ok(None) => {
                node.on_missing();
                false
            }
            Err(_) => false,
        }
    }

    async fn confirm_while_needed(&self) {
        let mut last_sent = None;
        loop {
            let now = self.now();
            self.0.renewal.park();
            let due =
                self.needs_confirmation(now).then(|| self.0.lease.lock().next_confirmation(last_sent, now));
            if due.is_some() {
                self.0.renewal.unpark();
            }
            let poked = self.0.renewal.woken();
            match due {
                None => {
                    self.forget_idle();
                    let has_table = self.existing_table().is_some_and(|table| !table.is_empty());
                    tokio::select! {
                        biased;
                        () = poked => {}
                        () = tokio::time::sleep(self.timeout()), if has_table => {}
                    }
                }
                Some(due) if due > now => {
                    tokio::select! {
                        biased;
                        () = tokio::time::sleep(due.since(now)) => {}
                        () = poked => {}
                    }
                }
                // A request would only queue up; the return of the link wakes us.
                Some(_) if self.link() != Link::Up => poked.await,
                Some(_) => {
                    last_sent = Some(now);
                    self.forget_idle();
                    if let Err(error) = self.confirm().await {
                        debug!(%error, "the session could not be confirmed");
                        self.0.quorum_silent.fetch_or(error == WireError::Timeout, Ordering::AcqRel);
                        tokio::time::sleep(fractions::retry_pause(self.timeout())).await;
                    }
                }
            }
        }
    }

    fn forget_idle(&self) {
        if let Some(table) = self.existing_table() {
            table.forget_idle(self.now().before(self.timeout()));
        }
    }

    fn needs_confirmation(&self, now: BootInstant) -> bool {
        self.0.waiting_for_lease.load(Ordering::Acquire) > 0
            || now < self.0.last_used.lock().after(self.settings().lease_keep_alive)
            || !self.0.owned_nodes.lock().is_empty()
    }

    /// Lets the quorum confirm the session, and with it that everything held still stands.
    async fn confirm(&self) -> Result<(), WireError> {
        let limit = Deadline::after(fractions::confirmation_limit(self.timeout()));
        if self.settings().lease_renewal == LeaseRenewal::Sync {
            let mut reply = self.write(|wire| wire.sync("/"));
            return self.await_reply(&mut reply, limit).await;
        }
        let held = self.held_nodes();
        if held.is_empty() {
            let check = WriteOp::Check { path: "/".to_owned(), version: None };
            return match self.multi(&[check], limit).await {
                // A refusal is an answer of the quorum, too.
                Ok(_) | Err(MultiError::Operation { .. }) => Ok(()),
                Err(MultiError::Request(error)) => Err(error),
            };
        }
        let mut held = held.into_iter().peekable();
        while held.peek().is_some() {
            let mut bytes = 0;
            let mut nodes = Vec::new();
            while let Some(node) =
                held.next_if(|node| nodes.is_empty() || bytes + node.path().len() < CHECKED_BYTES_MAX)
            {
                bytes += node.path().len();
                nodes.push(node);
            }
            while !nodes.is_empty() {
                let checks: Vec<WriteOp> = nodes
                    .iter()
                    .map(|node| WriteOp::Check { path: node.path().to_owned(), version: None })
                    .collect();
                match self.multi(&checks, limit).await {
                    Ok(_) => break,
                    Err(MultiError::Operation { index, refusal }) if index < nodes.len() => {
                        let node = nodes.remove(index);
                        if refusal == Refusal::NoNode
                            && self.0.owned_nodes.lock().contains_key(&node.number())
                        {
                            node.on_missing();
                        }
                    }
                    Err(MultiError::Operation { .. }) => break,
                    Err(MultiError::Request(error)) => return Err(error),
                }
            }
        }
        Ok(())
    }

    /// Tells holders the moment the lease runs out.
    ///
    /// Timers stand still while the machine sleeps, so the clock is read at least every quarter of the margin.
    async fn expire_by_clock(&self) {
        let slice = fractions::clock_check(self.timeout());
        let mut lapses_seen = self.expirations();
        loop {
            self.0.clock_watcher.park();
            let expirations = self.expirations();
            if expirations != lapses_seen {
                lapses_seen = expirations;
                for node in self.held_nodes() {
                    // Asking is enough: a node finds out by the clock that it is lost.
                    let _ = node.check();
                }
            }
            if !self.holds_something() {
                self.0.clock_watcher.woken().await;
                continue;
            }
            self.0.clock_watcher.unpark();
            let remaining = self.lease_valid_until().since(self.now());
            tokio::time::sleep(if remaining.is_zero() { slice } else { slice.min(remaining) }).await;
        }
    }

    pub(super) fn holds_something(&self) -> bool {
        self.0.owned_nodes.lock().values().any(|node| node.is_held())
    }

    fn held_nodes(&self) -> Vec<Arc<OwnedNode>> {
        self.0.owned_nodes.lock().values().filter(|node| node.is_held()).cloned().collect()
    }
}

/// Takes one off a count when dropped.
struct Countdown<'a>(&'a std::sync::atomic::AtomicUsize);

impl Drop for Countdown<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}
