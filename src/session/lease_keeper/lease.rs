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
    /// soon as the confirmation can count.
    pub(crate) fn next_confirmation(&self, last_sent: Option<BootInstant>, now: BootInstant) -> BootInstant {
        if self.covers(now) && self.connection.has_given {
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
mod tests {
    use proptest::prelude::*;

    use super::*;

    const T: Duration = Duration::from_secs(10);
    const TICK: Duration = Duration::from_secs(2);

    fn at(milliseconds: u64) -> BootInstant {
        BootInstant::at(Duration::from_millis(1_000_000 + milliseconds))
    }

    fn lease() -> SessionLease {
        SessionLease::new(T, TICK, at(0))
    }

    #[test]
    fn opening_counts_in_full_less_a_hundredth() {
        assert_eq!(lease().valid_until(), at(9_900));
    }

    #[test]
    fn one_confirmation_alone_moves_nothing() {
        let mut lease = lease();
        lease.confirm(0, at(5_000), at(5_010));
        assert_eq!(lease.valid_until(), at(9_900));
    }

    #[test]
    fn a_confirmation_counts_once_another_was_sent_after_the_relay() {
        let mut lease = lease();
        lease.confirm(0, at(5_000), at(5_010));
        lease.confirm(0, at(6_109), at(6_120));
        assert_eq!(lease.valid_until(), at(9_900), "the second one was sent too soon");
        lease.confirm(0, at(6_110), at(6_130));
        assert_eq!(lease.valid_until(), at(14_900));
    }

    #[test]
    fn confirmations_on_two_connections_prove_nothing_together() {
        let mut lease = lease();
        lease.confirm(0, at(5_000), at(5_010));
        lease.verify(1, at(5_100));
        lease.confirm(1, at(7_000), at(7_010));
        assert_eq!(lease.valid_until(), at(9_900));
        lease.confirm(1, at(8_200), at(8_210));
        assert_eq!(lease.valid_until(), at(16_900));
    }

    #[test]
    fn an_unverified_connection_counts_only_once_it_is_verified() {
        let mut lease = lease();
        lease.confirm(3, at(5_000), at(5_010));
        lease.confirm(3, at(7_000), at(7_010));
        assert_eq!(lease.valid_until(), at(9_900));
        lease.verify(3, at(7_100));
        assert_eq!(lease.valid_until(), at(14_900));
    }

    #[test]
    fn a_reply_of_an_older_connection_is_ignored() {
        let mut lease = lease();
        lease.verify(2, at(100));
        lease.confirm(1, at(1_000), at(1_010));
        lease.confirm(1, at(3_000), at(3_010));
        assert_eq!(lease.valid_until(), at(9_900));
    }

    #[test]
    fn a_verification_of_an_older_connection_is_ignored() {
        let mut lease = lease();
        lease.confirm(2, at(5_000), at(5_010));
        lease.confirm(2, at(7_000), at(7_010));
        lease.verify(1, at(7_100));
        assert_eq!(lease.valid_until(), at(9_900));
        assert!(!lease.is_verified(2));
    }

    #[test]
    fn a_connection_is_verified_until_the_next_one() {
        let mut lease = lease();
        lease.verify(1, at(100));
        assert!(lease.is_verified(1) && !lease.is_verified(0));
        lease.confirm(2, at(200), at(210));
        assert!(!lease.is_verified(1) && !lease.is_verified(2));
    }

    #[test]
    fn a_lease_that_ends_with_a_reply_has_run_out_once() {
        let mut lease = lease();
        lease.confirm(0, at(9_000), lease.valid_until());
        assert_eq!(lease.expirations(lease.valid_until()), 1);
    }

    #[test]
    fn of_frequent_confirmations_the_lease_rests_on_a_late_one_and_few_are_stored() {
        for interval in [1, 10, 150] {
            let mut lease = lease();
            for sent in (0..9_000).step_by(interval) {
                lease.confirm(0, at(sent), at(sent + 1));
                let stored = lease.connection.pending.len();
                assert!(stored <= 10, "{stored} confirmations are stored at one each {interval} ms");
            }
            // The relay takes 1,100 ms, and an eighth of it lies between two confirmations that are stored.
            assert!(lease.valid_until() > at(17_400), "{:?} at one each {interval} ms", lease.valid_until());
        }
    }

    #[test]
    fn an_expiry_is_remembered_after_a_renewal() {
        let mut lease = lease();
        let before = lease.expirations(at(9_899));
        assert_eq!(lease.expirations(at(9_900)), before + 1);
        lease.confirm(0, at(20_000), at(20_010));
        assert!(!lease.covers(at(20_020)));
        lease.confirm(0, at(21_200), at(21_210));
        assert!(lease.covers(at(21_220)));
        assert_eq!(lease.expirations(at(21_220)), before + 1);
    }

    #[test]
    fn an_unobserved_expiry_is_counted_when_the_next_reply_arrives() {
        let mut lease = lease();
        lease.confirm(0, at(5_000), at(5_010));
        lease.confirm(0, at(6_200), at(30_000));
        assert_eq!(lease.expirations(at(30_000)), 1);
    }

    #[test]
    fn a_cold_lease_asks_for_its_second_confirmation_as_soon_as_it_counts() {
        let mut lease = lease();
        assert_eq!(lease.next_confirmation(Some(at(0)), at(60_000)), at(60_000));
        lease.confirm(0, at(60_000), at(60_005));
        assert_eq!(lease.next_confirmation(Some(at(60_000)), at(60_010)), at(61_105));
        lease.confirm(0, at(61_105), at(61_110));
        assert_eq!(lease.next_confirmation(Some(at(61_105)), at(61_111)), at(61_105).after(T / 6));
    }

    #[test]
    fn a_new_connection_is_confirmed_at_once_until_the_lease_rests_on_it() {
        let mut lease = lease();
        assert_eq!(lease.next_confirmation(Some(at(1_000)), at(2_000)), at(1_000).after(T / 6));
        lease.verify(1, at(2_000));
        assert_eq!(lease.next_confirmation(Some(at(1_000)), at(2_000)), at(2_000));
        lease.confirm(1, at(2_000), at(2_010));
        assert_eq!(lease.next_confirmation(Some(at(2_000)), at(2_011)), at(3_110));
        lease.confirm(1, at(3_110), at(3_120));
        assert_eq!(lease.next_confirmation(Some(at(3_110)), at(3_121)), at(3_110).after(T / 6));
    }

    /// A leader, a follower that relays each half tick and may die, and a client behind it.
    ///
    /// The property is promise 1 in arithmetic: the lease never outlives the session at the leader.
    #[derive(Clone, Debug)]
    enum Step {
        /// The client sends a request; the reply takes this long.
        Confirm(u64),
        /// Nothing for this long.
        Idle(u64),
        /// The follower dies before its next relay; the client reconnects to another one.
        FollowerDies,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            6 => (1u64..400).prop_map(Step::Confirm),
            6 => (1u64..9_000).prop_map(Step::Idle),
            1 => Just(Step::FollowerDies),
        ];
        prop::collection::vec(step, 1..60)
    }

    proptest! {
        #[test]
        fn the_lease_never_outlives_the_session_at_the_leader(steps in steps(), phase in 0u64..1_000) {
            let mut lease = lease();
            let mut now = 0u64;
            let mut touched_at_leader = 0u64;
            let mut unrelayed: Option<u64> = None;
            let mut connection = 0u64;
            let half_tick = u64::try_from(TICK.as_millis()).unwrap() / 2;
            let timeout = u64::try_from(T.as_millis()).unwrap();
            for step in steps {
                let until = match step {
                    Step::Confirm(latency) => now + latency,
                    Step::Idle(span) => now + span,
                    Step::FollowerDies => now,
                };
                let arrived = now;
                if matches!(step, Step::Confirm(_)) {
                    unrelayed = Some(arrived);
                }
                // The relays that happen until the step is over.
                let mut follower_delay = (now + half_tick - (now + phase) % half_tick).max(now + 1);
                while follower_delay <= until {
                    if let Some(touch) = unrelayed.take() {
                        touched_at_leader = touched_at_leader.max(touch);
                    }
                    follower_delay += half_tick;
                }
                if until >= touched_at_leader + timeout {
                    // The leader expired the session; it may do so at once, with no rounding.
                    prop_assert!(!lease.covers(at(touched_at_leader + timeout)));
                    return Ok(());
                }
                match step {
                    Step::Confirm(_) => lease.confirm(connection, at(arrived), at(until)),
                    Step::Idle(_) => {}
                    Step::FollowerDies => {
                        unrelayed = None;
                        connection += 1;
                        lease.verify(connection, at(now));
                    }
                }
                now = until;
                prop_assert!(lease.valid_until() < at(touched_at_leader + timeout));
            }
        }
    }
}
