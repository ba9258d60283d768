//! What Redis cannot promise, and what its settings change.

use std::time::Duration;

use lockkeeper_redis::{LossReason, Mutex};
use lockkeeper_redis_tests::{Proxy, RedisServer, left_out};
use lockkeeper_tests::{Timing, eventually};

use crate::fixture::{LONG, client, server, short, through};
use crate::servers::{promote, replica_of};

/// A primary that grants nothing without a replica.
async fn cautious_primary() -> RedisServer {
    let options = ["--min-replicas-to-write", "1", "--min-replicas-max-lag", "60"];
    RedisServer::start(&options).await.unwrap()
}

#[tokio::test]
async fn a_primary_that_waits_for_replicas_grants_nothing_without_one() {
    if left_out() {
        return;
    }
    let primary = cautious_primary().await;
    let (_replica, link) = replica_of(&primary).await;
    let mutex = Mutex::new(&client(&primary, LONG).await, "a").unwrap();
    mutex.acquire().await.unwrap().release().await.unwrap();
    link.sever();
    let mut raw = primary.raw().await.unwrap();
    eventually("the primary to notice", Timing::event(), || {
        let mut raw = raw.clone();
        async move {
            let info: String = redis::cmd("INFO").arg("replication").query_async(&mut raw).await.unwrap();
            info.contains("connected_slaves:0").then_some(())
        }
    })
    .await
    .unwrap();
    assert!(mutex.acquire_timeout(Duration::from_millis(100)).await.unwrap_err().is_timeout());
    let exists: bool = redis::cmd("EXISTS").arg("a").query_async(&mut raw).await.unwrap();
    assert!(!exists);
    link.heal();
    mutex.acquire().await.unwrap().release().await.unwrap();
}

#[tokio::test]
async fn a_primary_that_waits_for_replicas_and_does_not_notice_their_silence_has_two_valid_guards() {
    if left_out() {
        return;
    }
    let mut primary = cautious_primary().await;
    let (replica, link) = replica_of(&primary).await;
    // The link is silent, and the primary has not noticed it yet: `min-replicas-max-lag` is 60 seconds.
    link.hold();
    let first = Mutex::new(&client(&primary, LONG).await, "a").unwrap().acquire().await.unwrap();
    primary.kill().await.unwrap();
    let second = Mutex::new(&promote(&replica).await, "a").unwrap().acquire().await.unwrap();
    assert!(first.is_valid() && second.is_valid());
}

#[tokio::test]
async fn a_server_that_evicts_keys_loses_locks_and_the_holder_learns_of_it() {
    if left_out() {
        return;
    }
    let options = ["--maxmemory", "4mb", "--maxmemory-policy", "allkeys-random"];
    let server = RedisServer::start(&options).await.unwrap();
    let guard = Mutex::new(&client(&server, short()).await, "a").unwrap().acquire().await.unwrap();
    let mut raw = server.raw().await.unwrap();
    for number in 0..100_000 {
        let key = format!("filler-{number}");
        let _: () = redis::cmd("SET").arg(key).arg(vec![0_u8; 10_000]).query_async(&mut raw).await.unwrap();
        let exists: bool = redis::cmd("EXISTS").arg("a").query_async(&mut raw).await.unwrap();
        if !exists {
            break;
        }
    }
    assert_eq!(guard.lost().await.reason, LossReason::Gone);
}

#[tokio::test]
async fn a_manager_that_finds_itself_on_a_replica_connects_again() {
    if left_out() {
        return;
    }
    let (old, new) = (server().await, server().await);
    // The name of the server leads to the old primary, and then to the new one.
    let name = Proxy::start(old.port()).await.unwrap();
    let mutex = Mutex::new(&through(&name, LONG).await, "a").unwrap();
    mutex.acquire().await.unwrap().release().await.unwrap();
    let mut raw = old.raw().await.unwrap();
    let replicate = ["127.0.0.1", &new.port().to_string()];
    let _: String = redis::cmd("REPLICAOF").arg(&replicate).query_async(&mut raw).await.unwrap();
    name.point_to(new.port());
    let guard = mutex.acquire().await.unwrap();
    let mut raw = new.raw().await.unwrap();
    let exists: bool = redis::cmd("EXISTS").arg("a").query_async(&mut raw).await.unwrap();
    assert!(exists && guard.is_valid());
}
