//! The lease clock: until when the server cannot have expired our session.
//!
//! A server expires a session no earlier than its timeout `T` after the leader last received a sign of life.
//! A client cannot see the leader, so this instant is derived from what a client can see:
//!
//! * Opening a session reaches the leader itself. It counts in full, from the instant before the attempt
//!   began.
//! * A *confirmed* request was processed by the quorum (a write that was answered). A follower does not pass
//!   the sign of life on with the request, but with its next answer to a ping of the leader, every half tick.
//!   If the follower dies before that, the sign of life is lost. So a confirmed request counts, from the
//!   instant before it was sent, once a second one was confirmed on the same connection that was sent at
//!   least half a tick after the reply to the first. Follower and leader talk over one ordered stream, so the
//!   answer to the ping came first.
//! * A new connection does not count until it is known to carry the same session. Some servers silently open
//!   another session on reconnect (ClickHouse Keeper).
//!
//! `valid_until = base + T − 1 % T`. The hundredth covers clocks whose rates differ.
//!
//! Sources: ZooKeeper `ExpiryQueue` (rounds up to the next tick), `LearnerHandler` and `Leader` (a ping each
//! half tick, touches in its answers), `SessionTrackerImpl`. Everything here is arithmetic on instants given
//! by the caller.

use std::collections::VecDeque;
use std::time::Duration;

use crate::time::boot::BootInstant;
use crate::time::fractions;

/// The state of one session's lease.
#[derive(Debug)]
pub(crate) struct SessionLease {
    timeout: Duration,
    /// How long after a reply its sign of life may still wait in a follower.
    follower_delay: Duration,
    base: BootInstant,
    connection: Connection,
    /// Whether the lease has run out and was not renewed since.
    expired: bool,
    /// How often the lease has run out. A hold that was granted before an expiry stays lost after it.
    expirations: u64,
}

/// The confirmations on the present connection.
#[derive(Debug, Default)]
struct Connection {
    /// The number of interruptions of the link before it.
    number: u64,
    /// Whether it is known to carry our session.
    verified: bool,
    /// The base that this connection sets once it is verified.
    unverified_base: Option<BootInstant>,
    /// Whether it has set a base. From then on confirmations are sent at the normal interval.
    has_given: bool,
    /// Confirmed requests that still wait for a second one: `(sent, replied)`, oldest first.
    pending: VecDeque<(BootInstant, BootInstant)>,
}

/// The spacing of the stored confirmations, in parts of the follower delay. More entries would only need
/// memory.
const PENDING_PER_DELAY: u32 = 8;

impl SessionLease {
    /// The lease of a session with this timeout, whose opening began at `opened`.
    pub(crate) fn new(timeout: Duration, tick: Duration, opened: BootInstant) -> Self {
        Self {
            timeout,
            // Half a tick between two pings of the leader, and a twentieth because a busy leader sends them
            // late.
            follower_delay: tick / 2 + tick / 20,
            base: opened,
            connection: Connection { verified: true, has_given: true, ..Connection::default() },
            expired: false,
            expirations: 0,
        }
    }

    /// The instant until which the server cannot have expired the session.
    pub(crate) fn valid_until(&self) -> BootInstant {
        self.base.after(self.timeout - fractions::clock_margin(self.timeout))
    }

    /// How often the lease has run out until `now`.
    ///
    /// It computes and records nothing. An expiry is counted before a confirmation moves the end of the
    /// lease, so the number never goes back: `now` must be read while no other task may change the lease.
    pub(crate) fn expirations(&self, now: BootInstant) -> u64 {
        self.expirations + u64::from(!self.expired && now >= self.valid_until())
    }

    /// Whether the lease covers `now`.
    pub(crate) fn covers(&self, now: BootInstant) -> bool {
        !self.expired && now < self.valid_until()
    }

    /// Counts an expiry until `now`. To be called before the end of the lease moves.
    fn count_expiry(&mut self, now: BootInstant) {
        self.expirations = self.expirations(now);
        self.expired = !self.covers(now);
    }

    /// A request sent at `sent`, answered by the quorum at `replied`, on connection `number`.
    pub(crate) fn confirm(&mut self, number: u64, sent: BootInstant, replied: BootInstant) {
        self.count_expiry(replied);
        if number < self.connection.number {
            return;
        }
        self.on_connection(number);
        let connection = &mut self.connection;
        let mut base = connection.unverified_base;
        while let Some(&(earlier, reply)) = connection.pending.front() {
            if reply.after(self.follower_delay) > sent {
                break;
            }
            base = base.max(Some(earlier));
            connection.pending.pop_front();
        }
        connection.unverified_base = base;
        let spacing = self.follower_delay / PENDING_PER_DELAY;
        if connection.pending.back().is_none_or(|&(last, _)| sent >= last.after(spacing)) {
            connection.pending.push_back((sent, replied));
        }
        self.apply_base(replied);
    }

    /// Connection `number` was verified to carry our session.
    pub(crate) fn verify(&mut self, number: u64, now: BootInstant) {
        self.count_expiry(now);
        if number < self.connection.number {
            return;
        }
        self.on_connection(number);
        self.connection.verified = true;
        self.apply_base(now);
    }

    /// When the next confirmation is due, if confirmations are needed at all.
    ///
    /// Normally every sixth of the timeout. If the lease has run out, or rests on an earlier connection, as
    /// soon as the confirmation can count. Once only the verification of the connection is missing, more of
    /// them would not help.
    pub(crate) fn next_confirmation(&self, last_sent: Option<BootInstant>, now: BootInstant) -> BootInstant {
        let is_renewed = self.covers(now) && self.connection.has_given;
        if is_renewed || self.connection.unverified_base.is_some() {
            return last_sent.map_or(now, |sent| sent.after(fractions::confirmation_interval(self.timeout)));
        }
        match self.connection.pending.front() {
            Some(&(_, replied)) => replied.after(self.follower_delay),
            None => now,
        }
    }

    /// Whether connection `number` is the present one, and verified to carry our session.
    pub(crate) fn is_verified(&self, number: u64) -> bool {
        self.connection.number == number && self.connection.verified
    }

    fn on_connection(&mut self, number: u64) {
        if number > self.connection.number {
            self.connection = Connection { number, ..Connection::default() };
        }
    }

    fn apply_base(&mut self, now: BootInstant) {
        if !self.connection.verified {
            return;
        }
        if let Some(base) = self.connection.unverified_base.take() {
            self.base = self.base.max(base);
            self.connection.has_given = true;
        }
        if now < self.valid_until() {
            self.expired = false;
        }
    }
}

#[cfg(test)]
mod tests;
