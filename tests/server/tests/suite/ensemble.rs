//! Several servers, one tree: fail-over, staleness, and sessions that move.

use std::time::Duration;

use lockkeeper_testserver::{Isolation, TestEnsemble, TestServer};

use crate::raw::{Body, Conn, op};

const T: i32 = 10_000;

async fn three() -> (TestEnsemble, Vec<String>) {
    let ensemble = TestEnsemble::start(3).await.unwrap();
    let addresses = ensemble.servers().iter().map(TestServer::connect_string).collect();
    (ensemble, addresses)
}

#[tokio::test]
async fn write_at_one_server_is_seen_and_watched_at_another() {
    let (_ensemble, at) = three().await;
    let mut writer = Conn::new(&at[0], T).await;
    let mut reader = Conn::new(&at[2], T).await;
    reader.call(op::EXISTS, &Body::watch("/a", true)).await.unwrap();
    writer.ok(op::CREATE, &Body::create("/a", 0)).await;
    assert_eq!(reader.drain().await.unwrap(), [(1, "/a".to_owned())]);
    reader.ok(op::EXISTS, &Body::watch("/a", false)).await;
}

#[tokio::test]
async fn session_survives_the_move_to_another_server() {
    let (ensemble, at) = three().await;
    let mut client = Conn::new(&at[0], T).await;
    client.ok(op::CREATE, &Body::create("/mine", 1)).await;
    ensemble.server(0).unwrap().stop().await;
    client.closed().await;
    let mut moved = client.again(&at[1]).await.unwrap();
    assert_eq!(moved.session, client.session);
    moved.ok(op::SET_DATA, &Body::set("/mine", b"still mine", -1)).await;
}

#[tokio::test]
async fn write_through_the_server_a_session_has_left_closes_that_connection() {
    let (_ensemble, at) = three().await;
    let mut old = Conn::new(&at[0], T).await;
    let mut new = old.again(&at[1]).await.unwrap();
    old.ok(op::EXISTS, &Body::watch("/", false)).await;
    old.send(op::CREATE, &Body::create("/late", 0)).await.unwrap();
    old.closed().await;
    assert_eq!(new.call(op::EXISTS, &Body::watch("/late", false)).await.unwrap().err, -101);
}

#[tokio::test]
async fn cut_off_server_answers_pings_and_shows_the_past() {
    let (ensemble, at) = three().await;
    let stale = ensemble.server(2).unwrap();
    let mut writer = Conn::new(&at[0], T).await;
    let mut reader = Conn::new(&at[2], T).await;
    writer.ok(op::CREATE, &Body::create("/before", 0)).await;
    reader.call(op::EXISTS, &Body::watch("/after", true)).await.unwrap();
    stale.cut_off(Isolation::Stale);
    writer.ok(op::CREATE, &Body::create("/after", 0)).await;
    assert_eq!(reader.drain().await.unwrap(), []);
    reader.ok(op::EXISTS, &Body::watch("/before", false)).await;
    assert_eq!(reader.call(op::EXISTS, &Body::watch("/after", false)).await.unwrap().err, -101);

    let sync = reader.send(op::SYNC, &Body::new().str("/")).await.unwrap();
    let read = reader.send(op::EXISTS, &Body::watch("/after", false)).await.unwrap();
    reader.drain_only_pings().await;
    stale.heal();
    assert_eq!(reader.reply().await.unwrap().xid, sync);
    assert_eq!(reader.events, [(1, "/after".to_owned())], "the missed event precedes the reply");
    let reply = reader.reply().await.unwrap();
    assert_eq!((reply.xid, reply.err), (read, 0), "a read keeps its order after the sync");
}

#[tokio::test]
async fn deposed_leader_answers_a_sync_with_the_past() {
    let (ensemble, at) = three().await;
    let deposed = ensemble.server(0).unwrap();
    let mut believer = Conn::new(&at[0], T).await;
    let mut writer = Conn::new(&at[1], T).await;
    deposed.cut_off(Isolation::Deposed);
    writer.ok(op::CREATE, &Body::create("/new", 0)).await;
    believer.ok(op::SYNC, &Body::new().str("/")).await;
    assert_eq!(believer.call(op::EXISTS, &Body::watch("/new", false)).await.unwrap().err, -101);
    let xid = believer.send(op::CREATE, &Body::create("/mine", 0)).await.unwrap();
    believer.drain_only_pings().await;
    deposed.heal();
    assert_eq!(believer.reply().await.unwrap().xid, xid);
}

#[tokio::test]
async fn session_at_a_cut_off_server_expires_though_it_pings() {
    let (ensemble, at) = three().await;
    let stale = ensemble.server(1).unwrap();
    let mut client = Conn::new(&at[1], T).await;
    client.ok(op::CREATE, &Body::create("/mine", 1)).await;
    stale.cut_off(Isolation::Stale);
    for _ in 0..4 {
        ensemble.server(0).unwrap().advance_clock(Duration::from_secs(4));
        client.drain().await.unwrap();
    }
    assert_eq!(ensemble.server(0).unwrap().sessions(), []);
    client.ok(op::EXISTS, &Body::watch("/mine", false)).await;
    let mut other = Conn::new(&at[0], T).await;
    assert_eq!(other.call(op::EXISTS, &Body::watch("/mine", false)).await.unwrap().err, -101);
    stale.heal();
    client.closed().await;
}

#[tokio::test]
async fn client_that_has_seen_more_is_refused_by_no_connected_server() {
    let (ensemble, at) = three().await;
    let client = Conn::new(&at[0], T).await;
    let ahead = Conn::attach(&at[1], T, client.session, &client.password, 1 << 40).await;
    assert!(ahead.is_err(), "no client has seen that transaction");
    assert_eq!(ensemble.server(0).unwrap().sessions(), [client.session]);
    client.again(&at[1]).await.unwrap();
}

#[tokio::test]
async fn follower_tells_the_leader_of_live_sessions_only_every_half_tick() {
    let builder = TestServer::builder().relay_touches(true).tick(Duration::from_secs(1000));
    let ensemble = builder.start_ensemble(2).await.unwrap();
    let mut client = Conn::new(&ensemble.server(1).unwrap().connect_string(), 2_000_000).await;
    let leader = ensemble.server(0).unwrap();
    leader.advance_clock(Duration::from_secs(1900));
    client.drain().await.unwrap();
    ensemble.server(1).unwrap().cut_off(Isolation::Stale);
    leader.advance_clock(Duration::from_secs(1200));
    assert_eq!(leader.sessions(), [], "the touch died with the follower");
}

#[tokio::test]
async fn follower_that_is_back_first_answers_the_ping_that_had_stalled() {
    let builder = TestServer::builder().relay_touches(true).tick(Duration::from_secs(1000));
    let ensemble = builder.start_ensemble(2).await.unwrap();
    let mut client = Conn::new(&ensemble.server(1).unwrap().connect_string(), 2_000_000).await;
    let leader = ensemble.server(0).unwrap();
    leader.advance_clock(Duration::from_secs(400));
    client.drain().await.unwrap();
    ensemble.server(1).unwrap().cut_off(Isolation::Stale);
    leader.advance_clock(Duration::from_secs(1500));
    ensemble.server(1).unwrap().heal();
    leader.advance_clock(Duration::from_secs(1200));
    assert_eq!(leader.sessions(), [client.session], "the follower reported the session when it was back");
}
