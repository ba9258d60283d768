use std::sync::Arc;

use super::server::Server;
use crate::view::bounds::{Exceeded, ViewBounds};
use crate::view::decide::Mirror;
use crate::view::follow::Follow;
use crate::view::followed::Followed;
use crate::view::tree_scope::TreeScope;
use crate::wire::Stat;

pub(super) fn mirror(bounds: ViewBounds) -> Mirror<u32> {
    mirror_of(None, bounds)
}

fn mirror_of(followed: impl Into<Followed>, bounds: ViewBounds) -> Mirror<u32> {
    let decode = |_: &str, data: &[u8], _: &Stat| match data {
        b"panic" => panic!("on purpose"),
        data => Ok(std::str::from_utf8(data)?.parse::<u32>()?),
    };
    let mut mirror = Mirror::new(followed, bounds, Arc::new(decode));
    mirror.restart();
    mirror
}

/// Answers every request at once. Returns how many there were.
pub(super) fn answer_all(mirror: &mut Mirror<u32>, server: &Server) -> usize {
    let mut requests = 0;
    while let Some(request) = mirror.next_request(|_| true) {
        let answer = server.read(&request);
        mirror.answer(request, answer);
        requests += 1;
    }
    requests
}

/// The number of nodes, and of those that changed.
fn sizes(mirror: &mut Mirror<u32>) -> (usize, usize) {
    (mirror.nodes().len(), mirror.take_changes().len())
}

#[test]
fn a_missing_root_is_created_deleted_and_created_again() {
    let (mut mirror, mut server) = (mirror(ViewBounds::default()), Server::default());
    assert_eq!(answer_all(&mut mirror, &server), 1);
    assert!(mirror.is_complete() && mirror.take_changes().is_empty());
    for _ in 0..2 {
        server.create("", b"1");
        mirror.hint("");
        answer_all(&mut mirror, &server);
        assert_eq!(sizes(&mut mirror), (1, 1));
        server.delete("");
        mirror.hint("");
        answer_all(&mut mirror, &server);
        assert_eq!(sizes(&mut mirror), (0, 1));
    }
}

#[test]
fn an_entry_that_cannot_be_decoded_keeps_its_bytes_and_harms_no_other() {
    let (mut mirror, mut server) = (mirror(ViewBounds::default()), Server::default());
    for (path, data) in [("", b"0".as_slice()), ("bad", b"x"), ("good", b"7"), ("worse", b"panic")] {
        assert!(server.create(path, data));
    }
    answer_all(&mut mirror, &server);
    assert!(mirror.is_complete());
    let node = |path| mirror.nodes().get(path).unwrap();
    assert_eq!(node("good").value().unwrap(), &7);
    assert_eq!(node("bad").data(), b"x");
    assert_eq!(node("bad").value().unwrap_err().path(), "bad");
    assert!(node("worse").value().unwrap_err().to_string().contains("panicked"));
}

#[test]
fn a_comparison_lists_only_where_children_changed() {
    let (mut mirror, mut server) = (mirror(ViewBounds::default()), Server::default());
    for path in ["", "a", "a/1", "a/2", "b", "b/1"] {
        assert!(server.create(path, b"1"));
    }
    // Each node once, and a list of the root and of both directories.
    assert_eq!(answer_all(&mut mirror, &server), 6 + 3);
    mirror.take_changes();
    mirror.restart();
    assert_eq!(answer_all(&mut mirror, &server), 6);
    assert!(mirror.is_complete() && mirror.take_changes().is_empty());
    server.create("b/2", b"1");
    mirror.restart();
    assert_eq!(answer_all(&mut mirror, &server), 7 + 1);
    assert_eq!(mirror.take_changes().len(), 1);
}

#[test]
fn the_names_of_siblings_do_not_hide_each_other() {
    let (mut mirror, mut server) = (mirror(ViewBounds::default()), Server::default());
    let all = ["", "a", "a!", "a-", "a/b", "a/b/c", "a0", "aa"];
    for path in all {
        assert!(server.create(path, b"1"));
    }
    answer_all(&mut mirror, &server);
    let children = |path| mirror.nodes().children_of(path).map(|(path, _)| &**path).collect::<Vec<_>>();
    assert_eq!(children(""), ["a", "a!", "a-", "a0", "aa"]);
    assert_eq!((children("a"), children("a/b"), children("aa")), (vec!["a/b"], vec!["a/b/c"], vec![]));
}

#[test]
fn a_bound_that_is_exceeded_is_reported() {
    let mut server = Server::default();
    for path in ["", "a", "b", "c"] {
        assert!(server.create(path, b"12345678"));
    }
    for (bounds, exceeded) in [
        (ViewBounds::default().nodes(3), Some(Exceeded::Nodes)),
        (ViewBounds::default().nodes(4), None),
        (ViewBounds::default().bytes(34), Some(Exceeded::Bytes)),
        (ViewBounds::default().bytes(35), None),
    ] {
        let mut mirror = mirror(bounds);
        answer_all(&mut mirror, &server);
        assert_eq!(mirror.exceeded(), exceeded, "{bounds:?}");
    }
}

#[test]
fn names_that_have_yet_to_be_read_count_to_the_bound() {
    let mut server = Server::default();
    assert!(server.create("", b"1"));
    for directory in 0..20 {
        assert!(server.create(&format!("{directory}"), b"1"));
        assert!((0..9).all(|child| server.create(&format!("{directory}/{child}"), b"1")));
    }
    let mut mirror = mirror(ViewBounds::default().nodes(25).events(1));
    let mut most = 0;
    while let (None, Some(request)) = (mirror.exceeded(), mirror.next_request(|_| true)) {
        let answer = server.read(&request);
        mirror.answer(request, answer);
        most = most.max(mirror.kept().0);
    }
    assert_eq!((mirror.exceeded(), mirror.nodes().len()), (Some(Exceeded::Nodes), 21));
    assert!(most <= 25 + 1 + 1, "{most} nodes to read");
}

#[test]
fn a_view_that_is_too_large_forgets_what_came_and_went() {
    let mut server = Server::default();
    assert!(server.create("", b"1"));
    let mut mirror = mirror(ViewBounds::default().nodes(3));
    for round in 0..10 {
        let names = [0, 1, 2].map(|name| format!("{round}-{name}"));
        assert!(names.iter().take(2).all(|name| server.create(name, b"1")));
        answer_all(&mut mirror, &server);
        assert_eq!(mirror.nodes().len(), 3);
        // One more is too many.
        assert!(server.create(&names[2], b"1"));
        mirror.hint(&names[2]);
        answer_all(&mut mirror, &server);
        assert!(mirror.exceeded().is_some());
        mirror.clear();
        assert!(names.iter().all(|name| server.delete(name)));
        mirror.restart();
    }
    answer_all(&mut mirror, &server);
    assert_eq!(mirror.kept().1, 1, "the root");
    assert_eq!(sizes(&mut mirror), (1, 1));
}

#[test]
fn nothing_old_is_below_a_node_that_was_created_anew() {
    let (mut server, mut mirror) = (Server::default(), mirror(ViewBounds::default()));
    for path in ["", "a", "a/x"] {
        assert!(server.create(path, b"1"));
    }
    answer_all(&mut mirror, &server);
    assert!(mirror.nodes().contains("a/x"));
    assert!(server.delete("a/x") && server.delete("a"));
    assert!(server.create("a", b"2") && server.create("a/x", b"2"));
    // The events of the child have not arrived.
    mirror.hint("a");
    let request = mirror.next_request(|_| true).unwrap();
    let answer = server.read(&request);
    mirror.answer(request, answer);
    assert!(!mirror.nodes().contains("a/x"), "a child of the earlier node");
    answer_all(&mut mirror, &server);
    assert!(mirror.nodes().contains("a/x"));
}

#[test]
fn a_node_of_a_tree_that_was_created_anew_is_reported_once() {
    let created = ["", "a", "a/x", "a/x/1"];
    // What is below is read first; once in the order of the events, and once a parent late.
    for read in [["a/x/1", "a/x", "a", ""], ["a/x/1", "a", "a/x", ""]] {
        let (mut server, mut mirror) = (Server::default(), mirror(ViewBounds::default()));
        assert!(created.iter().all(|path| server.create(path, b"1")));
        answer_all(&mut mirror, &server);
        mirror.take_changes();
        assert!(created.iter().rev().all(|path| server.delete(path)));
        assert!(created.iter().all(|path| server.create(path, b"2")));
        for path in read {
            mirror.hint(path);
        }
        let mut reported = Vec::new();
        while let Some(request) = mirror.next_request(|_| true) {
            let answer = server.read(&request);
            mirror.answer(request, answer);
            reported.extend(mirror.take_changes());
        }
        let reported: Vec<_> = reported
            .iter()
            .map(|(path, _, now)| (&**path, now.as_ref().map(|now| now.stat().czxid)))
            .collect();
        let once: Vec<_> =
            read.iter().map(|path| (*path, server.stat(path).map(|stat| stat.czxid))).collect();
        assert_eq!(reported, once);
    }
}

/// As servers do that name the watched node in each event.
#[test]
fn an_event_that_names_an_unchanged_root_may_be_of_any_node() {
    let (mut mirror, mut server) = (mirror(ViewBounds::default()), Server::default());
    for path in ["", "a", "a/b", "a/b/c", "d"] {
        assert!(server.create(path, b"1"));
    }
    answer_all(&mut mirror, &server);
    sizes(&mut mirror);
    server.set("a/b", b"2");
    mirror.hint("");
    answer_all(&mut mirror, &server);
    assert_eq!(sizes(&mut mirror), (5, 1));
    server.delete("a/b/c");
    server.create("d/e", b"3");
    mirror.hint("");
    answer_all(&mut mirror, &server);
    assert_eq!(sizes(&mut mirror), (5, 2));
    // The root itself has changed, and nothing else.
    server.set("", b"2");
    mirror.hint("");
    assert!(answer_all(&mut mirror, &server) <= 2);
    assert_eq!(sizes(&mut mirror), (5, 1));
}

/// The paths that a mirror of `scope` has, and the requests that it needed.
fn followed(scope: &TreeScope, server: &Server) -> (Mirror<u32>, Vec<String>, usize) {
    let mut mirror = mirror_of(scope.followed(), ViewBounds::default());
    let requests = answer_all(&mut mirror, server);
    let paths = mirror.nodes().iter().map(|(path, _)| path.to_owned()).collect();
    (mirror, paths, requests)
}

fn tree() -> Server {
    let mut server = Server::default();
    for path in ["", "a", "a/b", "a/b/c", "logs", "logs/1", "logs/1/x"] {
        assert!(server.create(path, b"1"));
    }
    server
}

#[test]
fn what_a_scope_leaves_out_is_neither_read_nor_listed() {
    let (server, whole) = (tree(), TreeScope::default());
    assert_eq!(followed(&whole, &server).2, 12, "7 reads and 5 lists");
    let no_logs = whole.clone().with_filter(|path| path != "logs");
    for (scope, paths, requests) in [
        (whole.clone().with_max_depth(0), vec![""], 1),
        (whole.clone().with_max_depth(1), vec!["", "a", "logs"], 4),
        (no_logs.clone(), vec!["", "a", "a/b", "a/b/c"], 7),
        (no_logs.with_max_depth(2), vec!["", "a", "a/b"], 5),
        (whole.clone().with_filter(|_| Follow::Node), vec!["", "a", "logs"], 4),
        (whole.clone().with_filter(|_| Follow::Nothing), vec![""], 2),
        (whole.clone().with_filter(|path| path != "a/b"), vec!["", "a", "logs", "logs/1", "logs/1/x"], 9),
    ] {
        let (_, found, sent) = followed(&scope, &server);
        assert_eq!((found, sent), (paths.into_iter().map(str::to_owned).collect(), requests), "{scope:?}");
    }
    let panics = whole.with_filter(|path| -> bool { panic!("on purpose: {path}") });
    assert_eq!(followed(&panics, &server).1.len(), 7, "a filter that panics leaves nothing out");
}

#[test]
fn events_of_nodes_that_are_left_out_cause_no_read() {
    let mut server = tree();
    let scope = TreeScope::default().with_max_depth(2).with_filter(|path| match path {
        "logs" => Follow::Nothing,
        "a/b" => Follow::Node,
        _ => Follow::Tree,
    });
    let (mut mirror, ..) = followed(&scope, &server);
    server.create("logs/2", b"1");
    for path in ["logs", "logs/1", "logs/2", "logs/1/x", "a/b/c", "a/b/c/d"] {
        mirror.hint(path);
    }
    assert!(mirror.is_idle() && mirror.next_request(|_| true).is_none());
    server.set("a/b", b"2");
    mirror.hint("a/b");
    assert_eq!(answer_all(&mut mirror, &server), 1);
    server.create("a/new", b"2");
    mirror.hint("a/new");
    assert_eq!(answer_all(&mut mirror, &server), 1);
    assert_eq!(mirror.nodes().len(), 4);
}
