//! Each test checks one rule of the queue.

use super::readers::readers_behind_writer;
use super::{HEAD, LOCK, Queue, behind, grant, judge, key, queue_of, release, relist, watch_directory};
use crate::local::decide::ContenderKind::Read;
use crate::local::decide::{Effect, EntryKey, Judgement, NodeId, Prediction, Wait};

#[test]
fn a_released_head_hands_off_to_the_next_one_whose_node_is_checked() {
    let mut queue = queue_of(&[LOCK, LOCK, LOCK]);
    assert_eq!(release(&mut queue, key(0)), (vec![key(1).node], vec![grant(1)]));
    assert!(queue.was_released(0));
    // A granted contender that abandons its node hands off, too.
    assert_eq!(release(&mut queue, key(1)).1, [grant(2)]);
}

#[test]
fn a_head_hands_nothing_off_without_a_connection_or_over_another_one() {
    for (before, after) in [(None, Some(1)), (None, None), (Some(1), None), (Some(1), Some(2))] {
        let mut queue = queue_of(&[LOCK, LOCK]);
        let release = queue.begin_release(key(0), before);
        assert_eq!(release.checks.is_empty(), before.is_none());
        assert_eq!(queue.finish_release(release, after, None), [relist(1)], "{before:?}, {after:?}");
        assert!(!queue.was_released(0));
        assert_eq!(queue.record_predecessor(key(1), Some(key(0))), (Wait::Remote, vec![]));
    }
}

#[test]
fn a_lost_head_hands_nothing_off() {
    let mut queue = queue_of(&[LOCK, LOCK]);
    assert_eq!(queue.abandon(key(0)), [relist(1)]);
    assert_eq!(release(&mut queue, key(0)), (vec![], vec![]));
    assert!(!queue.was_released(0));
}

#[test]
fn a_waiter_that_leaves_makes_its_successor_list() {
    let mut queue = queue_of(&[LOCK, LOCK, LOCK]);
    assert_eq!(release(&mut queue, key(1)), (vec![], vec![relist(2)]));
    assert!(!queue.was_released(1));
    assert_eq!(queue.record_predecessor(key(2), Some(key(0))), (Wait::Local, vec![]));
    assert_eq!(release(&mut queue, key(0)).1, [grant(2)]);
}

#[test]
fn of_two_waiters_behind_one_node_the_earlier_one_has_lost_its_own() {
    let mut queue = queue_of(&[LOCK, LOCK]);
    let _ = queue.register(key(2), LOCK);
    assert_eq!(queue.record_predecessor(key(2), Some(key(0))), (Wait::Local, vec![relist(1)]));
    assert_eq!(release(&mut queue, key(0)).1, [grant(2)]);
}

#[test]
fn a_waiter_behind_a_foreign_node_is_linked_to_nobody() {
    let mut queue = queue_of(&[LOCK, LOCK]);
    assert_eq!(queue.record_predecessor(key(1), None), (Wait::Remote, vec![]));
    assert_eq!(release(&mut queue, key(0)).1, []);
    // Nor to a deleted node of this session.
    assert_eq!(queue.record_predecessor(key(1), Some(key(0))), (Wait::Remote, vec![]));
}

#[test]
fn a_number_that_is_given_twice_belongs_to_the_later_node() {
    let mut queue = queue_of(&[LOCK, LOCK]);
    let again = EntryKey { sequence: 0, node: NodeId(1) };
    let expected = vec![relist(0), relist(1)];
    assert_eq!(queue.register(again, LOCK), expected);
    assert_eq!(release(&mut queue, key(0)), (vec![], vec![]));
    assert_eq!(queue.node_at(0), Some(NodeId(1)));
}

#[test]
fn an_exchange_hands_off_with_its_payload_when_it_is_committed() {
    let mut queue = queue_of(&[LOCK, LOCK]);
    let release = queue.begin_exchange(key(0), Some(1));
    assert_eq!(release.checks, [key(1).node]);
    let granted = Effect::Grant { node: key(1).node, connection: 1, payload: Some("3 permits") };
    assert_eq!(queue.finish_release(release, Some(1), Some("3 permits")), [granted]);
    assert!(queue.was_released(0));
}

#[test]
fn an_exchange_grants_nobody_that_it_has_not_checked() {
    let mut queue = queue_of(&[LOCK]);
    let release = queue.begin_exchange(key(0), Some(1));
    let _ = queue.register(key(1), LOCK);
    let _ = queue.record_predecessor(key(1), Some(key(0)));
    assert_eq!(queue.finish_release(release, Some(1), Some("3 permits")), [relist(1)]);
}

#[test]
fn an_exchange_of_a_lost_hold_or_of_a_writer_hands_nothing_off() {
    let mut queue = queue_of(&[LOCK, LOCK]);
    let release = queue.begin_exchange(key(0), Some(1));
    assert_eq!(queue.abandon(key(0)), [relist(1)]);
    assert_eq!(queue.finish_release(release, Some(1), None), []);
    assert!(!queue.was_released(0));
    let mut queue = readers_behind_writer(1);
    let release = queue.begin_exchange(key(0), Some(1));
    assert_eq!(release.checks, []);
    assert_eq!(queue.finish_release(release, Some(1), None), [relist(1)]);
}

#[test]
fn a_node_whose_delete_may_be_in_flight_hands_nothing_off() {
    let mut queue = queue_of(&[LOCK, LOCK]);
    queue.mark_leaving(key(0));
    assert_eq!(release(&mut queue, key(0)), (vec![], vec![relist(1)]));
    let mut queue = queue_of(&[LOCK, LOCK]);
    let _ = queue.begin_exchange(key(0), Some(1));
    let again = queue.begin_exchange(key(0), Some(1));
    assert_eq!(queue.finish_release(again, Some(1), Some("3 permits")), [relist(1)]);
}

#[test]
fn behind_a_node_that_a_transaction_deletes_nothing_is_known() {
    let mut queue = queue_of(&[LOCK]);
    let release = queue.begin_exchange(key(0), Some(1));
    assert_eq!(judge(&mut queue, 1, LOCK), behind(0, false));
    queue.cancel_exchange(&release);
    assert_eq!(queue.abandon(key(1)), []);
    assert_eq!(judge(&mut queue, 1, LOCK), behind(0, true));
    let mut queue = queue_of(&[Read]);
    watch_directory(&mut queue, 1);
    let release = queue.begin_exchange(key(0), Some(1));
    assert_eq!(judge(&mut queue.clone(), 1, Read), Judgement::Unknown);
    queue.cancel_exchange(&release);
    assert_eq!(judge(&mut queue, 1, Read), HEAD);
}

#[test]
fn the_number_after_another_node_of_the_session_tells_the_predecessor() {
    let mut queue = queue_of(&[LOCK]);
    assert_eq!(judge(&mut queue, 1, LOCK), behind(0, true));
    assert_eq!(judge(&mut queue, 2, LOCK), behind(1, false));
    assert_eq!(judge(&mut queue, 4, LOCK), Judgement::Unknown, "3 may be a foreign node's");
    assert_eq!(release(&mut queue, key(0)).1, [grant(1)]);
}

#[test]
fn a_head_released_after_the_create_was_sent_tells_nothing() {
    let mut queue = queue_of(&[LOCK]);
    watch_directory(&mut queue, 1);
    let create = queue.send_create(LOCK, 1);
    let _ = release(&mut queue, key(0));
    let _ = queue.register(key(1), LOCK);
    assert_eq!(queue.judge_by_sequence(create, key(1), Some(1)).0, Judgement::Unknown);
}

#[test]
fn a_number_tells_only_over_the_connection_that_carried_the_create() {
    let mut queue = queue_of(&[LOCK]);
    watch_directory(&mut queue, 1);
    let _ = release(&mut queue, key(0));
    let create = queue.send_create(LOCK, 1);
    let _ = queue.register(key(1), LOCK);
    for (connection, expected) in [(Some(1), HEAD), (Some(2), Judgement::Unknown), (None, Judgement::Unknown)]
    {
        assert_eq!(queue.clone().judge_by_sequence(create, key(1), connection).0, expected);
    }
}

#[test]
fn a_head_released_before_the_create_was_sent_counts_only_in_a_watched_directory() {
    let mut queue = queue_of(&[LOCK]);
    let mut watched = queue.clone();
    watched.directory_watch_requested(1);
    let mut requested = watched.clone();
    watched.directory_watch_set();
    for (queue, expected) in [(&mut watched, HEAD), (&mut queue, Judgement::Unknown)] {
        let _ = release(queue, key(0));
        assert_eq!(judge(queue, 1, LOCK), expected);
    }
    let _ = release(&mut requested, key(0));
    requested.directory_watch_set();
    assert_eq!(judge(&mut requested, 1, LOCK), Judgement::Unknown, "the watch was set later");
}

#[test]
fn a_later_watch_does_not_cover_what_was_released_before() {
    let mut queue = queue_of(&[LOCK]);
    watch_directory(&mut queue, 1);
    let _ = release(&mut queue, key(0));
    queue.directory_watch_ended();
    assert!(!queue.has_directory_watch());
    watch_directory(&mut queue, 1);
    assert_eq!(judge(&mut queue, 1, LOCK), Judgement::Unknown);
}

#[test]
fn a_head_counts_only_over_the_connection_that_its_delete_and_the_watch_were_sent_over() {
    for (watched_on, released_on, expected) in
        [(2, 2, HEAD), (1, 2, Judgement::Unknown), (2, 1, Judgement::Unknown), (1, 1, Judgement::Unknown)]
    {
        let mut queue = queue_of(&[LOCK]);
        watch_directory(&mut queue, watched_on);
        let release = queue.begin_release(key(0), Some(released_on));
        let _ = queue.finish_release(release, Some(released_on), None);
        let create = queue.send_create(LOCK, 2);
        let _ = queue.register(key(1), LOCK);
        let judged = queue.judge_by_sequence(create, key(1), Some(2)).0;
        assert_eq!(judged, expected, "watched on {watched_on}, released on {released_on}");
    }
}

#[test]
fn a_list_that_is_older_than_the_hand_off_does_not_take_it_back() {
    let mut queue = queue_of(&[LOCK, LOCK, LOCK]);
    let _ = release(&mut queue, key(0));
    assert_eq!(queue.record_predecessor(key(1), None), (Wait::Local, vec![]));
    assert_eq!(release(&mut queue, key(1)).1, [grant(2)]);
}

#[test]
fn the_last_number_tells_nothing() {
    let mut queue = Queue::default();
    let last = |sequence| EntryKey { sequence, node: NodeId(7) };
    let _ = queue.register(last(i32::MAX - 1), LOCK);
    let create = queue.send_create(LOCK, 1);
    let _ = queue.register(last(i32::MAX), LOCK);
    assert_eq!(queue.judge_by_sequence(create, last(i32::MAX), Some(1)).0, Judgement::Unknown);
}

#[test]
fn a_new_node_waits_for_the_numbers_of_earlier_creates_only() {
    let mut queue = Queue::default();
    let [first, second, third] = [(); 3].map(|()| queue.send_create(LOCK, 1));
    let _ = queue.register(key(7), LOCK);
    assert_eq!(queue.mark_created(&second), []);
    assert!(queue.awaits_predecessor(&second, key(7)));
    let wake = Effect::JudgeBySequence { node: key(7).node };
    assert_eq!(queue.clone().register(key(6), LOCK), std::slice::from_ref(&wake), "its predecessor is known");
    assert_eq!(queue.mark_created(&third), [], "the first create may be the predecessor");
    assert_eq!(queue.forget_create(first), [wake], "a later one cannot be");
    assert!(!queue.awaits_predecessor(&second, key(7)));
    for create in [second, third] {
        let _ = queue.forget_create(create);
    }
    let _ = queue.abandon(key(7));
    assert!(queue.is_idle());
}

#[test]
fn a_list_shows_the_creates_that_were_sent_before_it_over_its_connection() {
    let mut queue = Queue::default();
    let before = queue.send_create(LOCK, 1);
    let (list, other) = (queue.send_list(1), queue.send_list(2));
    let after = queue.send_create(LOCK, 1);
    assert!(list.shows(&before) && !list.shows(&after));
    assert!(!other.shows(&before), "the create may be younger than what the other server shows");
}

#[test]
fn an_uncontended_contender_sends_the_create_alone_in_the_end() {
    let mut queue = Queue::default();
    for sequence in 0..3 {
        let create = queue.send_create(LOCK, 1);
        assert!(!create.prediction.skips_list() && create.prediction.may_grant_at_once());
        let _ = queue.register(key(sequence), LOCK);
        let effects = queue.judged_by_list(create, key(sequence), Some(1));
        queue.record_list(false);
        if effects.contains(&Effect::WatchDirectory { connection: 1 }) {
            assert_eq!(sequence, 2);
            watch_directory(&mut queue, 1);
        }
        queue.mark_held(key(sequence));
        let _ = release(&mut queue, key(sequence));
    }
    let create = queue.send_create(LOCK, 1);
    assert_eq!(create.prediction, Prediction::AfterOwn(2));
    let _ = queue.register(key(3), LOCK);
    let judged = queue.judge_by_sequence(create, key(3), Some(1)).0;
    assert_eq!(judged, Judgement::Head { payload: None, since_send: true });
}

#[test]
fn a_release_waits_only_for_a_successor_whose_create_was_sent_before() {
    let mut queue = queue_of(&[LOCK]);
    assert!(!queue.expects_successor(key(0), queue.last_order()), "nothing is in flight");
    let create = queue.send_create(LOCK, 1);
    let (order, later) = (queue.last_order(), queue.send_create(LOCK, 1));
    assert!(queue.expects_successor(key(0), order));
    let _ = queue.register(key(1), LOCK);
    assert!(queue.expects_successor(key(0), order), "its number is not judged yet");
    let _ = queue.judge_by_sequence(create, key(1), Some(1));
    assert!(!queue.expects_successor(key(0), order), "it waits for the head");
    let _ = queue.abandon(key(1));
    assert!(!queue.expects_successor(key(0), order), "the other create was sent later");
    let _ = queue.forget_create(later);
}
