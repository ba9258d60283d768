//! The budget for the ephemeral nodes of a session.

use uuid::Uuid;

use super::node_bytes::{NodeBytes, NodeCharge};
use crate::znode::name::{CreateId, Label};
use crate::znode::path::ZnodePath;

/// The bytes of one node at a path of this length.
const MEMBER: usize = "/members/a".len() + 4;

fn directory() -> ZnodePath {
    "/locks/7".parse().unwrap()
}

fn contender(number: u128) -> (CreateId, String) {
    let create_id = CreateId::new(Uuid::from_u128(number));
    (create_id, directory().listed_child(&create_id.name(Label::LOCK)))
}

fn charge(nodes: &NodeBytes, path: &str, is_sequential: bool) -> Option<NodeCharge> {
    nodes.charge([(path, is_sequential)], [])?.pop()
}

#[test]
fn a_create_beyond_the_budget_is_refused_and_has_room_after_a_delete() {
    let nodes = NodeBytes::new(2 * MEMBER);
    charge(&nodes, "/members/a", false).unwrap().created("/members/a");
    charge(&nodes, "/members/b", false).unwrap().created("/members/b");
    assert!(charge(&nodes, "/members/c", false).is_none());
    assert_eq!(nodes.used(), 2 * MEMBER, "a refused create is not charged");
    nodes.deleted("/members/a", nodes.last_create());
    assert!(charge(&nodes, "/members/c", false).is_some());
}

#[test]
fn a_sequential_node_counts_with_its_number() {
    let (_, path) = contender(1);
    let bytes = path.len() + 10 + 4;
    assert!(charge(&NodeBytes::new(bytes - 1), &path, true).is_none());
    let nodes = NodeBytes::new(bytes);
    charge(&nodes, &path, true).unwrap().created(&format!("{path}0000000007"));
    assert_eq!((nodes.used(), nodes.paths()), (bytes, vec![format!("{path}0000000007")]));
    nodes.deleted(&format!("{path}0000000007"), nodes.last_create());
    assert_eq!(nodes.used(), 0);
}

#[test]
fn a_create_that_the_server_refuses_is_given_back() {
    let nodes = NodeBytes::new(1_000);
    charge(&nodes, &contender(1).1, true).unwrap().refused();
    charge(&nodes, "/members/a", false).unwrap().refused();
    assert_eq!(nodes.used(), 0);
}

#[test]
fn a_create_without_an_answer_counts_until_its_node_is_deleted_or_cannot_exist() {
    let nodes = NodeBytes::new(1_000);
    let (create_id, path) = contender(1);
    let bytes = path.len() + 10 + 4;
    drop(charge(&nodes, &path, true));
    assert_eq!(nodes.used(), bytes);
    // The search finds another node, and then this one.
    nodes.deleted(&format!("{}0000000008", contender(2).1), nodes.last_create());
    assert_eq!(nodes.used(), bytes);
    nodes.deleted(&format!("{path}0000000007"), nodes.last_create());
    assert_eq!(nodes.used(), 0);
    drop(charge(&nodes, &path, true));
    nodes.create_left_nothing(&directory(), contender(2).0);
    assert_eq!(nodes.used(), bytes);
    nodes.create_left_nothing(&directory(), create_id);
    assert_eq!(nodes.used(), 0);
    drop(charge(&nodes, "/members/a", false));
    assert_eq!(nodes.used(), MEMBER);
    nodes.deleted("/members/a", nodes.last_create());
    assert_eq!(nodes.used(), 0);
}

#[test]
fn a_node_that_was_found_counts_until_it_is_deleted_and_its_lost_tries_do_not() {
    let nodes = NodeBytes::new(1_000);
    let (create_id, path) = contender(1);
    let made = format!("{path}0000000007");
    drop(charge(&nodes, &path, true));
    drop(charge(&nodes, &path, true));
    nodes.found(&made);
    nodes.forget_create(&directory(), create_id);
    assert_eq!((nodes.used(), nodes.paths()), (made.len() + 4, vec![made.clone()]));
    nodes.found(&made);
    nodes.forget(&made);
    assert_eq!(nodes.used(), 0);
}

#[test]
fn tries_to_create_one_path_count_once() {
    let nodes = NodeBytes::new(MEMBER);
    let first = charge(&nodes, "/members/a", false).unwrap();
    let second = charge(&nodes, "/members/a", false).unwrap();
    drop(first);
    second.refused();
    assert_eq!(nodes.used(), MEMBER, "the first one may have made the node");
}

#[test]
fn a_delete_gives_back_only_what_was_created_before_it() {
    let nodes = NodeBytes::new(MEMBER);
    let first = charge(&nodes, "/members/a", false).unwrap();
    let deleted_at = nodes.last_create();
    // Sent behind the delete, and answered before the answer to the delete is looked at.
    let second = charge(&nodes, "/members/a", false).unwrap();
    first.created("/members/a");
    second.created("/members/a");
    nodes.deleted("/members/a", deleted_at);
    assert_eq!(nodes.used(), MEMBER);
    // The other way round: the delete came after the create whose answer is looked at last.
    nodes.deleted("/members/a", nodes.last_create());
    let late = charge(&nodes, "/members/a", false).unwrap();
    nodes.deleted("/members/a", nodes.last_create());
    late.created("/members/a");
    assert_eq!(nodes.used(), 0);
}

#[test]
fn a_transaction_that_replaces_a_node_needs_no_room_for_both() {
    let nodes = NodeBytes::new(MEMBER);
    charge(&nodes, "/members/a", false).unwrap().created("/members/a");
    assert!(nodes.charge([("/members/b", false)], []).is_none());
    let replaced = nodes.charge([("/members/b", false)], ["/members/a"]);
    assert!(replaced.is_some());
    assert!(nodes.charge([("/members/c", false), ("/members/d", false)], ["/members/a"]).is_none());
}

/// A registration replaces the node of an earlier session at its path.
#[test]
fn a_transaction_that_replaces_a_node_of_another_session_needs_room() {
    let nodes = NodeBytes::new(MEMBER);
    charge(&nodes, "/members/a", false).unwrap().created("/members/a");
    assert!(nodes.charge([("/members/b", false)], ["/members/b"]).is_none());
    assert_eq!(nodes.used(), MEMBER);
    nodes.deleted("/members/a", nodes.last_create());
    assert!(nodes.charge([("/members/b", false)], ["/members/b"]).is_some());
}

#[test]
fn after_the_end_of_the_session_nothing_counts() {
    let nodes = NodeBytes::new(MEMBER);
    let open = charge(&nodes, "/members/a", false).unwrap();
    nodes.end();
    open.created("/members/a");
    assert!(charge(&nodes, "/members/b", false).is_none());
    assert!(nodes.charge([("/members/b", false)], []).is_some(), "the wire answers, not the budget");
    assert_eq!((nodes.used(), nodes.paths()), (0, vec![]));
}
