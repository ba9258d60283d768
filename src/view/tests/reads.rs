//! Which nodes are read after an event, and which are not.

use super::server::Server;
use super::tables::{answer_all, mirror};
use crate::view::bounds::{Exceeded, ViewBounds};
use crate::view::decide::{Answer, Mirror, ReadRequest};

/// A mirror of the nodes, which have the data `1`.
fn loaded(paths: &[&str], bounds: ViewBounds) -> (Mirror<u32>, Server) {
    let (mut mirror, mut server) = (mirror(bounds), Server::default());
    for path in paths {
        assert!(server.create(path, b"1"));
    }
    answer_all(&mut mirror, &server);
    assert!(mirror.is_complete());
    mirror.take_changes();
    (mirror, server)
}

#[test]
fn events_beyond_the_bound_are_forgotten_until_all_nodes_are_compared() {
    let bounds = ViewBounds::default().events(2);
    let (mut mirror, mut server) = loaded(&["", "a", "b", "c", "d", "e"], bounds);
    for path in ["a", "b", "c"] {
        server.set(path, b"2");
        mirror.hint(path);
    }
    assert_eq!(mirror.kept().0, 2, "nodes to read");
    let first = mirror.next_request(|_| true).unwrap();
    // No comparison begins while an event before it is read.
    assert_eq!(mirror.kept().0, 2);
    let answer = server.read(&first);
    mirror.answer(first, answer);
    server.set("d", b"2");
    mirror.hint("d");
    assert_eq!(mirror.kept().0, 1, "an event beside those that were forgotten");
    answer_all(&mut mirror, &server);
    assert!(mirror.is_complete());
    assert_eq!(mirror.take_changes().len(), 4);
}

#[test]
fn a_node_that_was_away_for_a_moment_is_no_change() {
    let (mut mirror, server) = loaded(&["", "a"], ViewBounds::default());
    mirror.hint("a");
    let request = mirror.next_request(|_| true).unwrap();
    mirror.answer(request, Answer::Missing);
    mirror.hint("a");
    answer_all(&mut mirror, &server);
    assert!(mirror.nodes().contains("a"));
    assert!(mirror.take_changes().is_empty());
}

/// The list was read before its node was deleted.
#[test]
fn the_children_of_a_node_that_is_gone_are_not_read() {
    let (mut mirror, mut server) = loaded(&["", "a"], ViewBounds::default());
    server.create("a/1", b"1");
    mirror.hint("a");
    let data = mirror.next_request(|_| true).unwrap();
    let answer = server.read(&data);
    mirror.answer(data, answer);
    let names = mirror.next_request(|_| true).unwrap();
    assert_eq!(names, ReadRequest::Names("a".into()));
    let late = server.read(&names);
    server.delete("a/1");
    server.delete("a");
    mirror.hint("");
    let root = mirror.next_request(|_| true).unwrap();
    let answer = server.read(&root);
    mirror.answer(root, answer);
    answer_all(&mut mirror, &server);
    assert!(!mirror.nodes().contains("a"));
    mirror.answer(names, late);
    // The event of the node that was deleted came meanwhile, or comes now.
    assert_eq!(mirror.next_request(|_| true), None);
}

#[test]
fn the_stat_of_a_large_node_is_read_before_its_data() {
    let (mut mirror, mut server) = loaded(&["", "small"], ViewBounds::default());
    server.create("large", &[b'1'; 5_000]);
    mirror.hint("large");
    answer_all(&mut mirror, &server);
    for (path, request) in
        [("small", ReadRequest::Data("small".into())), ("large", ReadRequest::Stat("large".into()))]
    {
        mirror.hint(path);
        assert_eq!(mirror.next_request(|_| true), Some(request.clone()));
        let answer = server.read(&request);
        mirror.answer(request, answer);
        assert_eq!(mirror.next_request(|_| true), None, "it has not changed");
    }
}

#[test]
fn an_event_of_a_node_reads_that_node_alone() {
    let (mut mirror, mut server) = loaded(&["", "a", "a/1", "a/2"], ViewBounds::default());
    mirror.hint("a");
    assert_eq!(answer_all(&mut mirror, &server), 1, "it is as it was");
    server.set("a", b"2");
    mirror.hint("a");
    assert_eq!(answer_all(&mut mirror, &server), 1, "its children are the same");
    assert_eq!(mirror.take_changes().len(), 1);
}

#[test]
fn a_list_of_more_children_than_the_bound_is_the_last_read() {
    let (mut mirror, mut server) = (mirror(ViewBounds::default().nodes(3)), Server::default());
    for path in ["", "a", "b", "c", "d"] {
        assert!(server.create(path, b"1"));
    }
    assert_eq!(answer_all(&mut mirror, &server), 2, "the root and its list");
    assert_eq!(mirror.exceeded(), Some(Exceeded::Nodes));
}
