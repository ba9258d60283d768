//! Every fault switch does what it says, and can be waited for.

use std::time::Duration;

use lockkeeper_testserver::fault::Subject;
use lockkeeper_testserver::tree::EventKind;
use lockkeeper_testserver::{ErrorCode, Fault, Op, TestServer, When};
use tokio::time::timeout;

use crate::raw::{Body, Conn, op};

pub(crate) const T: i32 = 10_000;

pub(crate) async fn server() -> (TestServer, String) {
    let server = TestServer::start().await.unwrap();
    let address = server.connect_string();
    (server, address)
}

pub(crate) fn has(server: &TestServer, path: &str) -> bool {
    server.inspect(|machine| machine.tree().node(path).is_some())
}

#[tokio::test]
async fn connection_dropped_before_a_request_leaves_it_unapplied() {
    let (server, address) = server().await;
    let mut client = Conn::new(&address, T).await;
    let fault = server.fault(When::create().path("/lost*"), Fault::DropConnectionBefore);
    client.ok(op::CREATE, &Body::create("/kept", 0)).await;
    assert_eq!(fault.hits(), 0);
    client.send(op::CREATE, &Body::create("/lost", 0)).await.unwrap();
    fault.hit().await;
    client.closed().await;
    assert!(has(&server, "/kept"));
    assert!(!has(&server, "/lost"));
    assert_eq!(server.sessions(), [client.session]);
}

#[tokio::test]
async fn connection_dropped_after_a_request_leaves_it_applied_and_unanswered() {
    let (server, address) = server().await;
    let mut client = Conn::new(&address, T).await;
    let fault = server.fault(When::create(), Fault::DropConnectionAfter);
    client.send(op::EXISTS, &Body::watch("/made", true)).await.unwrap();
    client.send(op::CREATE, &Body::create("/made", 1)).await.unwrap();
    fault.hit().await;
    assert!(has(&server, "/made"));
    let reply = client.reply().await.unwrap();
    assert_eq!(reply.err, -101, "the reply before the lost one still arrives");
    client.closed().await;
    assert!(client.events.is_empty(), "what the lost request caused is lost with it");
    let mut again = client.again(&address).await.unwrap();
    let stat = again.ok(op::EXISTS, &Body::watch("/made", false)).await.body;
    assert_eq!(stat[44..52], client.session.to_be_bytes(), "the session lives, and so does its node");
}

#[tokio::test]
async fn held_reply_waits_for_its_release_and_holds_what_comes_behind() {
    let (server, address) = server().await;
    let mut client = Conn::new(&address, T).await;
    let mut other = Conn::new(&address, T).await;
    let fault = server.fault(When::create(), Fault::HoldReply);
    client.send(op::CREATE, &Body::create("/a", 0)).await.unwrap();
    client.send(op::EXISTS, &Body::watch("/a", false)).await.unwrap();
    fault.hit().await;
    other.ok(op::EXISTS, &Body::watch("/a", false)).await;
    assert!(timeout(Duration::from_millis(30), client.frame()).await.is_err());
    fault.release();
    assert_eq!(client.reply().await.unwrap().path(), "/a");
    assert_eq!(client.reply().await.unwrap().err, 0);
}

#[tokio::test]
async fn dropped_reply_never_comes_and_the_next_one_does() {
    let (server, address) = server().await;
    let mut client = Conn::new(&address, T).await;
    let fault = server.fault(When::create(), Fault::DropReply);
    client.send(op::CREATE, &Body::create("/a", 0)).await.unwrap();
    let second = client.send(op::EXISTS, &Body::watch("/a", false)).await.unwrap();
    let reply = client.reply().await.unwrap();
    assert_eq!((reply.xid, reply.err), (second, 0));
    assert_eq!(fault.hits(), 1);
}

#[tokio::test]
async fn delayed_reply_comes_later_but_the_request_is_applied_at_once() {
    let (server, address) = server().await;
    let mut client = Conn::new(&address, T).await;
    let delay = Duration::from_millis(80);
    let fault = server.fault(When::create(), Fault::DelayReply(delay));
    let sent = tokio::time::Instant::now();
    client.send(op::CREATE, &Body::create("/a", 0)).await.unwrap();
    fault.hit().await;
    assert!(has(&server, "/a"));
    assert_eq!(client.reply().await.unwrap().err, 0);
    assert!(sent.elapsed() >= delay);
}

#[tokio::test]
async fn delayed_request_is_applied_later() {
    let (server, address) = server().await;
    let mut client = Conn::new(&address, T).await;
    let delay = Duration::from_millis(80);
    let fault = server.fault(When::create(), Fault::DelayRequest(delay));
    let sent = tokio::time::Instant::now();
    client.send(op::CREATE, &Body::create("/a", 0)).await.unwrap();
    fault.hit().await;
    server.wait_until(|machine| machine.tree().node("/a").is_some()).await;
    assert!(sent.elapsed() >= delay);
}

#[tokio::test]
async fn dropped_event_uses_the_watch_up() {
    let (server, address) = server().await;
    let mut client = Conn::new(&address, T).await;
    let fault = server.fault(When::event_kind(EventKind::Created).path("/a"), Fault::DropReply);
    client.call(op::EXISTS, &Body::watch("/a", true)).await.unwrap();
    client.ok(op::CREATE, &Body::create("/a", 0)).await;
    client.ok(op::DELETE, &Body::version("/a", -1)).await;
    assert_eq!(client.drain().await.unwrap(), []);
    assert_eq!(fault.hits(), 1);
}

#[tokio::test]
async fn held_event_comes_when_it_is_released() {
    let (server, address) = server().await;
    let mut client = Conn::new(&address, T).await;
    let mut other = Conn::new(&address, T).await;
    let fault = server.fault(When::event().session(client.session), Fault::HoldReply);
    client.call(op::EXISTS, &Body::watch("/a", true)).await.unwrap();
    other.ok(op::CREATE, &Body::create("/a", 0)).await;
    fault.hit().await;
    assert!(timeout(Duration::from_millis(30), client.frame()).await.is_err());
    drop(fault);
    assert_eq!(client.drain().await.unwrap(), [(1, "/a".to_owned())]);
}

#[tokio::test]
async fn held_request_of_a_dead_connection_is_applied_late() {
    let (server, address) = server().await;
    let mut client = Conn::new(&address, T).await;
    let held = server.fault(When::create().path("/late"), Fault::HoldRequest);
    client.send(op::CREATE, &Body::create("/late", 1)).await.unwrap();
    held.hit().await;
    let mut again = client.again(&address).await.unwrap();
    again.ok(op::SYNC, &Body::new().str("/")).await;
    assert_eq!(again.call(op::EXISTS, &Body::watch("/late", true)).await.unwrap().err, -101);
    held.release();
    server.wait_until(|machine| machine.tree().node("/late").is_some()).await;
    assert_eq!(again.drain().await.unwrap(), [(1, "/late".to_owned())]);
}

/// The connection learns of its end and of the release at once, as on a machine that pauses.
#[tokio::test]
async fn held_request_that_is_released_at_the_end_of_its_connection_is_applied() {
    let (server, address) = server().await;
    for round in 0..20 {
        let path = format!("/late{round}");
        let mut client = Conn::new(&address, T).await;
        let held = server.fault(When::create().path(&path), Fault::HoldRequest);
        client.send(op::CREATE, &Body::create(&path, 0)).await.unwrap();
        held.hit().await;
        server.drop_connections();
        held.release();
        let applied = server.wait_until(|machine| machine.tree().node(&path).is_some());
        timeout(Duration::from_secs(10), applied).await.unwrap();
    }
}

#[tokio::test]
async fn held_request_of_a_dead_session_is_never_applied() {
    let (server, address) = server().await;
    let mut client = Conn::new(&address, T).await;
    let held = server.fault(When::create(), Fault::HoldRequest);
    client.send(op::CREATE, &Body::create("/late", 1)).await.unwrap();
    held.hit().await;
    assert!(server.expire(client.session));
    client.closed().await;
    held.release();
    let mut other = Conn::new(&address, T).await;
    assert_eq!(other.call(op::EXISTS, &Body::watch("/late", false)).await.unwrap().err, -101);
}

#[tokio::test]
async fn only_the_nth_match_is_hit() {
    let (server, address) = server().await;
    let mut client = Conn::new(&address, T).await;
    let fault = server.fault(When::create().nth(3), Fault::Refuse(ErrorCode::Other(-4)));
    let mut errors = Vec::new();
    for n in 0..5 {
        errors.push(client.call(op::CREATE, &Body::create(&format!("/n{n}"), 0)).await.unwrap().err);
    }
    assert_eq!(errors, [0, 0, -4, 0, 0]);
    assert_eq!(fault.hits(), 1);
    assert!(!has(&server, "/n2"));
}

#[tokio::test]
async fn matches_are_hit_by_session_and_by_count() {
    let (server, address) = server().await;
    let mut one = Conn::new(&address, T).await;
    let mut two = Conn::new(&address, T).await;
    let moved = Fault::Refuse(ErrorCode::Other(-4));
    let faults = [
        (When::op(Op::Exists).times(2), [-4, -4, 0, 0]),
        (When::op(Op::Exists).from_nth(3), [0, 0, -4, -4]),
        (When::op(Op::Exists).session(one.session).always(), [-4, 0, -4, 0]),
    ];
    for (when, expected) in faults {
        let fault = server.fault(when, moved);
        let mut errors = Vec::new();
        for _ in 0..2 {
            for client in [&mut one, &mut two] {
                errors.push(client.call(op::EXISTS, &Body::watch("/", false)).await.unwrap().err);
            }
        }
        assert_eq!(errors, expected);
        fault.hit_times(2).await;
    }
}

#[tokio::test]
async fn delayed_event_arrives_later_and_the_events_behind_it_wait() {
    let (server, address) = server().await;
    let mut client = Conn::new(&address, T).await;
    client.call(op::EXISTS, &Body::watch("/a", true)).await.unwrap();
    let delay = Duration::from_millis(80);
    let fault = server.fault(When::event(), Fault::DelayReply(delay));
    let sent = tokio::time::Instant::now();
    client.ok(op::CREATE, &Body::create("/a", 0)).await;
    assert!(sent.elapsed() >= delay);
    assert_eq!((client.events.len(), fault.hits()), (1, 1));
}

#[tokio::test]
async fn transcript_tells_requests_and_events_with_their_paths() {
    let (server, address) = server().await;
    let mut client = Conn::new(&address, T).await;
    let transcript = server.transcript();
    client.call(op::EXISTS, &Body::watch("/a", true)).await.unwrap();
    client.ok(op::CREATE, &Body::create("/a", 0)).await;
    let passed: Vec<_> =
        transcript.passed().into_iter().map(|passed| (passed.subject, passed.paths)).collect();
    let expected =
        [Subject::Request(Op::Exists), Subject::Request(Op::Create), Subject::Event(EventKind::Created)];
    assert_eq!(passed, expected.map(|subject| (subject, vec!["/a".to_owned()])));
}

#[tokio::test]
async fn containers_and_create2_can_be_refused_for_as_long_as_the_fault_lives() {
    let (server, address) = server().await;
    let mut client = Conn::new(&address, T).await;
    let old = When::ops([Op::Create2, Op::CreateContainer]).always();
    let fault = server.fault(old, Fault::Refuse(ErrorCode::Unimplemented));
    assert_eq!(client.call(op::CREATE_CONTAINER, &Body::create("/c", 4)).await.unwrap().err, -6);
    assert_eq!(client.call(op::CREATE2, &Body::create("/c", 0)).await.unwrap().err, -6);
    assert_eq!(client.call(op::CREATE, &Body::create("/c", 0)).await.unwrap().err, 0);
    fault.hit_times(2).await;
    drop(fault);
    assert_eq!(client.call(op::CREATE2, &Body::create("/c/x", 0)).await.unwrap().err, 0);
}

#[tokio::test]
async fn transaction_is_chosen_by_any_of_its_paths() {
    let (server, address) = server().await;
    let mut client = Conn::new(&address, T).await;
    let fault = server.fault(When::op(Op::Multi).path("/b"), Fault::Refuse(ErrorCode::NoAuth));
    let both = Body::multi(&[(op::CREATE, Body::create("/a", 0)), (op::CREATE, Body::create("/b", 0))]);
    assert_eq!(client.call(op::MULTI, &both).await.unwrap().err, -102);
    assert_eq!(fault.hits(), 1);
}
