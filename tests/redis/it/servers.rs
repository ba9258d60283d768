//! Servers that crash, forget, and stop.

use std::time::Duration;

use lockkeeper_redis::{ConnectionManager, LossReason, Mutex, State};
use lockkeeper_redis_tests::{Proxy, RedisServer, left_out};
use lockkeeper_tests::{Timing, eventually};

use crate::fixture::{LONG, client, server, short, wait_for_queue};

#[tokio::test]
async fn a_server_that_crashes_and_keeps_its_data_keeps_the_lock_and_the_order_of_tokens() {
    if left_out() {
        return;
    }
    let mut server = RedisServer::start(&["--appendonly", "yes", "--appendfsync", "always"]).await.unwrap();
    let manager = client(&server, Duration::from_secs(30)).await;
    let mutex = Mutex::new(&manager, "a").unwrap();
    let guard = mutex.acquire().await.unwrap();
    let waiting = tokio::spawn({
        let mutex = mutex.clone();
        async move { mutex.acquire().await.unwrap() }
    });
    wait_for_queue(&server, "a", 1).await;
    server.restart().await.unwrap();
    let other = Mutex::new(&client(&server, LONG).await, "a").unwrap();
    assert!(other.try_acquire().await.unwrap().is_none());
    assert!(guard.is_valid());
    let token = guard.fencing_token();
    guard.release().await.unwrap();
    let next = waiting.await.unwrap();
    assert!(next.is_valid() && next.fencing_token() > token);
}

#[tokio::test]
async fn a_server_that_crashes_and_loses_its_data_loses_the_lock_and_the_holder_learns_of_it() {
    if left_out() {
        return;
    }
    let mut server = server().await;
    let manager = client(&server, Duration::from_secs(30)).await;
    let guard = Mutex::new(&manager, "a").unwrap().acquire().await.unwrap();
    server.restart().await.unwrap();
    // The tokens start again as well: nothing of the lock is left.
    let other = Mutex::new(&client(&server, LONG).await, "a").unwrap().acquire().await.unwrap();
    assert_eq!(other.fencing_token().as_u64(), 1);
    assert_eq!(guard.lost().await.reason, LossReason::Gone);
    assert!(other.is_valid());
}

#[tokio::test]
async fn a_server_that_stops_beyond_the_lease_has_one_valid_guard_at_a_time() {
    if left_out() {
        return;
    }
    let server = server().await;
    let manager = client(&server, short()).await;
    let mutex = Mutex::new(&manager, "a").unwrap();
    let guard = mutex.acquire().await.unwrap();
    let other = Mutex::new(&client(&server, short()).await, "a").unwrap();
    let waiting = tokio::spawn(async move { other.acquire().await.unwrap() });
    wait_for_queue(&server, "a", 1).await;
    server.pause().await.unwrap();
    assert_eq!(guard.lost().await.reason, LossReason::LeaseRanOut);
    assert!(!waiting.is_finished());
    server.resume().await.unwrap();
    let next = waiting.await.unwrap();
    assert!(next.is_valid() && !guard.is_valid());
    assert!(next.fencing_token() > guard.fencing_token());
}

#[tokio::test]
async fn a_manager_waits_for_a_server_that_is_not_there_yet() {
    if left_out() {
        return;
    }
    let mut server = server().await;
    let manager = client(&server, LONG).await;
    let mutex = Mutex::new(&manager, "a").unwrap();
    manager.connected_timeout(Duration::ZERO).await.unwrap();
    server.kill().await.unwrap();
    eventually("the manager to notice", Timing::event(), || async {
        (manager.state() == State::Suspended).then_some(())
    })
    .await
    .unwrap();
    let soon = Duration::from_millis(100);
    assert!(mutex.acquire_timeout(soon).await.unwrap_err().is_timeout());
    assert!(manager.connected_timeout(soon).await.unwrap_err().is_timeout());
    let quick = manager.with_operation_timeout(soon);
    assert!(quick.is_same_as(&manager) && manager.operation_timeout() > soon);
    assert!(Mutex::new(&quick, "a").unwrap().try_acquire().await.unwrap_err().is_timeout());
    let waiting = tokio::spawn(async move { mutex.acquire().await.unwrap() });
    server.restart().await.unwrap();
    assert!(waiting.await.unwrap().is_valid());
    manager.connected().await.unwrap();
    manager.shutdown().await.unwrap();
    assert!(manager.connected().await.unwrap_err().is_closed());
}

/// Another server, a replica of this one, and the link between them.
pub(crate) async fn replica_of(primary: &RedisServer) -> (RedisServer, Proxy) {
    let proxy = Proxy::start(primary.port()).await.unwrap();
    let port = proxy.port().to_string();
    let replica = RedisServer::start(&["--replicaof", "127.0.0.1", &port]).await.unwrap();
    let raw = replica.raw().await.unwrap();
    eventually("the replica to follow", Timing::event(), || {
        let mut raw = raw.clone();
        async move {
            let info: String = redis::cmd("INFO").arg("replication").query_async(&mut raw).await.unwrap();
            info.contains("master_link_status:up").then_some(())
        }
    })
    .await
    .unwrap();
    (replica, proxy)
}

/// Makes a replica a primary. Returns a client of it.
pub(crate) async fn promote(replica: &RedisServer) -> ConnectionManager {
    let mut raw = replica.raw().await.unwrap();
    let _: String = redis::cmd("REPLICAOF").arg("NO").arg("ONE").query_async(&mut raw).await.unwrap();
    client(replica, LONG).await
}

#[tokio::test]
async fn a_failover_to_a_replica_that_had_not_received_the_lock_has_two_valid_guards() {
    if left_out() {
        return;
    }
    let mut primary = server().await;
    let (replica, link) = replica_of(&primary).await;
    // The replica receives nothing from now on, and the primary does not wait for it.
    link.sever();
    let first = Mutex::new(&client(&primary, LONG).await, "a").unwrap().acquire().await.unwrap();
    primary.kill().await.unwrap();
    let second = Mutex::new(&promote(&replica).await, "a").unwrap().acquire().await.unwrap();
    // This is what Redis cannot promise: both are valid, and not even the tokens tell them apart.
    assert!(first.is_valid() && second.is_valid());
    assert!(second.fencing_token() <= first.fencing_token());
}

#[tokio::test]
async fn a_failover_to_a_replica_that_had_received_the_lock_keeps_it() {
    if left_out() {
        return;
    }
    let mut primary = server().await;
    let (replica, _link) = replica_of(&primary).await;
    let first = Mutex::new(&client(&primary, LONG).await, "a").unwrap().acquire().await.unwrap();
    let mut raw = primary.raw().await.unwrap();
    // The acknowledgement covers what this connection wrote.
    let _: String = redis::cmd("SET").arg("mark").arg("1").query_async(&mut raw).await.unwrap();
    let received: i64 = redis::cmd("WAIT").arg(1).arg(10_000).query_async(&mut raw).await.unwrap();
    assert_eq!(received, 1);
    primary.kill().await.unwrap();
    let manager = promote(&replica).await;
    assert!(Mutex::new(&manager, "a").unwrap().try_acquire().await.unwrap().is_none());
    assert!(first.is_valid());
}
