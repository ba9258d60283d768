//! Lost replies, lost sessions and deleted nodes of a semaphore.

use lockkeeper::Semaphore;
use lockkeeper::error::LossReason;
use lockkeeper_tests::{Ensemble, Match, OpCode, Proxies};

use super::{LEASES, LOCKS, behind_proxy_with, exchange, head_sleeps, leases, semaphore, settled};
use crate::support::{briefly_behind_proxy, connect};

#[tokio::test]
async fn a_lost_reply_of_the_exchange_leaves_all_leases_or_none() {
    for is_committed in [true, false] {
        let (ensemble, proxies, _manager, semaphore) = behind_proxy_with(3).await;
        let arming = exchange(&proxies);
        let fault = if is_committed { arming.drop_reply_and_cut() } else { arming.cut_before_forward() };
        let lease = semaphore.acquire_many(3).await.unwrap();
        assert!(fault.has_triggered());
        assert!(lease.is_valid());
        settled(&ensemble, 3, 0).await;
        lease.release().await.unwrap();
        settled(&ensemble, 0, 0).await;
    }
}

#[tokio::test]
async fn a_lost_reply_to_any_request_of_a_wait_costs_no_permit() {
    for op in [OpCode::GetChildren, OpCode::GetChildren2] {
        for is_watching in [false, true] {
            let (ensemble, proxies, _manager, one) = behind_proxy_with(2).await;
            let other = semaphore(&connect(&ensemble.connect_string()).await, 2);
            let held = other.acquire().await.unwrap();
            if is_watching && op == OpCode::GetChildren {
                continue;
            }
            let nth = if is_watching { 2 } else { 1 };
            let lost = proxies.on(Match::new().op(op).nth(nth)).drop_reply_and_cut();
            let waiter = tokio::spawn(async move { one.acquire_many(2).await.unwrap() });
            lost.triggered().await.unwrap();
            settled(&ensemble, 1, 1).await;
            held.release().await.unwrap();
            waiter.await.unwrap().release().await.unwrap();
            settled(&ensemble, 0, 0).await;
        }
    }
}

#[tokio::test]
async fn the_leases_of_a_crashed_client_are_free_when_its_session_ends() {
    let (ensemble, proxies, manager) = briefly_behind_proxy().await;
    let doomed = semaphore(&manager, 2);
    let other = semaphore(&connect(&ensemble.connect_string()).await, 2);
    let lost = doomed.acquire_many(2).await.unwrap();
    let waiter = tokio::spawn(async move { other.acquire_many(2).await.unwrap() });
    settled(&ensemble, 2, 1).await;
    head_sleeps(&ensemble, 0).await;
    proxies.sever_until_expired(proxies.sessions()[0].id).await.unwrap();
    let lease = waiter.await.unwrap();
    assert!(!lost.is_valid());
    settled(&ensemble, 2, 0).await;
    lease.release().await.unwrap();
}

#[tokio::test]
async fn a_waiter_of_an_expired_session_gets_its_permits_on_the_next_session() {
    // Behind a predecessor, and at the head.
    for waiting_ahead in [1, 0] {
        let (ensemble, proxies, _manager, one) = behind_proxy_with(1).await;
        let other = semaphore(&connect(&ensemble.connect_string()).await, 1);
        let held = other.acquire().await.unwrap();
        let ahead = (0..waiting_ahead).map(|_| {
            let other = other.clone();
            tokio::spawn(async move { other.acquire().await.unwrap() })
        });
        let ahead: Vec<_> = ahead.collect();
        settled(&ensemble, 1, waiting_ahead).await;
        let waiter = tokio::spawn(async move { one.acquire().await.unwrap() });
        settled(&ensemble, 1, waiting_ahead + 1).await;
        head_sleeps(&ensemble, waiting_ahead as u64).await;
        proxies.expire_session(proxies.sessions()[0].id).await.unwrap();
        held.release().await.unwrap();
        for next in ahead {
            next.await.unwrap().release().await.unwrap();
        }
        let lease = waiter.await.unwrap();
        assert!(lease.is_valid());
        assert_eq!(lease.hold().epoch().as_u64(), 2);
        lease.release().await.unwrap();
        settled(&ensemble, 0, 0).await;
    }
}

#[tokio::test]
async fn a_lease_of_which_one_node_is_deleted_by_hand_is_lost_as_a_whole() {
    let (ensemble, _proxies, manager, semaphore) = behind_proxy_with(3).await;
    let lease = semaphore.acquire_many(3).await.unwrap();
    let seen = semaphore.inspect().await.unwrap();
    let last = seen.holders().last().unwrap();
    ensemble.raw().await.unwrap().delete(last.path()).await.unwrap();
    let error = lease.txn().create("/late", Vec::new()).commit().await.unwrap_err();
    assert!(error.is_lost(), "{error}");
    assert_eq!(lease.lost().await.reason, LossReason::NodeDeleted);
    // The other permits of a lost lease are free again, too.
    drop(lease);
    settled(&ensemble, 0, 0).await;
    manager.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_directory_that_is_removed_during_an_acquire_is_created_again() {
    let (ensemble, proxies, _manager, semaphore) = behind_proxy_with(2).await;
    let taking = exchange(&proxies).hold_request();
    let acquiring = tokio::spawn(async move { semaphore.acquire_many(2).await.unwrap() });
    taking.triggered().await.unwrap();
    // As the server's own removal of containers does.
    ensemble.raw().await.unwrap().delete(LEASES).await.unwrap();
    taking.release();
    let lease = acquiring.await.unwrap();
    settled(&ensemble, 2, 0).await;
    lease.release().await.unwrap();
}

#[tokio::test]
async fn a_contender_that_moves_to_a_server_that_is_behind_takes_no_permit_too_many() {
    let ensemble = Ensemble::builder().servers(3).lend().await.unwrap();
    let proxies = Proxies::start(&ensemble).await.unwrap();
    let a = connect(&proxies.connect_string()).await;
    let b = connect(&ensemble.connect_string()).await;
    let (one, other): (Semaphore, Semaphore) = (semaphore(&a, 1), semaphore(&b, 1));
    for round in 0..3 {
        let held = other.acquire().await.unwrap();
        let waiter = tokio::spawn({
            let one = one.clone();
            async move { one.acquire().await.unwrap() }
        });
        crate::support::nodes_become(&ensemble, LOCKS, 1).await;
        let cut = proxies.on(Match::new().op(OpCode::GetChildren2)).drop_reply_and_cut();
        held.release().await.unwrap();
        let lease = waiter.await.unwrap();
        drop(cut);
        proxies.disarm_all();
        assert_eq!(leases(&ensemble).await, 1, "round {round}");
        assert!(other.try_acquire().await.unwrap().is_none());
        lease.release().await.unwrap();
    }
}
