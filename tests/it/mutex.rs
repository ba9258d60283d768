//! The mutex on a real server.

use std::time::Duration;

use lockkeeper::Mutex;
use lockkeeper_tests::{Ensemble, OpCode};

use crate::support::{behind_proxy, connect};

#[tokio::test]
async fn an_uncontended_acquire_is_one_round_trip_and_a_release_one() {
    let (_ensemble, proxies, manager) = behind_proxy().await;
    let mutex = Mutex::new(&manager, "/locks/a").unwrap();
    // The directory is made by the first one.
    mutex.acquire().await.unwrap().release().await.unwrap();
    proxies.clear_log();
    let guard = mutex.acquire().await.unwrap();
    let log = proxies.log();
    assert_eq!(
        log.requests().map(|r| r.op).filter(|op| *op != OpCode::Multi).collect::<Vec<_>>(),
        [OpCode::Create2, OpCode::GetChildren]
    );
    guard.release().await.unwrap();
    println!("{:?}", proxies.log().ops());
    manager.shutdown().await.unwrap();
}

#[tokio::test]
async fn only_one_holds_and_the_next_follows() {
    let ensemble = Ensemble::start(1).await.unwrap();
    let (a, b) = (connect(&ensemble.connect_string()).await, connect(&ensemble.connect_string()).await);
    let (one, two) = (Mutex::new(&a, "/l").unwrap(), Mutex::new(&b, "/l").unwrap());
    let first = one.acquire().await.unwrap();
    assert!(two.try_acquire().await.unwrap().is_none());
    let error = two.acquire_timeout(Duration::from_millis(300)).await.unwrap_err();
    println!("{error}");
    assert!(error.is_timeout());
    let waiter = tokio::spawn(async move { two.acquire_owned().await.unwrap() });
    let token = first.fencing_token();
    first.release().await.unwrap();
    let second = waiter.await.unwrap();
    assert!(second.fencing_token() > token);
    second.release().await.unwrap();
    a.shutdown().await.unwrap();
    b.shutdown().await.unwrap();
}
