//! Sessions: opening and closing, chroot, access.

use std::time::Duration;

use futures::FutureExt;
use lockkeeper::config::Acl;
use lockkeeper::error::{ConnectError, Refusal};
use lockkeeper::manager::State;
use lockkeeper::znodes::CreateMode;
use lockkeeper::{ConnectionManager, Error, Mutex, Semaphore};
use lockkeeper_tests::{Ensemble, Timing, eventually};

use crate::support::{brief_builder, builder, children, connect, no_node_is_left, nodes_become};

#[tokio::test]
async fn a_shutdown_ends_the_waits_first_and_leaves_no_node() {
    let ensemble = Ensemble::lend().await.unwrap();
    let manager = connect(&ensemble.connect_string()).await;
    let mutex = Mutex::new(&manager, "/lock").unwrap();
    let guard = mutex.acquire().await.unwrap();
    let waiting = mutex.clone();
    let waiter = tokio::spawn(async move { waiting.acquire().await });
    nodes_become(&ensemble, "/lock", 2).await;
    manager.shutdown().await.unwrap();
    assert!(waiter.await.unwrap().unwrap_err().is_closed());
    assert!(!guard.is_valid());
    assert_eq!(manager.state(), State::Closed);
    // Without waiting: the shutdown has waited for the server.
    assert_eq!(children(&ensemble, "/lock").await, Vec::<String>::new());
    assert!(mutex.acquire().await.unwrap_err().is_closed());
    assert!(mutex.try_acquire().await.unwrap_err().is_closed());
    manager.shutdown().await.unwrap();
}

#[tokio::test]
async fn the_last_handle_closes_the_session_and_a_guard_is_a_handle() {
    let ensemble = Ensemble::lend().await.unwrap();
    let manager = connect(&ensemble.connect_string()).await;
    let mutex = Mutex::new(&manager, "/lock").unwrap();
    let guard = mutex.acquire().await.unwrap();
    drop((manager, mutex));
    nodes_become(&ensemble, "/lock", 1).await;
    assert!(guard.is_valid());
    drop(guard);
    no_node_is_left(&ensemble, "/lock").await;
    sessions_become(&ensemble, 0).await;
}

#[tokio::test]
async fn an_attempt_to_connect_that_is_dropped_leaves_no_session() {
    let ensemble = Ensemble::lend().await.unwrap();
    let connecting = builder(&ensemble.connect_string()).connect();
    let _ = tokio::time::timeout(Duration::from_millis(1), connecting).await;
    sessions_become(&ensemble, 0).await;
}

async fn sessions_become(ensemble: &Ensemble, count: usize) {
    let seen = eventually(format!("{count} sessions"), Timing::settle(), || async {
        let connections = ensemble.server(0).connections().await.unwrap();
        (connections.iter().filter(|connection| connection.session.is_some()).count() == count).then_some(())
    });
    seen.await.unwrap();
}

#[tokio::test]
async fn without_a_server_connect_fails_in_time() {
    let connecting =
        ConnectionManager::builder("127.0.0.1:1").connect_deadline(Duration::from_millis(300)).connect();
    let error = connecting.await.unwrap_err();
    assert!(matches!(error, ConnectError::Timeout { .. }));
    assert!(error.to_string().contains("is ZooKeeper running there?"), "{error}");
}

#[tokio::test]
async fn a_chroot_prefixes_every_path_and_is_created_on_first_use() {
    let ensemble = Ensemble::lend().await.unwrap();
    let manager = connect(&format!("{}/shop/eu", ensemble.connect_string())).await;
    let mutex = Mutex::new(&manager, "/locks/a").unwrap();
    assert_eq!(mutex.path().as_str(), "/locks/a");
    assert_eq!(manager.whole_path(mutex.path()).as_str(), "/shop/eu/locks/a");
    let guard = mutex.acquire().await.unwrap();
    assert_eq!(children(&ensemble, "/shop/eu/locks/a").await.len(), 1);
    // Writes of a transaction are below the chroot, too.
    guard.txn().create("/stock", b"1".to_vec()).commit().await.unwrap();
    assert_eq!(manager.znodes().read("/stock").await.unwrap().unwrap().0, b"1");
    assert!(children(&ensemble, "/shop/eu").await.contains(&"stock".to_owned()));
    guard.release().await.unwrap();
}

#[tokio::test]
async fn a_protected_lock_cannot_be_broken_by_another_identity() {
    let ensemble = Ensemble::lend().await.unwrap();
    let servers = ensemble.connect_string();
    let mine =
        builder(&servers).digest_auth("shop", "secret").acl(Acl::creator_only()).connect().await.unwrap();
    let theirs = builder(&servers).digest_auth("thief", "guess").connect().await.unwrap();
    let guard = Mutex::new(&mine, "/shop/lock").unwrap().acquire().await.unwrap();
    let refused = |error: &Error| matches!(error, Error::Refused { refusal: Refusal::NoAuth, .. });
    let node = guard.path();
    assert!(refused(&theirs.znodes().delete(node).await.unwrap_err()));
    assert!(refused(&theirs.znodes().write(node, b"x", -1).await.unwrap_err()));
    assert!(refused(&Mutex::new(&theirs, "/shop/lock").unwrap().acquire().await.unwrap_err()));
    assert!(guard.is_valid());
    guard.release().await.unwrap();
}

#[tokio::test]
async fn an_acquire_after_a_long_idle_time_is_valid_when_it_returns() {
    let ensemble = Ensemble::lend().await.unwrap();
    let manager = brief_builder(&ensemble.connect_string()).lease_keep_alive(Duration::ZERO);
    let mutex = Mutex::new(&manager.connect().await.unwrap(), "/lock").unwrap();
    // Longer than the lease of a fresh session, with nothing to confirm it.
    let before = mutex.acquire().await.unwrap();
    let idle_until = before.valid_until();
    before.release().await.unwrap();
    eventually("the lease to run out", Timing::settle(), || async {
        idle_until.remaining().is_zero().then_some(())
    })
    .await
    .unwrap();
    let guard = mutex.acquire().await.unwrap();
    assert!(guard.is_valid());
    assert!(guard.valid_until() > idle_until);
    guard.release().await.unwrap();
}

#[tokio::test]
async fn data_too_large_for_a_request_is_refused_before_it_is_sent() {
    let ensemble = Ensemble::lend().await.unwrap();
    let manager = connect(&ensemble.connect_string()).await;
    let large = vec![b'x'; 2_000_000];
    let mutex = Mutex::new(&manager, "/lock").unwrap();
    let error = mutex.clone().with_node_data(large.clone()).acquire().await.unwrap_err();
    assert!(matches!(error, Error::Config(_)), "{error}");
    let error = manager.znodes().create("/x", large.clone(), CreateMode::Persistent).await.unwrap_err();
    assert!(matches!(error, Error::Config(_)), "{error}");
    let guard = mutex.acquire().await.unwrap();
    let error = guard.txn().create("/x", large).commit().await.unwrap_err();
    assert!(error.to_string().contains("the server takes at most"), "{error}");
    guard.release().await.unwrap();
}

/// Events for watches that were just removed make the client answer them after its close, and miss the reply
/// to that.
#[tokio::test]
async fn a_shutdown_with_waiters_is_confirmed_and_leaves_no_node() {
    let ensemble = Ensemble::lend().await.unwrap();
    for round in 0..4 {
        let manager = connect(&ensemble.connect_string()).await;
        let mut tasks = tokio::task::JoinSet::new();
        let paths: Vec<String> = (0..3).map(|number| format!("/amid/{round}-{number}")).collect();
        for path in &paths {
            let semaphore = Semaphore::new(&manager, path, 2).unwrap();
            let lease = semaphore.acquire_many(2).await.unwrap();
            tasks.spawn(std::future::pending().map(move |()| drop(lease)));
            tasks.spawn(async move { drop(semaphore.acquire().await) });
            nodes_become(&ensemble, &format!("{path}/locks"), 1).await;
        }
        drop(tasks);
        manager.shutdown().await.unwrap();
        for path in &paths {
            assert_eq!(children(&ensemble, &format!("{path}/locks")).await, [] as [String; 0]);
            assert_eq!(children(&ensemble, &format!("{path}/leases")).await, [] as [String; 0]);
        }
    }
}
