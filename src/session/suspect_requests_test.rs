//! The requests that servers may not know, over real connections.

use std::pin::pin;

use futures::FutureExt;
use lockkeeper_testserver::{Fault, Op, TestServer, When};

use super::Suspect;
use crate::error::LossReason;
use crate::manager::ConnectionManager;
use crate::time::deadline::Deadline;

/// Ends a session with an unanswered request, which no task polls. Returns whether the next session of the
/// manager counts the connection.
async fn counts_at_the_end(reason: LossReason, breaks: bool) -> bool {
    let server = TestServer::start().await.unwrap();
    let manager = ConnectionManager::connect(&server.connect_string()).await.unwrap();
    let session = manager.session(Deadline::never(), "/node").await.unwrap();
    let unanswered = server.fault(When::op(Op::GetEphemerals), Fault::DropReply);
    let list = || session.read(|wire| wire.own_ephemerals("/node"));
    let reply = session.send_suspect(Suspect::OwnEphemerals, Deadline::never(), list).await;
    unanswered.hit().await;
    if breaks {
        let before = session.connection();
        server.drop_connections();
        session.reconnected(before).await;
    }
    session.end(reason);
    drop(reply);
    let next = manager.session(Deadline::never(), "/node").await.unwrap();
    assert!(!next.is_same_as(&session));
    let mut hang_ups = next.settings().hang_ups.lock();
    (0..2).any(|_| hang_ups.broke(Suspect::OwnEphemerals, next.now()).is_some())
}

#[tokio::test]
async fn a_session_that_is_replaced_counts_its_broken_connection_for_the_next_session() {
    assert!(counts_at_the_end(LossReason::SessionReplaced, true).await);
}

#[tokio::test]
async fn a_session_that_ends_on_a_connection_that_lives_counts_nothing() {
    for reason in [LossReason::SessionReplaced, LossReason::LeaseRanOut, LossReason::SessionExpired] {
        assert!(!counts_at_the_end(reason, false).await, "{reason:?}");
    }
}

#[tokio::test]
async fn until_an_answer_requests_of_a_kind_are_sent_one_by_one() {
    let server = TestServer::start().await.unwrap();
    let manager = ConnectionManager::connect(&server.connect_string()).await.unwrap();
    let session = manager.session(Deadline::never(), "/node").await.unwrap();
    let list = || session.read(|wire| wire.own_ephemerals("/node"));
    let send = || session.send_suspect(Suspect::OwnEphemerals, Deadline::never(), list);
    for _ in 0..2 {
        let first = send().await;
        let mut second = pin!(send());
        assert!(second.as_mut().now_or_never().is_none());
        assert!(first.await.is_ok());
        let (second, third) = (second.await, send().await);
        assert!(second.await.is_ok() && third.await.is_ok());
        session.settings().hang_ups.lock().broke(Suspect::OwnEphemerals, session.now());
    }
}

#[tokio::test]
async fn a_request_that_a_task_holds_without_polling_it_does_not_block_the_next_one() {
    let server = TestServer::start().await.unwrap();
    let manager = ConnectionManager::connect(&server.connect_string()).await.unwrap();
    let session = manager.session(Deadline::never(), "/node").await.unwrap();
    let list = || session.read(|wire| wire.own_ephemerals("/node"));
    let send = || session.send_suspect(Suspect::OwnEphemerals, Deadline::never(), list);
    let held = send().await;
    let next = tokio::time::timeout(session.timeout(), async { send().await.await });
    assert!(next.await.unwrap().is_ok());
    drop(held);
}

#[tokio::test]
async fn an_answer_ends_a_verdict_on_containers_and_no_refusal_of_the_servers() {
    let server = TestServer::start().await.unwrap();
    let manager = ConnectionManager::connect(&server.connect_string()).await.unwrap();
    let session = manager.session(Deadline::never(), "/node").await.unwrap();
    for _ in 0..3 {
        session.settings().hang_ups.lock().broke(Suspect::Container, session.now());
    }
    assert!(!session.has_containers());
    session.settings().hang_ups.lock().answered(Suspect::Container);
    assert!(session.has_containers());
    session.without_containers();
    session.settings().hang_ups.lock().answered(Suspect::Container);
    assert!(!session.has_containers());
}
