//! Watch or poll.

use std::time::Duration;

use futures::FutureExt;
use lockkeeper_testserver::TestServer;

use super::{Observation, Session};
use crate::manager::ConnectionManager;
use crate::time::deadline::Deadline;
use crate::wire::{CreateMode, WatchEvent, WireError};

/// A session that polls every second, and waits five for an answer; and a node.
async fn begin(server: &TestServer) -> (ConnectionManager, Session) {
    let timeout = Duration::from_secs(20);
    let manager = ConnectionManager::builder(&server.connect_string())
        .session_timeout(timeout)
        .tick_time(Duration::from_secs(1));
    let manager = manager.connect().await.unwrap();
    let session = manager.session(Deadline::never(), "/node").await.unwrap();
    let mut created = session.create("/node", b"", CreateMode::Ephemeral);
    session.await_reply(&mut created, Deadline::never()).await.unwrap();
    (manager, session)
}

async fn observe(session: &Session, is_watched: bool) -> Result<Observation, WireError> {
    let (asked_on, room) = (session.connection(), session.watch_budget().reserve("/node"));
    let mut reply = session.observe_data("/node", room.filter(|_| is_watched));
    let (.., watch) = session.await_reply(&mut reply, Deadline::never()).await?;
    assert_eq!(watch.is_some(), is_watched);
    Ok(Observation::new(session, asked_on, [watch]))
}

#[tokio::test]
async fn an_event_that_was_reported_is_reported_again() {
    let server = TestServer::start().await.unwrap();
    let (_manager, session) = begin(&server).await;
    let mut observation = observe(&session, true).await.unwrap();
    assert!(observation.changed().now_or_never().is_none());
    let mut deleted = session.write(|wire| wire.delete("/node", None));
    session.await_reply(&mut deleted, Deadline::never()).await.unwrap();
    for _ in 0..2 {
        assert_eq!(observation.changed().await, Some(WatchEvent::Deleted));
    }
}

#[tokio::test]
async fn without_a_watch_a_change_is_possible_from_time_to_time() {
    let server = TestServer::start().await.unwrap();
    let (_manager, session) = begin(&server).await;
    for _ in 0..2 {
        let mut observation = observe(&session, false).await.unwrap();
        let changed = tokio::time::timeout(Duration::from_secs(10), observation.changed()).await;
        assert_eq!(changed.expect("time to read again"), None);
    }
}

#[tokio::test]
async fn behind_a_reconnect_a_change_is_possible() {
    let server = TestServer::start().await.unwrap();
    let (_manager, session) = begin(&server).await;
    let mut observation = observe(&session, true).await.unwrap();
    let before = session.connection();
    server.drop_connections();
    assert_eq!(observation.changed().await, None);
    assert_ne!(session.connection(), before);
}
