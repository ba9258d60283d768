//! Replies that are lost.

use std::time::Duration;

use lockkeeper::Mutex;
use lockkeeper_tests::{Match, OpCode};

use crate::support::{behind_proxy, children, connect, no_node_is_left, nodes_become};

#[tokio::test]
async fn a_create_whose_reply_is_lost_is_found_again() {
    let (ensemble, proxies, manager) = behind_proxy().await;
    let mutex = Mutex::new(&manager, "/lock").unwrap();
    mutex.acquire().await.unwrap().release().await.unwrap();
    let lost = proxies.on(Match::new().op(OpCode::Create2).path_contains("lock-")).drop_reply_and_cut();
    let guard = mutex.acquire().await.unwrap();
    assert!(lost.has_triggered());
    // The node whose reply was lost: the client created no second one.
    assert_eq!(children(&ensemble, "/lock").await.len(), 1);
    assert_eq!(
        proxies.log().count(OpCode::Create2),
        3,
        "directory, first lock, this lock: {:?}",
        proxies.log().ops()
    );
    assert!(guard.is_valid());
    guard.release().await.unwrap();
    no_node_is_left(&ensemble, "/lock").await;
}

#[tokio::test]
async fn a_create_that_never_arrived_is_sent_again() {
    let (ensemble, proxies, manager) = behind_proxy().await;
    let mutex = Mutex::new(&manager, "/lock").unwrap();
    let unsent =
        proxies.on(Match::new().op(OpCode::Create2).path_contains("lock-").nth(2)).cut_before_forward();
    mutex.acquire().await.unwrap().release().await.unwrap();
    let guard = mutex.acquire().await.unwrap();
    assert!(unsent.has_triggered());
    assert_eq!(children(&ensemble, "/lock").await.len(), 1);
    guard.release().await.unwrap();
}

#[tokio::test]
async fn a_release_whose_reply_is_lost_still_deletes_the_node() {
    let (ensemble, proxies, manager) = behind_proxy().await;
    let mutex = Mutex::new(&manager, "/lock").unwrap();
    for fault in 0..2 {
        let guard = mutex.acquire().await.unwrap();
        let arming = proxies.on(Match::new().op(OpCode::Delete).path_contains("lock-"));
        let fault = if fault == 0 { arming.drop_reply_and_cut() } else { arming.cut_before_forward() };
        // The release may not return success, since the client cannot know.
        let error = guard.release().await.unwrap_err();
        assert!(error.outcome_unknown(), "{error}");
        assert!(fault.has_triggered());
        no_node_is_left(&ensemble, "/lock").await;
    }
}

#[tokio::test]
async fn a_create_dropped_before_its_answer_leaves_no_node() {
    let (ensemble, proxies, manager) = behind_proxy().await;
    let mutex = Mutex::new(&manager, "/lock").unwrap();
    mutex.acquire().await.unwrap().release().await.unwrap();
    let held_back = proxies.on(Match::new().op(OpCode::Create2).path_contains("lock-")).hold_reply();
    let error = mutex.acquire_timeout(Duration::from_millis(200)).await.unwrap_err();
    assert!(error.is_timeout(), "{error}");
    held_back.triggered().await.unwrap();
    nodes_become(&ensemble, "/lock", 1).await;
    held_back.release();
    no_node_is_left(&ensemble, "/lock").await;
}

#[tokio::test]
async fn a_waiter_with_lost_reads_keeps_its_position() {
    for op in [OpCode::GetChildren, OpCode::GetData] {
        let (ensemble, proxies, manager) = behind_proxy().await;
        let other = connect(&ensemble.connect_string()).await;
        let (mutex, others) = (Mutex::new(&manager, "/lock").unwrap(), Mutex::new(&other, "/lock").unwrap());
        let held = others.acquire().await.unwrap();
        let lost = proxies.on(Match::new().op(op).path_contains("/lock")).drop_reply_and_cut();
        let waiter = tokio::spawn(async move { mutex.acquire().await.unwrap() });
        lost.triggered().await.unwrap();
        nodes_become(&ensemble, "/lock", 2).await;
        held.release().await.unwrap();
        waiter.await.unwrap().release().await.unwrap();
        no_node_is_left(&ensemble, "/lock").await;
    }
}

#[tokio::test]
async fn an_event_lost_with_its_connection_is_replayed() {
    let (ensemble, proxies, manager) = behind_proxy().await;
    let other = connect(&ensemble.connect_string()).await;
    let (mutex, others) = (Mutex::new(&manager, "/lock").unwrap(), Mutex::new(&other, "/lock").unwrap());
    let held = others.acquire().await.unwrap();
    let waiter = tokio::spawn(async move { mutex.acquire().await.unwrap() });
    nodes_become(&ensemble, "/lock", 2).await;
    // The lock becomes free while the waiter has no connection.
    proxies.refuse().await.unwrap();
    held.release().await.unwrap();
    proxies.accept().await.unwrap();
    let guard = waiter.await.unwrap();
    assert!(guard.is_valid());
    guard.release().await.unwrap();
}
