//! Each test checks one rule of readers and writers.

use super::{HEAD, LOCK, Queue, behind, grant, judge, key, queue_of, release, relist, watch_directory};
use crate::local::decide::ContenderKind::{Read, Write};
use crate::local::decide::{CreateInFlight, Judgement};

/// A writer that holds, and this many readers that wait for it.
pub(super) fn readers_behind_writer(readers: i32) -> Queue {
    let mut queue = queue_of(&[Write]);
    for sequence in 1..=readers {
        let _ = queue.register(key(sequence), Read);
        let _ = queue.record_predecessor(key(sequence), Some(key(0)));
    }
    queue
}

#[test]
fn a_writer_waits_for_its_session_first() {
    let mut queue = queue_of(&[Read]);
    let _ = queue.register(key(1), Read);
    let _ = queue.register(key(3), Write);
    assert_eq!(queue.own_before_writer(key(3)), Some(key(1)));
    let _ = queue.abandon(key(1));
    assert_eq!(queue.own_before_writer(key(3)), Some(key(0)));
    let _ = queue.abandon(key(0));
    assert_eq!(queue.own_before_writer(key(3)), None);
}

#[test]
fn a_writer_is_never_granted_by_a_hand_off() {
    for head in [Read, Write] {
        let mut queue = queue_of(&[head, Write]);
        assert_eq!(release(&mut queue, key(0)), (vec![], vec![relist(1)]));
    }
}

#[test]
fn a_writer_hands_off_to_32_readers_and_the_others_list() {
    let mut queue = readers_behind_writer(40);
    let (checks, effects) = release(&mut queue, key(0));
    assert_eq!(checks.len(), 32);
    let expected: Vec<_> = (1..=32).map(grant).chain((33..=40).map(relist)).collect();
    assert_eq!(effects, expected);
}

#[test]
fn a_writer_is_never_the_head_by_its_number() {
    for head in [Read, Write] {
        let mut queue = queue_of(&[head]);
        watch_directory(&mut queue, 1);
        let _ = release(&mut queue, key(0));
        assert_eq!(judge(&mut queue, 1, Write), Judgement::Unknown);
    }
}

#[test]
fn a_reader_behind_a_reader_waits_for_the_same_writer() {
    let mut queue = readers_behind_writer(1);
    assert_eq!(judge(&mut queue, 2, Read), Judgement::Unknown, "the directory is not watched");
    let mut queue = readers_behind_writer(1);
    watch_directory(&mut queue, 1);
    assert_eq!(judge(&mut queue, 2, Read), behind(0, true));
    assert_eq!(release(&mut queue, key(0)).1, [grant(1), grant(2)]);
    assert_eq!(judge(&mut queue, 3, Read), HEAD, "the reader before it has no predecessor");
}

#[test]
fn a_reader_follows_a_reader_that_was_the_head_before_the_create_and_left_after_it() {
    /// The reader with this number is released between the create of the next reader and its reply.
    fn judge_after(queue: &mut Queue, create: CreateInFlight, sequence: i32) -> Judgement<&'static str> {
        let _ = release(queue, key(sequence));
        let _ = queue.register(key(sequence + 1), Read);
        queue.judge_by_sequence(create, key(sequence + 1), Some(1)).0
    }

    let mut queue = queue_of(&[Read]);
    watch_directory(&mut queue, 1);
    let create = queue.send_create(Read, 1);
    assert_eq!(judge_after(&mut queue, create, 0), HEAD);

    let mut queue = queue_of(&[Read]);
    let _list = queue.send_list(1);
    let create = queue.send_create(Read, 1);
    watch_directory(&mut queue, 1);
    assert_eq!(judge_after(&mut queue, create, 0), Judgement::Unknown, "the watch was requested later");

    let mut queue = readers_behind_writer(1);
    watch_directory(&mut queue, 1);
    let create = queue.send_create(Read, 1);
    assert_eq!(release(&mut queue, key(0)).1, [grant(1)]);
    assert_eq!(judge_after(&mut queue, create, 1), Judgement::Unknown, "the writer was ahead of both");

    let mut queue = queue_of(&[Write]);
    watch_directory(&mut queue, 1);
    let create = queue.send_create(Read, 1);
    assert_eq!(judge_after(&mut queue, create, 0), Judgement::Unknown, "the writer was ahead");
}

#[test]
fn a_released_reader_tells_a_mutex_nothing() {
    let mut queue = queue_of(&[Read]);
    watch_directory(&mut queue, 1);
    let _ = release(&mut queue, key(0));
    assert_eq!(judge(&mut queue, 1, LOCK), Judgement::Unknown);
}
