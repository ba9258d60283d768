//! Each test checks the edge of one rule of the queue.

use super::readers::readers_behind_writer;
use super::{HEAD, LOCK, Queue, behind, grant, judge, key, queue_of, release, relist, watch_directory};
use crate::local::decide::ContenderKind::{Read, Write};
use crate::local::decide::{Effect, EntryKey, Judgement, NodeId, Prediction, Wait};

/// A queue whose last three creates have followed each other. The last node holds.
fn queue_of_consecutive() -> Queue {
    let mut queue = queue_of(&[LOCK]);
    for sequence in 1..3 {
        assert_eq!(judge(&mut queue, sequence, LOCK), behind(sequence - 1, sequence == 1));
    }
    let _ = release(&mut queue, key(0));
    let _ = release(&mut queue, key(1));
    queue
}

#[test]
fn a_contender_waits_for_earlier_nodes_only() {
    for other in [1, 2] {
        let mut queue = queue_of(&[LOCK, LOCK, LOCK]);
        assert_eq!(queue.record_predecessor(key(1), Some(key(other))), (Wait::Remote, vec![]), "{other}");
    }
}

#[test]
fn a_session_that_ended_leaves_nothing_behind() {
    let mut queue = queue_of(&[LOCK, LOCK]);
    watch_directory(&mut queue, 1);
    let _create = queue.send_create(LOCK, 1);
    queue.end_session();
    assert_eq!(queue, Queue::default());
}

#[test]
fn a_withdrawn_grant_makes_a_waiter_of_the_contender_and_a_hold_stays() {
    let mut queue = queue_of(&[LOCK, LOCK, LOCK]);
    assert_eq!(release(&mut queue, key(0)).1, [grant(1)]);
    let mut held = queue.clone();
    queue.withdraw_grant(key(1));
    assert_eq!(release(&mut queue, key(1)), (vec![], vec![relist(2)]));
    held.mark_held(key(1));
    held.withdraw_grant(key(1));
    assert_eq!(release(&mut held, key(1)).1, [grant(2)]);
}

#[test]
fn a_payload_reaches_a_holder_that_its_number_grants() {
    let mut queue = queue_of(&[LOCK]);
    watch_directory(&mut queue, 1);
    let release = queue.begin_exchange(key(0), Some(1));
    assert_eq!(queue.finish_release(release, Some(1), Some("3 permits")), []);
    let expected = Judgement::Head { payload: Some("3 permits"), since_send: false };
    assert_eq!(judge(&mut queue, 1, LOCK), expected);
}

#[test]
fn the_last_16_released_heads_are_remembered() {
    let mut queue = Queue::default();
    for sequence in 0..17 {
        let _ = queue.register(key(sequence), LOCK);
        queue.mark_held(key(sequence));
        let _ = release(&mut queue, key(sequence));
    }
    assert!(!queue.was_released(0));
    assert!((1..17).all(|sequence| queue.was_released(sequence)));
}

#[test]
fn a_release_expects_a_successor_only_of_a_head_that_hands_off() {
    let mut queue = queue_of(&[LOCK, LOCK]);
    let _create = queue.send_create(LOCK, 1);
    assert!(!queue.expects_successor(key(1), queue.last_order()), "a waiter hands nothing off");
    let mut queue = queue_of(&[Read]);
    let _create = queue.send_create(Read, 1);
    assert!(!queue.expects_successor(key(0), queue.last_order()), "readers do not wait for a reader");
    let mut queue = queue_of(&[LOCK]);
    let _list = queue.send_list(1);
    let _create = queue.send_create(LOCK, 1);
    assert!(queue.expects_successor(key(0), queue.last_order()));
}

#[test]
fn a_contender_that_is_judged_is_not_woken_for_an_earlier_create() {
    let mut queue = Queue::default();
    let [first, second] = [(); 2].map(|()| queue.send_create(LOCK, 1));
    let _ = queue.register(key(7), LOCK);
    let _ = queue.mark_created(&second);
    assert!(queue.awaits_predecessor(&second, key(7)));
    let mut waiting = queue.clone();
    assert_eq!(queue.judge_by_sequence(second, key(7), Some(1)), (Judgement::Unknown, vec![]));
    assert_eq!(queue.register(key(6), LOCK), []);
    assert_eq!(queue.forget_create(first), []);
    // Another node of this number ends its own wait only.
    let wake = Effect::JudgeBySequence { node: key(7).node };
    waiting.forget_waiter(EntryKey { sequence: 7, node: NodeId(1) });
    assert_eq!(waiting.register(key(6), LOCK), [wake]);
}

#[test]
fn a_new_node_does_not_wait_for_its_own_create() {
    let mut queue = Queue::default();
    let create = queue.send_create(LOCK, 1);
    let _ = queue.register(key(7), LOCK);
    assert!(!queue.awaits_predecessor(&create, key(7)));
}

#[test]
fn a_list_knows_its_connection() {
    assert_eq!(Queue::default().send_list(3).connection(), 3);
}

#[test]
fn the_list_of_one_create_tells_what_the_next_one_is_likely_to_find() {
    let mut queue = queue_of(&[LOCK]);
    assert_eq!(judge(&mut queue, 5, LOCK), Judgement::Unknown);
    for (contended, expected) in [(true, Prediction::Contended), (false, Prediction::Unknown)] {
        queue.record_list(contended);
        assert_eq!(queue.clone().send_create(LOCK, 1).prediction, expected);
    }
}

#[test]
fn a_create_is_sent_alone_after_a_release_only_while_the_directory_is_watched() {
    let mut queue = queue_of_consecutive();
    watch_directory(&mut queue, 1);
    let _ = release(&mut queue, key(2));
    assert_eq!(queue.clone().send_create(LOCK, 1).prediction, Prediction::AfterOwn(2));
    queue.directory_watch_ended();
    assert_eq!(queue.send_create(LOCK, 1).prediction, Prediction::Unknown);
}

#[test]
fn a_watch_on_the_directory_is_requested_once_for_each_connection() {
    let watch = Effect::WatchDirectory { connection: 1 };
    for (requested, expected) in [(None, vec![watch.clone()]), (Some(2), vec![watch]), (Some(1), vec![])] {
        let mut queue = queue_of_consecutive();
        if let Some(connection) = requested {
            queue.directory_watch_requested(connection);
        }
        let _ = release(&mut queue, key(2));
        let create = queue.send_create(LOCK, 1);
        let _ = queue.register(key(3), LOCK);
        assert_eq!(queue.judge_by_sequence(create, key(3), Some(1)), (Judgement::Unknown, expected));
    }
}

#[test]
fn a_reader_was_the_head_no_earlier_than_the_reader_before_it() {
    let mut queue = readers_behind_writer(1);
    watch_directory(&mut queue, 1);
    let [second, third] = [(); 2].map(|()| queue.send_create(Read, 1));
    assert_eq!(release(&mut queue, key(0)).1, [grant(1)]);
    let _ = queue.register(key(2), Read);
    assert_eq!(queue.judge_by_sequence(second, key(2), Some(1)).0, HEAD);
    queue.mark_held(key(2));
    let _ = release(&mut queue, key(2));
    let _ = queue.register(key(3), Read);
    let judged = queue.judge_by_sequence(third, key(3), Some(1)).0;
    assert_eq!(judged, Judgement::Unknown, "the writer was ahead when its create was sent");
}

#[test]
fn a_reader_that_became_the_head_after_a_create_was_sent_and_left_tells_nothing() {
    let mut queue = queue_of(&[Write, Read]);
    watch_directory(&mut queue, 1);
    let create = queue.send_create(Read, 1);
    // An event showed that the writer is gone. No request was sent since the create.
    let _ = queue.abandon(key(0));
    queue.mark_held(key(1));
    let _ = release(&mut queue, key(1));
    let _ = queue.register(key(2), Read);
    assert_eq!(queue.judge_by_sequence(create, key(2), Some(1)).0, Judgement::Unknown);
}
