//! What is promised of every lock, on a real server: each kind is held by one client and wanted by another.

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use lockkeeper::locks::ZooKeeperLock;
use lockkeeper::{ConnectionManager, FencingToken, MultiLock, MultiLockGuard, Mutex, RwLock, Semaphore};
use lockkeeper_test_recipes::rw_lock::{Reading, Writing};
use lockkeeper_test_recipes::{AnyAdapter, LOCKS, Target};
use lockkeeper_tests::{Direction, Ensemble, Timing, dropped_after, eventually};

use crate::support::{briefly_behind_proxy, connect, no_node_is_left};

type Kind = Box<dyn ZooKeeperLock>;

const LONG: Duration = Duration::from_secs(60);

/// Each lock as its holder takes it, and as another client wants it that must not get it then.
async fn kinds(holder: &ConnectionManager, other: &ConnectionManager) -> Vec<(&'static str, Kind, Kind)> {
    let mut kinds = Vec::new();
    let rows = LOCKS.iter().map(|(name, held)| (*name, *held, held.exclusion().unwrap_or(*held)));
    let writer_first: (_, AnyAdapter, AnyAdapter) = ("writer_before_a_reader", &Writing, &Reading);
    for (name, held, wanted) in rows.chain([writer_first]) {
        let target = |manager| Target::new(manager, &format!("/kinds/{name}"));
        let lock = |adapter: AnyAdapter, manager| adapter.as_lock(target(manager)).unwrap().unwrap();
        held.prepare(target(holder)).await.unwrap();
        kinds.push((name, lock(held, holder), lock(wanted, other)));
    }
    kinds
}

fn nodes(guard: &MultiLockGuard) -> Vec<String> {
    guard
        .members()
        .flat_map(|(_, hold)| hold.paths().map(|path| path.to_string()).collect::<Vec<_>>())
        .collect()
}

#[tokio::test]
async fn whatever_is_held_is_lost_before_it_is_granted_again() {
    let (ensemble, proxies, manager) = briefly_behind_proxy().await;
    let other = connect(&ensemble.connect_string()).await;
    let mut next = Vec::new();
    for (kind, held, wanted) in kinds(&manager, &other).await {
        let guard = Arc::new(held.acquire().await.unwrap());
        assert!(wanted.try_acquire().await.unwrap().is_none(), "{kind}: granted twice");
        next.push(tokio::spawn({
            let guard = Arc::clone(&guard);
            async move {
                let granted = wanted.acquire().await.unwrap();
                assert!(!guard.is_valid(), "{kind}: valid beside the next one");
                assert!(guard.lost().now_or_never().is_some(), "{kind}: the loss is not reported");
                granted.release().await.unwrap();
            }
        }));
        assert!(guard.is_valid(), "{kind}");
    }
    proxies.hold(Direction::Both);
    for next in next {
        next.await.unwrap();
    }
}

#[tokio::test]
async fn a_transaction_under_a_node_that_is_gone_is_refused_whatever_it_held() {
    let ensemble = Ensemble::lend().await.unwrap();
    let manager = connect(&ensemble.connect_string()).await;
    let mut admin = ensemble.raw().await.unwrap();
    let read =
        RwLock::new(&manager, "/kinds/downgraded").unwrap().write().await.unwrap().downgrade().await.unwrap();
    read.txn().create("/downgraded", Vec::new()).commit().await.unwrap();
    admin.delete(read.path()).await.unwrap();
    let late = read.txn().create("/late", Vec::new()).commit().await;
    assert!(late.unwrap_err().is_lost(), "a downgraded reader");
    for (number, (kind, held, _)) in kinds(&manager, &manager).await.into_iter().enumerate() {
        let guard = held.acquire().await.unwrap();
        let written = format!("/written-{number}");
        guard.txn().create(written, Vec::new()).commit().await.unwrap();
        // One is enough, where there are several.
        admin.delete(nodes(&guard).last().unwrap()).await.unwrap();
        let late = guard.txn().create("/late", Vec::new()).commit().await;
        assert!(late.unwrap_err().is_lost(), "{kind}");
        assert!(!guard.is_valid(), "{kind}");
    }
    assert_eq!(admin.exists("/late").await.unwrap(), None);
}

/// Gives up `what` after no poll at all, one, two … until it gets to its end.
async fn given_up_anywhere<F: Future>(ensemble: &Ensemble, what: impl AsyncFn() -> F) {
    for polls in 0.. {
        let future = what().await;
        let after = dropped_after(polls, future).await;
        let is_end = after.is_end();
        drop(after);
        eventually("no node of anyone", Timing::settle(), async || {
            ensemble.dump().await.ok()?.ephemerals.is_empty().then_some(())
        })
        .await
        .unwrap();
        if is_end {
            return;
        }
    }
}

#[tokio::test]
async fn whatever_is_given_up_anywhere_leaves_no_node() {
    let ensemble = Ensemble::lend().await.unwrap();
    let manager = connect(&ensemble.connect_string()).await;
    let several = MultiLock::builder()
        .lock(&Mutex::new(&manager, "/several/a").unwrap())
        .lock(&Semaphore::new(&manager, "/several/b", 3).unwrap().permits(2))
        .build()
        .unwrap();
    given_up_anywhere(&ensemble, async || several.try_acquire()).await;
    given_up_anywhere(&ensemble, async || several.acquire_timeout(LONG)).await;
    given_up_anywhere(&ensemble, async || several.acquire().await.unwrap().release()).await;
    for (_, lock, _) in kinds(&manager, &manager).await {
        given_up_anywhere(&ensemble, async || lock.acquire()).await;
        given_up_anywhere(&ensemble, async || lock.try_acquire()).await;
        given_up_anywhere(&ensemble, async || lock.acquire_timeout(LONG)).await;
        given_up_anywhere(&ensemble, async || lock.acquire().await.unwrap().release()).await;
    }
}

#[tokio::test]
async fn tokens_of_readers_are_above_those_of_writers_before_and_those_of_permits_are_unique() {
    let ensemble = Ensemble::lend().await.unwrap();
    let (one, other) = (connect(&ensemble.connect_string()).await, connect(&ensemble.connect_string()).await);
    let (lock, others) = (RwLock::new(&one, "/rw").unwrap(), RwLock::new(&other, "/rw").unwrap());
    let mut newest_writer = None::<FencingToken>;
    let mut newest = None::<FencingToken>;
    for _ in 0..3 {
        for lock in [&lock, &others] {
            let write = lock.write().await.unwrap().fencing_token();
            assert!(newest.is_none_or(|newest| newest < write), "a writer's token is above all before");
            (newest_writer, newest) = (Some(write), Some(write));
        }
        for lock in [&lock, &others] {
            let read = lock.read().await.unwrap().fencing_token();
            assert!(newest_writer < Some(read), "a reader's token is above those of writers before");
            newest = newest.max(Some(read));
        }
    }
    let semaphores = [&one, &other].map(|manager| Semaphore::new(manager, "/permits", 6).unwrap());
    let mut leases = Vec::new();
    for permits in [1, 2] {
        for semaphore in &semaphores {
            leases.push(semaphore.acquire_many(permits).await.unwrap());
        }
    }
    let tokens: BTreeSet<FencingToken> = leases.iter().map(|lease| lease.fencing_token()).collect();
    assert_eq!(tokens.len(), leases.len(), "a token twice");
    drop(leases);
    no_node_is_left(&ensemble, "/permits/leases").await;
}
