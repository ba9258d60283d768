//! Faults of a whole server, and of its state.

use std::time::Duration;

use lockkeeper_testserver::{ErrorCode, Fault, Op, When};
use tokio::time::timeout;

use crate::faults::{T, has, server};
use crate::raw::{Body, Conn, op};

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

/// The end of the session and the request are there at the same time.
#[tokio::test]
async fn request_behind_the_end_of_its_session_meets_no_fault() {
    let (server, address) = server().await;
    for _ in 0..2_000 {
        let mut client = Conn::new(&address, T).await;
        assert!(server.expire(client.session));
        let next = server.fault(When::op(Op::Create).always(), Fault::DelayReply(Duration::ZERO));
        // It may be closed already.
        let _ = client.send(op::CREATE, &Body::create("/late", 0)).await;
        client.closed().await;
        assert_eq!((next.hits(), has(&server, "/late")), (0, false));
    }
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
