//! Waits for a node, and for its deletion.

use std::time::Duration;

use lockkeeper_testserver::{Fault, Op, TestServer, When};

use crate::{ConnectionManager, CreateMode};

const PATH: &str = "/config/ready";

async fn connected() -> (TestServer, ConnectionManager) {
    let server = TestServer::start().await.unwrap();
    let manager = ConnectionManager::connect(&server.connect_string()).await.unwrap();
    (server, manager)
}

#[tokio::test]
async fn a_wait_for_a_node_ends_at_its_limit_and_when_the_node_exists() {
    let (_server, manager) = connected().await;
    let znodes = manager.znodes();
    for limit in [Duration::ZERO, Duration::from_millis(30)] {
        let error = znodes.wait_for_timeout(PATH, limit).await.unwrap_err();
        assert!(error.is_timeout() && error.to_string().contains("waiting for the node"), "{error}");
    }
    let waiting = tokio::spawn({
        let znodes = znodes.clone();
        async move { znodes.wait_for_timeout(PATH, Duration::from_secs(60)).await }
    });
    znodes.create(PATH, "yes", CreateMode::Persistent).await.unwrap();
    assert_eq!(waiting.await.unwrap().unwrap().0, b"yes");
    assert_eq!(znodes.wait_for_timeout(PATH, Duration::ZERO).await.unwrap().0, b"yes");
    assert!(znodes.deleted_timeout(PATH, Duration::ZERO).await.unwrap_err().is_timeout());
}

#[tokio::test]
async fn a_wait_ends_as_soon_as_a_shutdown_has_begun() {
    let (server, manager) = connected().await;
    let there = "/config/there";
    manager.znodes().create(there, "", CreateMode::Persistent).await.unwrap();
    let reads = server.fault(When::op(Op::GetData).always(), Fault::DelayReply(Duration::ZERO));
    let created = tokio::spawn({
        let znodes = manager.znodes();
        async move { znodes.wait_for(PATH).await }
    });
    let deleted = tokio::spawn({
        let znodes = manager.znodes();
        async move { znodes.deleted(there).await }
    });
    reads.hit_times(2).await;
    // The session does not end before the server answers its close.
    server.freeze();
    let shutdown = tokio::spawn({
        let manager = manager.clone();
        async move { manager.shutdown().await }
    });
    assert!(created.await.unwrap().unwrap_err().is_closed());
    assert!(deleted.await.unwrap().unwrap_err().is_closed());
    server.thaw();
    shutdown.await.unwrap().unwrap();
}
