//! The owners of a reentrant mutex.

use std::time::Duration;

use lockkeeper::error::{NoOwner, Phase, WouldDeadlock};
use lockkeeper::{Error, Mutex, Owner, ReentrantMutex};
use lockkeeper_tests::{Ensemble, Match, OpCode};

use crate::support::{behind_proxy, children, connect, no_node_is_left, nodes_become};

#[tokio::test]
async fn nested_holds_cost_no_round_trip_and_share_token_and_node() {
    let (ensemble, proxies, manager) = behind_proxy().await;
    let mutex = ReentrantMutex::new(&manager, "/lock").unwrap();
    let owner = Owner::new("one");
    let outer = mutex.acquire(&owner).await.unwrap();
    proxies.clear_log();
    // Another `ReentrantMutex` of the same path shares the count of the first.
    let same = ReentrantMutex::new(&manager, "/lock").unwrap();
    let inner = same.acquire(&owner).await.unwrap();
    let tried = mutex.try_acquire(&owner).await.unwrap().unwrap();
    assert_eq!(mutex.hold_count(&owner), 3);
    assert_eq!(inner.fencing_token(), outer.fencing_token());
    tried.release().await.unwrap();
    inner.release().await.unwrap();
    let sent = proxies.log().requests().filter(|request| request.op != OpCode::Multi).count();
    assert_eq!(sent, 0, "{:?}", proxies.log().ops());
    assert_eq!(mutex.hold_count(&owner), 1);
    assert_eq!(children(&ensemble, "/lock").await.len(), 1);
    outer.release().await.unwrap();
    assert_eq!(mutex.hold_count(&owner), 0);
    assert_eq!(children(&ensemble, "/lock").await.len(), 0);
}

#[tokio::test]
async fn the_last_guard_releases_the_lock_in_any_order_of_the_drops() {
    let ensemble = Ensemble::lend().await.unwrap();
    let manager = connect(&ensemble.connect_string()).await;
    let mutex = ReentrantMutex::new(&manager, "/lock").unwrap();
    let owner = Owner::new("one");
    let outer = mutex.acquire(&owner).await.unwrap();
    let inner = mutex.acquire(&owner).await.unwrap();
    outer.release().await.unwrap();
    assert!(inner.is_valid());
    assert!(mutex.try_acquire(&Owner::new("two")).await.unwrap().is_none());
    drop(inner);
    no_node_is_left(&ensemble, "/lock").await;
    assert!(mutex.try_acquire(&Owner::new("two")).await.unwrap().is_some());
}

#[tokio::test]
async fn owners_exclude_each_other_and_tasks_of_one_owner_do_not() {
    let ensemble = Ensemble::lend().await.unwrap();
    let manager = connect(&ensemble.connect_string()).await;
    let mutex = ReentrantMutex::new(&manager, "/lock").unwrap();
    let (one, two) = (Owner::new("same name"), Owner::new("same name"));
    // At the same time: one acquire creates a node, the other waits for it in this process.
    let (first, second) = tokio::join!(mutex.acquire(&one), mutex.acquire(&one));
    let (first, second) = (first.unwrap(), second.unwrap());
    assert_eq!(children(&ensemble, "/lock").await.len(), 1);
    assert!(mutex.try_acquire(&two).await.unwrap().is_none());
    let error = mutex.acquire_timeout(&two, Duration::from_secs(2)).await.unwrap_err();
    let Error::Timeout { phase: Phase::Queued { predecessor_data, .. }, .. } = &error else {
        panic!("{error}")
    };
    assert!(predecessor_data.contains("owner=same name"), "{predecessor_data}");
    first.release().await.unwrap();
    second.release().await.unwrap();
    mutex.acquire(&two).await.unwrap().release().await.unwrap();
}

#[tokio::test]
async fn a_scope_gives_its_owner_to_nested_calls() {
    async fn inner(mutex: &ReentrantMutex) {
        mutex.acquire_scoped().await.unwrap().release().await.unwrap();
    }
    let ensemble = Ensemble::lend().await.unwrap();
    let manager = connect(&ensemble.connect_string()).await;
    let mutex = ReentrantMutex::new(&manager, "/lock").unwrap();
    assert!(mutex.acquire_scoped().await.unwrap_err().recipe::<NoOwner>().is_some());
    let limit = Duration::from_secs(60);
    assert!(mutex.acquire_scoped_timeout(limit).await.unwrap_err().recipe::<NoOwner>().is_some());
    assert!(mutex.try_acquire_scoped().await.unwrap_err().recipe::<NoOwner>().is_some());
    Owner::new("outer")
        .scope(async {
            let guard = mutex.acquire_scoped().await.unwrap();
            inner(&mutex).await;
            mutex.acquire_scoped_timeout(limit).await.unwrap().release().await.unwrap();
            mutex.try_acquire_scoped().await.unwrap().unwrap().release().await.unwrap();
            assert!(guard.is_valid());
            guard.release().await.unwrap();
        })
        .await;
    no_node_is_left(&ensemble, "/lock").await;
}

#[tokio::test]
async fn a_mutex_taken_again_under_its_own_owner_is_an_error_and_not_a_deadlock() {
    let ensemble = Ensemble::lend().await.unwrap();
    let manager = connect(&ensemble.connect_string()).await;
    let mutex = Mutex::new(&manager, "/lock").unwrap();
    let reentrant = ReentrantMutex::new(&manager, "/lock").unwrap();
    let owner = Owner::new("one");
    owner
        .scope(async {
            let guard = mutex.acquire().await.unwrap();
            assert!(mutex.acquire().await.unwrap_err().recipe::<WouldDeadlock>().is_some());
            assert!(mutex.try_acquire().await.unwrap_err().recipe::<WouldDeadlock>().is_some());
            assert!(reentrant.acquire_scoped().await.unwrap_err().recipe::<WouldDeadlock>().is_some());
            guard.release().await.unwrap();
            let again = reentrant.acquire_scoped().await.unwrap();
            assert!(mutex.acquire().await.unwrap_err().recipe::<WouldDeadlock>().is_some());
            again.release().await.unwrap();
            mutex.acquire().await.unwrap().release().await.unwrap();
        })
        .await;
    no_node_is_left(&ensemble, "/lock").await;
}

#[tokio::test]
async fn an_owner_may_acquire_again_while_its_release_is_in_flight() {
    let (ensemble, proxies, manager) = behind_proxy().await;
    let mutex = ReentrantMutex::new(&manager, "/lock").unwrap();
    let owner = Owner::new("one");
    let guard = mutex.acquire(&owner).await.unwrap();
    let answer = proxies.on(Match::new().op(OpCode::Delete)).hold_reply();
    let releasing = tokio::spawn(guard.release());
    answer.triggered().await.unwrap();
    let again = tokio::spawn({
        let (mutex, owner) = (mutex.clone(), owner.clone());
        async move { mutex.acquire(&owner).await }
    });
    // The queue is empty: the old node is deleted, only the answer is late.
    nodes_become(&ensemble, "/lock", 1).await;
    answer.release();
    releasing.await.unwrap().unwrap();
    let again = again.await.unwrap().unwrap();
    assert_eq!(mutex.hold_count(&owner), 1);
    // The end of the earlier hold did not remove the entry of this one.
    let plain = Mutex::new(&manager, "/lock").unwrap();
    let error = owner.scope(async { plain.acquire().await.unwrap_err() }).await;
    assert!(error.recipe::<WouldDeadlock>().is_some());
    again.release().await.unwrap();
}
