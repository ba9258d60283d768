//! Each test checks one rule of sharing.

use std::time::Duration;

use super::decide::{SharingEffect, SharingForm, SharingState};
use crate::sharing::HandOffPolicy;

const START: Duration = Duration::from_secs(1);
const IDLE: Duration = Duration::from_secs(5);

type State = SharingState<&'static str, u8>;

/// A guard that holds a node of tenure 1. Returns its slot as well.
fn held(idle_time: Duration) -> (State, u64) {
    let policy = HandOffPolicy::default().max_handoffs(1).idle_time(idle_time);
    let mut state = SharingState::new(policy, SharingForm::One);
    let (slot, node) = state.take_slot().unwrap();
    assert_eq!((node, state.begin_tenure(slot)), (None, 1));
    assert_eq!(state.mark_held(slot, START), []);
    (state, slot)
}

#[test]
fn the_tasks_ahead_include_the_one_that_has_the_slot() {
    let (mut state, _) = held(Duration::ZERO);
    let [first, second, third] = [0, 1, 2].map(|wake| state.wait(wake, START).0);
    assert_eq!([first, second, third].map(|number| state.ahead(number)), [1, 2, 3]);
    assert!(state.cancel_wait(second));
    assert_eq!([first, third].map(|number| state.ahead(number)), [1, 2]);
}

#[test]
fn an_idle_node_is_deleted_as_soon_as_another_contender_waits() {
    let (mut state, slot) = held(IDLE);
    let effects = state.end_hold(slot, true, START, || Some("node"));
    assert_eq!(
        effects,
        [SharingEffect::WatchContenders { tenure: 1 }, SharingEffect::TimeIdle { tenure: 1 }]
    );
    assert_eq!(state.idle_until(1), Some(START + IDLE));
    assert_eq!(state.mark_contended(1, START), [SharingEffect::Delete("node")]);
    assert_eq!(state.idle_until(1), None);
    assert_eq!(state.take_slot().map(|(_, node)| node), Some(None));
}

#[test]
fn a_node_that_another_contender_waits_for_is_never_idle() {
    let (mut state, slot) = held(IDLE);
    assert_eq!(state.wait(7, START).1, [SharingEffect::WatchContenders { tenure: 1 }]);
    assert!(state.cancel_wait(1));
    assert_eq!(state.mark_contended(1, START), []);
    assert_eq!(state.end_hold(slot, true, START, || panic!("the node is released")), []);
}

#[test]
fn a_node_that_cannot_be_idle_and_that_no_task_waits_for_is_released_without_a_watch() {
    for (idle_time, has_clones) in [(Duration::ZERO, true), (IDLE, false)] {
        let (mut state, slot) = held(idle_time);
        let effects = state.end_hold(slot, has_clones, START, || panic!("the node is released"));
        assert_eq!(effects, [], "{idle_time:?}, {has_clones}");
    }
}

#[test]
fn an_idle_node_is_deleted_when_its_time_is_over_and_no_earlier() {
    let (mut state, slot) = held(IDLE);
    let _ = state.end_hold(slot, true, START, || Some("node"));
    assert_eq!(state.end_idle_time(1, START + IDLE - Duration::from_nanos(1)), []);
    assert_eq!(state.end_idle_time(2, START + IDLE), [], "of another node");
    assert_eq!(state.end_idle_time(1, START + IDLE), [SharingEffect::Delete("node")]);
}
