//! What the lease of a session rests on.

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

#[test]
fn a_connection_that_is_not_verified_is_confirmed_at_the_normal_interval() {
    let mut lease = lease();
    lease.confirm(1, at(5_000), at(5_010));
    assert_eq!(lease.next_confirmation(Some(at(5_000)), at(5_011)), at(6_110));
    lease.confirm(1, at(6_110), at(6_120));
    let next = at(6_110).after(T / 6);
    assert_eq!(lease.next_confirmation(Some(at(6_110)), at(6_121)), next);
    // Also once the lease has run out.
    assert_eq!(lease.next_confirmation(Some(at(6_110)), at(60_000)), next);
    lease.verify(1, at(9_000));
    assert_eq!(lease.valid_until(), at(14_900));
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
