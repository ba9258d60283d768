//! The steps of the engine, one by one.

use super::super::decide::{Item, Listen, ShareEngine, ShareEvent, ShareStep, Shared};
use super::super::hash::Hashed;
use super::super::item::ReleaseReason;

fn item(name: &str) -> Item {
    name.into()
}

/// The members and the items that are seen.
fn shared(members: &[&str], items: &[&str], is_member: bool) -> ShareEvent {
    let hashed = |names: &[&str]| names.iter().map(|name| Hashed::new(item(name))).collect();
    ShareEvent::Shared(Shared { members: hashed(members), items: hashed(items), is_member })
}

fn engine() -> ShareEngine {
    ShareEngine::new("a".into())
}

/// A member `a` that holds the item `x`, alone.
fn holding() -> ShareEngine {
    let mut engine = engine();
    assert_eq!(engine.handle(shared(&["a"], &["x"], true)), [ShareStep::Contend(item("x"))]);
    let offered = engine.handle(ShareEvent::Granted(item("x")));
    assert_eq!(offered, [ShareStep::Offer(item("x")), ShareStep::Listen(item("x"), Listen::Request)]);
    engine
}

/// A member to which `x` belongs, beside `a`.
const OTHER: &str = "b4";

#[test]
fn the_other_member_of_these_tests_has_the_item() {
    assert_eq!(super::super::Partition::owner_among("x", ["a", OTHER]), Some(OTHER));
    assert_eq!(super::super::Partition::owner_among("y", ["a", OTHER]), Some("a"));
}

#[test]
fn a_process_that_is_no_member_takes_nothing() {
    // Another process is the member of this id.
    assert_eq!(engine().handle(shared(&["a"], &["x"], false)), []);
    assert_eq!(engine().handle(shared(&[], &["x"], false)), []);
}

#[test]
fn an_item_moves_only_when_another_member_waits_for_it() {
    let mut engine = holding();
    let moved = engine.handle(shared(&["a", OTHER], &["x"], true));
    assert_eq!(moved, [ShareStep::Listen(item("x"), Listen::Contender)]);
    // It is not asked for twice.
    assert_eq!(engine.handle(shared(&["a", OTHER], &["x", "z"], true)).len(), usize::from(owns("z")));
    let wanted = engine.handle(ShareEvent::Wanted(item("x")));
    assert_eq!(wanted, [ShareStep::Request(item("x"), ReleaseReason::Moved)]);
    assert_eq!(engine.handle(ShareEvent::Wanted(item("x"))), []);
    assert_eq!(engine.handle(ShareEvent::Ended(item("x"))), []);
}

fn owns(name: &str) -> bool {
    super::super::Partition::owner_among(name, ["a", OTHER]) == Some("a")
}

#[test]
fn an_item_that_is_back_before_it_was_asked_for_stays() {
    let mut engine = holding();
    engine.handle(shared(&["a", OTHER], &["x"], true));
    let back = engine.handle(shared(&["a"], &["x"], true));
    assert_eq!(back, [ShareStep::Listen(item("x"), Listen::Request)]);
    // The request of the other member is still in the node.
    let asked = engine.handle(ShareEvent::Wanted(item("x")));
    assert_eq!(asked, [ShareStep::Listen(item("x"), Listen::Nothing), ShareStep::Refresh]);
}

#[test]
fn a_request_by_a_member_that_knows_more_is_granted_after_another_look() {
    let mut engine = holding();
    let asked = engine.handle(ShareEvent::Wanted(item("x")));
    assert_eq!(asked, [ShareStep::Listen(item("x"), Listen::Nothing), ShareStep::Refresh]);
    let seen = engine.handle(shared(&["a", OTHER], &["x"], true));
    assert_eq!(seen, [ShareStep::Listen(item("x"), Listen::Contender)]);
    let wanted = engine.handle(ShareEvent::Wanted(item("x")));
    assert_eq!(wanted, [ShareStep::Request(item("x"), ReleaseReason::Moved)]);
}

#[test]
fn an_item_that_was_given_up_and_is_back_is_acquired_again() {
    let mut engine = holding();
    engine.handle(shared(&["a", OTHER], &["x"], true));
    engine.handle(ShareEvent::Wanted(item("x")));
    // While the application has the guard, it does not get another one.
    assert_eq!(engine.handle(shared(&["a"], &["x"], true)), []);
    assert_eq!(engine.handle(ShareEvent::Ended(item("x"))), [ShareStep::Contend(item("x"))]);
}

#[test]
fn an_item_whose_guard_is_dropped_is_acquired_again() {
    let mut engine = holding();
    assert_eq!(engine.handle(ShareEvent::Ended(item("x"))), [ShareStep::Contend(item("x"))]);
}

#[test]
fn a_waiter_leaves_the_queue_of_an_item_that_is_not_its_own() {
    let mut engine = engine();
    engine.handle(shared(&["a"], &["x"], true));
    assert_eq!(engine.handle(shared(&["a", OTHER], &["x"], true)), [ShareStep::Withdraw(item("x"))]);
    // A grant that was on its way.
    assert_eq!(engine.handle(ShareEvent::Granted(item("x"))), [ShareStep::Return(item("x"))]);
}

#[test]
fn a_removed_item_is_given_up_at_once() {
    let mut engine = holding();
    let removed = engine.handle(shared(&["a"], &[], true));
    assert_eq!(removed, [ShareStep::Request(item("x"), ReleaseReason::Removed)]);
    let mut waiting = self::engine();
    waiting.handle(shared(&["a"], &["x"], true));
    assert_eq!(waiting.handle(shared(&["a"], &[], true)), [ShareStep::Withdraw(item("x"))]);
}

#[test]
fn a_member_that_loses_its_registration_keeps_what_nobody_asks_for() {
    let mut engine = holding();
    let unregistered = engine.handle(shared(&[], &["x"], false));
    assert_eq!(unregistered, [ShareStep::Listen(item("x"), Listen::Contender)]);
    assert_eq!(engine.handle(shared(&["a"], &["x"], true)), [ShareStep::Listen(item("x"), Listen::Request)]);
}

#[test]
fn a_member_that_leaves_hands_over_to_the_others() {
    let mut engine = holding();
    engine.handle(shared(&["a", OTHER], &["x", "y"], true));
    engine.handle(ShareEvent::Granted(item("y")));
    assert_eq!(engine.handle(ShareEvent::Leave), [ShareStep::Listen(item("y"), Listen::Contender)]);
    let wanted = engine.handle(ShareEvent::Wanted(item("x")));
    assert_eq!(wanted, [ShareStep::Request(item("x"), ReleaseReason::Left)]);
    assert_eq!(engine.handle(ShareEvent::Ended(item("x"))), []);
    assert!(!engine.is_idle());
    // The others have left meanwhile.
    let alone = engine.handle(shared(&["a"], &["x", "y"], false));
    assert_eq!(alone, [ShareStep::Request(item("y"), ReleaseReason::Left)]);
    engine.handle(ShareEvent::Ended(item("y")));
    assert!(engine.is_idle());
}

#[test]
fn a_member_that_leaves_alone_gives_up_all_at_once() {
    let mut engine = holding();
    assert_eq!(engine.handle(ShareEvent::Leave), [ShareStep::Request(item("x"), ReleaseReason::Left)]);
}

#[test]
fn a_member_that_ends_gives_up_all_without_waiting() {
    let mut engine = holding();
    engine.handle(shared(&["a"], &["w", "x"], true));
    let ended = engine.handle(ShareEvent::Hurry);
    assert_eq!(ended, [ShareStep::Withdraw(item("w")), ShareStep::Request(item("x"), ReleaseReason::Left)]);
    assert_eq!(engine.handle(ShareEvent::Ended(item("x"))), []);
}
