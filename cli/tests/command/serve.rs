//! A server for development.

use tokio::process::Command;

use crate::fixture::{Fixture, Running};

#[tokio::test]
async fn a_served_server_says_loudly_what_it_is_not_and_ends_in_order() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lockkeeper"));
    let mut serving = Running::start(command.args(["serve", "--port", "0", "--tick", "100ms"]));
    let servers = serving.line().await;
    let fixture = Fixture::at(&servers);
    assert_eq!(fixture.ended(["lock", "/serve/lock", "--try", "--", "true"]).await.code, Some(0));
    serving.signal("INT");
    let ended = serving.ended().await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.messages.contains("NOT FOR PRODUCTION"), "{ended:?}");
}

#[tokio::test]
async fn a_port_that_is_in_use_ends_with_one_line() {
    let fixture = Fixture::embedded().await;
    let port = fixture.servers.rsplit(':').next().unwrap();
    let ended = fixture.ended(["serve", "--port", port]).await;
    assert_eq!(ended.code, Some(69), "{ended:?}");
    assert_eq!(ended.messages.lines().count(), 1, "{ended:?}");
}
