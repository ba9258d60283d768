//! The page about servers and locks.

use lockkeeper::ConnectionManager;
use lockkeeper::znodes::CreateMode;
use lockkeeper_tests::{Ensemble, left_out};

use crate::fixture::Fixture;

#[tokio::test]
async fn the_page_names_the_version_the_tick_the_times_and_the_directories() {
    if left_out() {
        return;
    }
    let fixture = Fixture::real(&Ensemble::shared().await.unwrap().connect_string());
    let mut holder = fixture.start(["lock", "/doctor/lock", "--", "sh", "-c", "echo held; read line"]);
    holder.until("held").await;
    let ended = fixture.ended(["doctor", "--root", "/doctor"]).await;
    for text in [
        "standalone",
        "one server without an ensemble",
        "tickTime 500 ms, within the setting of 500ms",
        "the session timeout is 30s, as asked for",
        "a read takes",
        "a write, which confirms a session, takes",
        "1 directories of locks in use below /doctor, all in order",
    ] {
        assert!(ended.output.contains(text), "{text}: {ended:?}");
    }
    for line in ended.output.lines() {
        assert!(["ok   ", "warn ", "bad  "].iter().any(|level| line.starts_with(level)), "{line}");
    }
    // A single server is worth a warning, and so are the bugs of 3.8.0.
    assert_eq!(ended.code, Some(1), "{ended:?}");
    holder.ended().await;
}

#[tokio::test]
async fn a_tick_above_the_setting_is_bad() {
    if left_out() {
        return;
    }
    let mut fixture = Fixture::real(&Ensemble::shared().await.unwrap().connect_string());
    fixture.tick_time = "100ms";
    let ended = fixture.ended(["doctor", "--root", "/doctor/none"]).await;
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.output.contains("give --tick-time 500ms"), "{ended:?}");
}

#[tokio::test]
async fn nodes_that_block_a_lock_for_ever_are_bad() {
    for fixture in Fixture::both().await {
        let manager = ConnectionManager::connect(&fixture.servers).await.unwrap();
        let name = "/doctor-dead/a/_c_00c9d435-2596-43a6-90c7-196313af6a00-lock-";
        let node = manager.znodes().create(name, b"", CreateMode::PersistentSequential).await.unwrap();
        let ended = fixture.ended(["doctor", "--root", "/doctor-dead"]).await;
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(ended.output.contains(&format!("bad  {node} has the name of a contender and no session")));
    }
}

#[tokio::test]
async fn a_limit_of_connections_that_is_near_or_reached_is_said() {
    if left_out() {
        return;
    }
    let ensemble = Ensemble::builder().setting("maxClientCnxns", "10").start().await.unwrap();
    let servers = ensemble.connect_string();
    let fixture = Fixture::real(&servers);
    let mut clients = Vec::new();
    for _ in 0..7 {
        clients.push(ConnectionManager::connect(&servers).await.unwrap());
    }
    let near = fixture.ended(["doctor", "--root", "/none"]).await;
    let said = "connections of 127.0.0.1; maxClientCnxns is 10 for each address";
    assert!(near.output.contains(said), "{near:?}");
    while let Ok(client) = ConnectionManager::builder(&servers)
        .connect_deadline(std::time::Duration::from_secs(2))
        .connect()
        .await
    {
        clients.push(client);
    }
    let full = fixture.ended(["doctor", "--connect-timeout", "1s"]).await;
    assert_eq!(full.code, Some(69), "{full:?}");
    let said = format!("bad  {servers} accepts each connection of this machine, and closes it at once");
    assert!(full.output.contains(&said) && full.output.contains("maxClientCnxns"), "{full:?}");
}

#[tokio::test]
async fn without_a_server_the_code_is_69() {
    let ended = Fixture::at("127.0.0.1:1").ended(["--connect-timeout", "200ms", "doctor"]).await;
    assert_eq!(ended.code, Some(69), "{ended:?}");
    assert!(ended.output.contains("warn 127.0.0.1:1: no report"), "{ended:?}");
}
