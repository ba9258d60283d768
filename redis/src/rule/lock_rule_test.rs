use proptest::prelude::*;

use super::{Answer, Grant, LockRule};

const LEASE: u64 = 100;

#[derive(Clone, Debug)]
enum Call {
    Acquire { id: u64, permits: u64, waits: bool },
    Release { id: u64 },
    Extend { id: u64 },
    Pass { time: u64 },
}

fn call(limit: u64) -> impl Strategy<Value = Call> {
    prop_oneof![
        4 => (0..6_u64, 1..=limit, any::<bool>())
            .prop_map(|(id, permits, waits)| Call::Acquire { id, permits, waits }),
        3 => (0..6_u64).prop_map(|id| Call::Release { id }),
        1 => (0..6_u64).prop_map(|id| Call::Extend { id }),
        2 => (0..LEASE).prop_map(|time| Call::Pass { time }),
    ]
}

fn calls() -> impl Strategy<Value = (u64, Vec<Call>)> {
    (1..4_u64).prop_flat_map(|limit| (Just(limit), prop::collection::vec(call(limit), 0..60)))
}

proptest! {
    #[test]
    fn permits_are_never_exceeded_tokens_only_grow_and_no_room_is_left_to_a_waiter(
        (limit, calls) in calls(),
    ) {
        let mut rule = LockRule::new(limit);
        let (mut at, mut newest) = (1_000, 0);
        for call in calls {
            let mut granted = |grants: Vec<Grant>| {
                for grant in grants {
                    assert!(grant.token > newest);
                    newest = grant.token;
                }
            };
            match call {
                Call::Pass { time } => { at += time; continue }
                Call::Acquire { id, permits, waits } => {
                    let (answer, grants) = rule.acquire(at, id, permits, LEASE, waits);
                    let others: Vec<Grant> = grants.into_iter().filter(|grant| grant.id != id).collect();
                    match answer {
                        Answer::Held { token } if others.iter().all(|grant| grant.token < token) => {
                            granted(others);
                            granted(vec![Grant { id, token }]);
                            prop_assert!(rule.is_held_by(id));
                        }
                        // A waiter behind it was granted by the same call.
                        Answer::Held { token } => {
                            let mut all = others;
                            all.push(Grant { id, token });
                            all.sort_by_key(|grant| grant.token);
                            granted(all);
                        }
                        Answer::Waits { .. } => granted(others),
                    }
                }
                Call::Release { id } => {
                    let (_, grants) = rule.release(at, id);
                    granted(grants);
                    prop_assert!(!rule.waiting(at).any(|waiter| waiter == id));
                }
                Call::Extend { id } => {
                    let (_, grants) = rule.extend(at, id, LEASE);
                    granted(grants);
                }
            }
            prop_assert!(rule.taken() <= limit);
            // Nobody waits for a lock that is free as a whole.
            prop_assert!(rule.taken() > 0 || rule.waiting(at).next().is_none());
        }
    }

    #[test]
    fn waiters_that_stay_alive_are_granted_in_the_order_of_their_first_call(count in 1..8_u64) {
        let mut rule = LockRule::new(1);
        rule.acquire(0, 100, 1, LEASE, true);
        for id in 0..count {
            rule.acquire(0, id, 1, LEASE, true);
        }
        // Asked again in the other order: the positions stay.
        for id in (0..count).rev() {
            let (answer, _) = rule.acquire(1, id, 1, LEASE, true);
            prop_assert_eq!(answer, Answer::Waits { ahead: usize::try_from(id).unwrap(), newest: 1 });
        }
        let (_, mut grants) = rule.release(2, 100);
        for id in 0..count {
            prop_assert_eq!(grants.iter().map(|grant| grant.id).collect::<Vec<_>>(), [id]);
            grants = rule.release(3, id).1;
        }
        prop_assert!(grants.is_empty());
    }
}

#[test]
fn a_waiter_that_is_not_alive_is_skipped() {
    let mut rule = LockRule::new(1);
    rule.acquire(0, 1, 1, 10 * LEASE, true);
    rule.acquire(0, 2, 1, LEASE, true);
    rule.acquire(50, 3, 1, LEASE, true);
    let (held, grants) = rule.release(LEASE + 1, 1);
    assert!(held && grants.iter().map(|grant| grant.id).eq([3]));
}

#[test]
fn a_lease_that_ended_frees_the_lock_at_the_next_call_of_any_contender() {
    let mut rule = LockRule::new(1);
    rule.acquire(0, 1, 1, LEASE, true);
    rule.acquire(50, 2, 1, LEASE, true);
    // Not the head, and not even a waiter: the head is granted.
    let (answer, grants) = rule.acquire(LEASE, 9, 1, LEASE, false);
    assert_eq!(answer, Answer::Waits { ahead: 0, newest: 2 });
    assert!(grants.iter().map(|grant| grant.id).eq([2]));
    assert_eq!(rule.extend(LEASE, 1, LEASE), (false, Vec::new()));
}

#[test]
fn a_clock_of_the_server_that_is_set_forward_ends_a_lease_early() {
    let mut rule = LockRule::new(1);
    rule.acquire(0, 1, 1, LEASE, true);
    let (answer, _) = rule.acquire(LEASE - 1, 2, 1, LEASE, false);
    assert!(matches!(answer, Answer::Waits { .. }));
    // A millisecond has passed for everyone else, so the holder's own clock says that the lease continues.
    let (answer, _) = rule.acquire(10 * LEASE, 2, 1, LEASE, false);
    assert!(matches!(answer, Answer::Held { .. }));
}

#[test]
fn an_answer_that_was_lost_is_given_again_with_a_greater_token() {
    let mut rule = LockRule::new(1);
    let (first, _) = rule.acquire(0, 1, 1, LEASE, true);
    let (second, _) = rule.acquire(1, 1, 1, LEASE, true);
    assert_eq!((first, second), (Answer::Held { token: 1 }, Answer::Held { token: 2 }));
}
