//! Every fault switch does what it says, and can be waited for.

use std::time::Duration;

use lockkeeper_testserver::fault::Subject;
use lockkeeper_testserver::tree::EventKind;
use lockkeeper_testserver::{ErrorCode, Fault, Op, TestServer, When};
use tokio::time::timeout;

use crate::raw::{Body, Conn, op};

const T: i32 = 10_000;

async fn server() -> (TestServer, String) {
    let server = TestServer::start().await.unwrap();
    let address = server.connect_string();
    (server, address)
}

fn has(server: &TestServer, path: &str) -> bool {
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
    let ghost = server.fault(When::create().path("/ghost"), Fault::HoldRequest);
    client.send(op::CREATE, &Body::create("/ghost", 1)).await.unwrap();
    ghost.hit().await;
    let mut again = client.again(&address).await.unwrap();
    again.ok(op::SYNC, &Body::new().str("/")).await;
    assert_eq!(again.call(op::EXISTS, &Body::watch("/ghost", true)).await.unwrap().err, -101);
    ghost.release();
    server.wait_until(|machine| machine.tree().node("/ghost").is_some()).await;
    assert_eq!(again.drain().await.unwrap(), [(1, "/ghost".to_owned())]);
}

#[tokio::test]
async fn held_request_of_a_dead_session_is_never_applied() {
    let (server, address) = server().await;
    let mut client = Conn::new(&address, T).await;
    let ghost = server.fault(When::create(), Fault::HoldRequest);
    client.send(op::CREATE, &Body::create("/ghost", 1)).await.unwrap();
    ghost.hit().await;
    assert!(server.expire(client.session));
    client.closed().await;
    ghost.release();
    let mut other = Conn::new(&address, T).await;
    assert_eq!(other.call(op::EXISTS, &Body::watch("/ghost", false)).await.unwrap().err, -101);
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
async fn delayed_event_comes_later_and_what_stands_behind_it_waits() {
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
    let told: Vec<_> = transcript.passed().into_iter().map(|passed| (passed.subject, passed.paths)).collect();
    let expected =
        [Subject::Request(Op::Exists), Subject::Request(Op::Create), Subject::Event(EventKind::Created)];
    assert_eq!(told, expected.map(|subject| (subject, vec!["/a".to_owned()])));
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

#[tokio::test]
async fn refused_connections_are_closed_until_they_are_accepted_again() {
    let (server, address) = server().await;
    let mut client = Conn::new(&address, T).await;
    server.refuse_connections();
    assert!(Conn::attach(&address, T, 0, &[0; 16], 0).await.is_err());
    client.ok(op::EXISTS, &Body::watch("/", false)).await;
    server.accept_connections();
    Conn::new(&address, T).await;
}

#[tokio::test]
async fn frozen_server_answers_nothing_and_expires_no_session_until_it_thaws() {
    let (server, address) = server().await;
    let mut client = Conn::new(&address, 300).await;
    server.freeze();
    let xid = client.send(op::CREATE, &Body::create("/a", 0)).await.unwrap();
    assert!(timeout(Duration::from_millis(700), client.frame()).await.is_err());
    assert_eq!(server.sessions(), [client.session]);
    assert!(!has(&server, "/a"));
    server.thaw();
    // Either the overdue session is ended first or its request touches it first, as on a real server.
    match client.reply().await {
        Ok(reply) => assert_eq!(reply.xid, xid),
        Err(_) => server.wait_until(|machine| machine.sessions().is_empty()).await,
    }
}

#[tokio::test]
async fn expired_session_loses_nodes_and_connection_at_once() {
    let (server, address) = server().await;
    let mut client = Conn::new(&address, T).await;
    let mut other = Conn::new(&address, T).await;
    client.ok(op::CREATE, &Body::create("/mine", 1)).await;
    other.ok(op::EXISTS, &Body::watch("/mine", true)).await;
    assert!(server.expire(client.session));
    assert!(!server.expire(client.session));
    client.closed().await;
    assert_eq!(other.drain().await.unwrap(), [(2, "/mine".to_owned())]);
    let late = client.again(&address).await.unwrap();
    assert_eq!((late.session, late.timeout, late.password), (0, 0, vec![0; 16]));
}

#[tokio::test]
async fn reconnect_can_silently_get_another_session() {
    let (server, address) = server().await;
    let mut client = Conn::new(&address, T).await;
    client.ok(op::CREATE, &Body::create("/mine", 1)).await;
    let fault = server.fault(When::connect().session(client.session), Fault::SwapSession);
    server.drop_connections();
    client.closed().await;
    let again = client.again(&address).await.unwrap();
    fault.hit().await;
    assert_ne!(again.session, 0);
    assert_ne!(again.session, client.session);
    assert!(has(&server, "/mine"), "the old session stays until its time is up");
}

#[tokio::test]
async fn sequence_can_start_anywhere_and_stops_at_the_end_of_its_range() {
    let (server, address) = server().await;
    let mut client = Conn::new(&address, T).await;
    client.ok(op::CREATE, &Body::create("/q", 0)).await;
    assert!(server.set_sequence("/q", i32::MAX - 1));
    assert!(!server.set_sequence("/nowhere", 0));
    let mut names = Vec::new();
    for prefix in ["a", "b", "c", "c"] {
        let reply = client.call(op::CREATE, &Body::create(&format!("/q/{prefix}-"), 2)).await.unwrap();
        names.push(if reply.err == 0 { reply.path() } else { reply.err.to_string() });
    }
    // The counter does not move past its maximum, so a name repeats, and the same prefix collides.
    assert_eq!(names, ["/q/a-2147483646", "/q/b-2147483647", "/q/c-2147483647", "-110"]);
}

#[tokio::test]
async fn negative_sequence_numbers_have_the_width_that_java_gives_them() {
    let (server, address) = server().await;
    let mut client = Conn::new(&address, T).await;
    client.ok(op::CREATE, &Body::create("/q", 0)).await;
    for (number, name) in [(i32::MIN, "/q/a--2147483648"), (-1, "/q/a--000000001")] {
        server.set_sequence("/q", number);
        assert_eq!(client.ok(op::CREATE, &Body::create("/q/a-", 2)).await.path(), name);
    }
}

#[tokio::test]
async fn moved_clock_expires_silent_sessions() {
    let (server, address) = server().await;
    let mut client = Conn::new(&address, T).await;
    server.advance_clock(Duration::from_millis(9_500));
    client.drain().await.unwrap();
    server.advance_clock(Duration::from_millis(9_500));
    assert_eq!(server.sessions(), [client.session]);
    server.advance_clock(Duration::from_millis(9_500));
    assert_eq!(server.sessions(), []);
    client.closed().await;
}

#[tokio::test]
async fn stopped_server_refuses_and_a_restarted_one_has_everything_still() {
    let (server, address) = server().await;
    let mut client = Conn::new(&address, T).await;
    client.ok(op::CREATE, &Body::create("/mine", 1)).await;
    server.stop().await;
    client.closed().await;
    let refused = Conn::attach(&address, T, 0, &[0; 16], 0).await.unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
    server.restart().await.unwrap();
    let mut again = client.again(&address).await.unwrap();
    assert_eq!(again.session, client.session);
    again.ok(op::EXISTS, &Body::watch("/mine", false)).await;
}

#[tokio::test]
async fn disarmed_fault_hits_no_more() {
    let (server, address) = server().await;
    let mut client = Conn::new(&address, T).await;
    let fault = server.fault(When::request().always(), Fault::Refuse(ErrorCode::NoAuth));
    assert_eq!(client.call(op::EXISTS, &Body::watch("/", false)).await.unwrap().err, -102);
    fault.disarm();
    client.ok(op::EXISTS, &Body::watch("/", false)).await;
}

#[tokio::test]
async fn dropped_connection_ends_in_order_or_with_a_reset_as_asked() {
    let (server, address) = server().await;
    for (reset, kind) in
        [(false, std::io::ErrorKind::UnexpectedEof), (true, std::io::ErrorKind::ConnectionReset)]
    {
        server.reset_connections(reset);
        let mut client = Conn::new(&address, T).await;
        let fault = server.fault(When::create(), Fault::DropConnectionBefore);
        client.send(op::CREATE, &Body::create("/a", 0)).await.unwrap();
        fault.hit().await;
        assert_eq!(client.frame().await.unwrap_err().kind(), kind);
        let mut client = Conn::new(&address, T).await;
        server.drop_connections();
        assert_eq!(client.frame().await.unwrap_err().kind(), kind);
    }
}

#[tokio::test]
async fn connect_request_and_what_follows_it_wait_at_a_cut_off_server() {
    let (server, address) = server().await;
    let old = Conn::new(&address, T).await;
    server.cut_off(lockkeeper_testserver::Isolation::Stale);
    let mut stream = tokio::net::TcpStream::connect(&address).await.unwrap();
    let hello = Body::new().int(0).long(0).int(T).long(old.session).bytes(Some(&old.password)).bool(false);
    let ping = Body::new().int(-2).int(op::PING);
    for body in [hello, ping] {
        tokio::io::AsyncWriteExt::write_all(
            &mut stream,
            &[&(body.0.len() as i32).to_be_bytes()[..], &body.0].concat(),
        )
        .await
        .unwrap();
    }
    let mut answer = [0; 41 + 20];
    let mut read = Box::pin(tokio::io::AsyncReadExt::read_exact(&mut stream, &mut answer));
    assert!(timeout(Duration::from_millis(30), &mut read).await.is_err());
    server.heal();
    read.await.unwrap();
    assert_eq!(answer[12..20], old.session.to_be_bytes());
    assert_eq!(answer[45..49], (-2_i32).to_be_bytes());
}

#[tokio::test]
async fn node_can_be_deleted_behind_its_owners_back() {
    let (server, address) = server().await;
    let mut owner = Conn::new(&address, T).await;
    owner.ok(op::CREATE, &Body::create("/q", 0)).await;
    owner.ok(op::CREATE, &Body::create("/q/mine", 1)).await;
    owner.ok(op::EXISTS, &Body::watch("/q/mine", true)).await;
    assert!(!server.delete_node("/q"), "it has a child");
    assert!(server.delete_node("/q/mine"));
    assert!(!server.delete_node("/q/mine"));
    assert_eq!(owner.drain().await.unwrap(), [(2, "/q/mine".to_owned())]);
}

#[tokio::test]
async fn counter_runs_on_past_its_end_as_it_does_for_creates_under_way() {
    let (server, address) = server().await;
    let mut client = Conn::new(&address, T).await;
    client.ok(op::CREATE, &Body::create("/q", 0)).await;
    server.set_sequence("/q", i32::MAX);
    server.count_ahead(true);
    let mut names = Vec::new();
    for _ in 0..3 {
        names.push(client.ok(op::CREATE, &Body::create("/q/", 2)).await.path());
    }
    assert_eq!(names, ["/q/2147483647", "/q/-2147483648", "/q/-2147483647"]);
    server.count_ahead(false);
    let reply = client.call(op::CREATE, &Body::create("/q/", 2)).await.unwrap();
    assert_eq!(reply.err, -110, "back at the end");
}
