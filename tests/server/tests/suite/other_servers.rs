//! Servers that are not ZooKeeper's: what they do not know, and what they count in their own way.

use std::io;

use lockkeeper_testserver::{Builder, Op, TestServer};

use crate::faults::T;
use crate::raw::{Body, Conn, Event, op};

async fn start(builder: Builder) -> (TestServer, String) {
    let server = builder.start().await.unwrap();
    let address = server.connect_string();
    (server, address)
}

fn is_closed<R>(answer: &io::Result<R>) -> bool {
    answer.is_err()
}

#[tokio::test]
async fn a_request_that_the_server_does_not_know_closes_the_connection_without_an_answer() {
    let (_server, address) = start(TestServer::builder().unknown([Op::CreateContainer])).await;
    let mut client = Conn::new(&address, T).await;
    client.ok(op::CREATE, &Body::create("/a", 0)).await;
    assert!(is_closed(&client.call(op::CREATE_CONTAINER, &Body::create("/b", 4)).await));
    let (_other, address) = start(TestServer::builder().like_clickhouse()).await;
    let mut client = Conn::new(&address, T).await;
    assert!(is_closed(&client.call(op::GET_EPHEMERALS, &Body::new().str("/")).await));
}

#[tokio::test]
async fn a_request_above_the_limit_closes_the_connection() {
    let (_server, address) = start(TestServer::builder().max_request(1_000)).await;
    let mut client = Conn::new(&address, T).await;
    client.ok(op::CREATE, &Body::create("/a", 0)).await;
    client.ok(op::SET_DATA, &Body::set("/a", &[0; 900], -1)).await;
    assert!(is_closed(&client.call(op::SET_DATA, &Body::set("/a", &[0; 1_000], -1)).await));
}

#[tokio::test]
async fn keeper_gives_another_session_at_each_connect() {
    let (server, address) = start(TestServer::builder().like_clickhouse()).await;
    let client = Conn::new(&address, T).await;
    let again = client.again(&address).await.unwrap();
    assert_ne!(again.session, client.session);
    assert_eq!(server.sessions(), [client.session, again.session]);
}

#[tokio::test]
async fn keeper_names_the_watched_node_and_counts_in_its_own_way() {
    let (server, address) = start(TestServer::builder().like_clickhouse()).await;
    let (mut watcher, mut client) = (Conn::new(&address, T).await, Conn::new(&address, T).await);
    let counts = || {
        let stat =
            |machine: &lockkeeper_testserver::machine::Machine| machine.tree().node("/d").unwrap().stat();
        let stat = server.inspect(stat);
        (stat.cversion, stat.pzxid)
    };
    client.ok(op::CREATE, &Body::create("/d", 0)).await;
    watcher.ok(op::ADD_WATCH, &Body::version("/d", 1)).await;
    client.ok(op::CREATE, &Body::create("/d/x", 0)).await;
    let (cversion, pzxid) = counts();
    client.ok(op::SET_DATA, &Body::set("/d/x", b"1", -1)).await;
    assert_eq!(counts(), (cversion + 1, pzxid));
    client.ok(op::DELETE, &Body::version("/d/x", -1)).await;
    assert_eq!(counts(), (cversion + 2, pzxid));
    let named = |kind: i32| -> Event { (kind, "/d".to_owned()) };
    assert_eq!(watcher.drain().await.unwrap(), [named(1), named(3), named(2)]);
    assert!(watcher.event_zxids.iter().all(|zxid| *zxid == -1));
}
