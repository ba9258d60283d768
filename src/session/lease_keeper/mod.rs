//! The lease of a session: its clock, its renewal, and the waits for it.

mod lease;

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tracing::debug;

pub(crate) use self::lease::SessionLease;
use super::parker::Parker;
use super::settings::SessionSettings;
use crate::error::LossReason;
use crate::time::boot::BootInstant;
use crate::time::deadline::Deadline;
use crate::time::fractions;
use crate::wire::WireError;

/// Keeps the lease of a session.
pub(super) struct LeaseKeeper {
    settings: Arc<SessionSettings>,
    /// The session timeout.
    timeout: Duration,
    lease: Mutex<SessionLease>,
    /// Notifies waiters that the lease was renewed.
    moved: Notify,
    /// Tasks that wait for the lease to become valid.
    waiting: AtomicUsize,
    last_used: Mutex<BootInstant>,
    /// The task that keeps the lease confirmed while that is needed.
    renewal: Parker,
    /// The task that reads the clock while a lock is held.
    clock_watcher: Parker,
    /// The ensemble did not answer a confirmation over this connection.
    is_quorum_silent: AtomicBool,
}

/// What the lease is kept for, and how it is confirmed.
pub(super) trait LeaseUser: Sync {
    /// Whether a node of the session exists, held or waiting.
    fn has_nodes(&self) -> bool;
    fn holds_something(&self) -> bool;
    /// A request would be sent now, and not queued.
    fn is_connected(&self) -> bool;
    /// Sends a request that the quorum processes, and waits for the answer.
    fn confirm(&self, limit: Deadline) -> impl Future<Output = Result<(), WireError>> + Send;
    /// Removes what is idle. Returns whether something is left that may become idle.
    fn forget_idle(&self) -> bool;
    /// Settles all holds: the lease has run out.
    fn settle_holds(&self);
}

impl LeaseKeeper {
    /// The lease of a session whose opening began at `opened`.
    pub(super) fn new(settings: Arc<SessionSettings>, timeout: Duration, opened: BootInstant) -> Self {
        Self {
            timeout,
            lease: Mutex::new(SessionLease::new(timeout, settings.tick, opened)),
            settings,
            moved: Notify::new(),
            waiting: AtomicUsize::new(0),
            last_used: Mutex::new(opened),
            renewal: Parker::default(),
            clock_watcher: Parker::default(),
            is_quorum_silent: AtomicBool::new(false),
        }
    }

    fn now(&self) -> BootInstant {
        self.settings.environment.now()
    }

    pub(super) fn valid_until(&self) -> BootInstant {
        self.lease.lock().valid_until()
    }

    /// How often the lease has run out.
    pub(super) fn expirations(&self) -> u64 {
        let lease = self.lease.lock();
        lease.expirations(self.now())
    }

    /// Whether the lease covers this instant.
    pub(super) fn is_valid(&self) -> bool {
        let lease = self.lease.lock();
        lease.covers(self.now())
    }

    /// Calls `grant` with the number of expirations and the present instant if the lease covers it and
    /// `may_grant` allows it, all under the lease's lock. Returns whether it did.
    pub(super) fn grant_under(
        &self,
        may_grant: impl FnOnce() -> bool,
        grant: impl FnOnce(u64, BootInstant),
    ) -> bool {
        let lease = self.lease.lock();
        let now = self.now();
        if !may_grant() || !lease.covers(now) {
            return false;
        }
        grant(lease.expirations(now), now);
        drop(lease);
        self.clock_watcher.notify();
        self.mark_used();
        true
    }

    /// Waits until the lease of a session that `is_alive` is valid. Returns `Ok(false)` if the deadline
    /// passes first, and the reason once the session has `ended`.
    pub(super) async fn until_valid(
        &self,
        is_alive: impl Fn() -> bool,
        ended: impl Future<Output = LossReason>,
        deadline: Deadline,
    ) -> Result<bool, LossReason> {
        self.waiting.fetch_add(1, Ordering::AcqRel);
        let _waiting = Countdown(&self.waiting);
        let mut ended = std::pin::pin!(ended);
        loop {
            let mut moved = std::pin::pin!(self.moved.notified());
            moved.as_mut().enable();
            if is_alive() && self.is_valid() {
                return Ok(true);
            }
            self.renewal.wake();
            tokio::select! {
                biased;
                () = moved => {}
                reason = &mut ended => return Err(reason),
                () = deadline.passed() => return Ok(false),
            }
        }
    }

    /// Whether this connection, the present one, is verified to carry the session.
    pub(super) fn is_verified(&self, connection: u64) -> bool {
        self.lease.lock().is_verified(connection)
    }

    /// Records that this connection, the present one, carries the session.
    pub(super) fn verified(&self, connection: u64) {
        let mut lease = self.lease.lock();
        let now = self.now();
        lease.verify(connection, now);
        drop(lease);
        self.moved.notify_waiters();
    }

    /// A request that was sent at `sent` on this connection, the present one, was processed by the quorum.
    /// Returns how long the lease would have lasted without it, if it renewed the lease.
    pub(super) fn confirmed(&self, connection: u64, sent: BootInstant) -> Option<Duration> {
        let mut lease = self.lease.lock();
        // Read under the lock: no question may have seen an expiry that this instant does not show.
        let now = self.now();
        let before = lease.valid_until();
        lease.confirm(connection, sent, now);
        let is_renewed = lease.valid_until() > before;
        drop(lease);
        self.moved.notify_waiters();
        is_renewed.then(|| before.since(now))
    }

    /// Records that locks are in use: the lease is kept confirmed for a while, so that the next acquire needs
    /// no confirmation.
    pub(super) fn mark_used(&self) {
        *self.last_used.lock() = self.now();
        self.renewal.notify();
    }

    /// A node of the session was registered.
    pub(super) fn wants_renewal(&self) {
        self.renewal.notify();
    }

    /// The link is up.
    pub(super) fn wake_renewal(&self) {
        self.renewal.wake();
    }

    /// Whether the ensemble gives no answer although the link is up.
    pub(super) fn is_quorum_silent(&self) -> bool {
        self.is_quorum_silent.load(Ordering::Acquire)
    }

    /// The quorum has answered, or another connection may.
    pub(super) fn forget_silence(&self) {
        self.is_quorum_silent.store(false, Ordering::Release);
    }

    /// Keeps the lease confirmed while that is needed. Runs as long as the session.
    pub(super) async fn confirm_while_needed(&self, user: &impl LeaseUser) {
        let mut last_sent = None;
        loop {
            let now = self.now();
            self.renewal.park();
            let due = self.is_needed(user, now).then(|| self.lease.lock().next_confirmation(last_sent, now));
            if due.is_some() {
                self.renewal.unpark();
            }
            let poked = self.renewal.woken();
            match due {
                None => {
                    let has_more = user.forget_idle();
                    tokio::select! {
                        biased;
                        () = poked => {}
                        () = tokio::time::sleep(self.timeout), if has_more => {}
                    }
                }
                Some(due) if due > now => {
                    tokio::select! {
                        biased;
                        () = tokio::time::sleep(due.since(now)) => {}
                        () = poked => {}
                    }
                }
                // A request would only be queued. The task is woken when the link is up again.
                Some(_) if !user.is_connected() => poked.await,
                Some(_) => {
                    last_sent = Some(now);
                    user.forget_idle();
                    let limit = Deadline::after(fractions::confirmation_limit(self.timeout));
                    if let Err(error) = user.confirm(limit).await {
                        debug!(%error, "the session could not be confirmed");
                        self.is_quorum_silent.fetch_or(error == WireError::Timeout, Ordering::AcqRel);
                        tokio::time::sleep(fractions::retry_pause(self.timeout)).await;
                    }
                }
            }
        }
    }

    fn is_needed(&self, user: &impl LeaseUser, now: BootInstant) -> bool {
        self.waiting.load(Ordering::Acquire) > 0
            || now < self.last_used.lock().after(self.settings.lease_keep_alive)
            || user.has_nodes()
    }

    /// Settles the holds at the moment the lease runs out. Runs as long as the session.
    ///
    /// Timers stand still while the machine sleeps, so the clock is read at least every quarter of the
    /// margin.
    pub(super) async fn expire_by_clock(&self, user: &impl LeaseUser) {
        let slice = fractions::clock_check(self.timeout);
        let mut expirations_seen = self.expirations();
        loop {
            self.clock_watcher.park();
            let expirations = self.expirations();
            if expirations != expirations_seen {
                expirations_seen = expirations;
                user.settle_holds();
            }
            if !user.holds_something() {
                self.clock_watcher.woken().await;
                continue;
            }
            self.clock_watcher.unpark();
            let remaining = self.valid_until().since(self.now());
            tokio::time::sleep(if remaining.is_zero() { slice } else { slice.min(remaining) }).await;
        }
    }

    /// As if no request had been confirmed for long. Returns the lease as it was.
    #[cfg(test)]
    pub(super) fn run_out(&self) -> SessionLease {
        let opened = self.now().before(self.timeout);
        self.restore(SessionLease::new(self.timeout, self.settings.tick, opened))
    }

    #[cfg(test)]
    pub(super) fn restore(&self, lease: SessionLease) -> SessionLease {
        std::mem::replace(&mut *self.lease.lock(), lease)
    }
}

/// Decrements a counter when it is dropped.
struct Countdown<'a>(&'a AtomicUsize);

impl Drop for Countdown<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}
