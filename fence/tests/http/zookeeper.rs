//! The store in ZooKeeper: lost answers, late writes, and receivers that race.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use http::StatusCode;
use lockkeeper::ConnectionManager;
use lockkeeper_fence::http::{FENCING_TOKEN, FenceLayer, FenceStore, ZooKeeperStore, header_value};
use lockkeeper_fence::{FenceError, FencingToken};
use lockkeeper_tests::Timing;
use lockkeeper_testserver::{Fault, Op, TestServer, When};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::time::timeout;
use tower_layer::Layer;

use crate::{Stock, answer, post, resource};

const MARKS: &str = "/marks";

async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    timeout(Timing::event(), future).await.unwrap_or_else(|_| panic!("no {what}"))
}

/// A receiver with a session of its own.
async fn receiver(server: &TestServer) -> (ZooKeeperStore, ConnectionManager) {
    let manager = ConnectionManager::builder(&server.connect_string());
    let manager = manager.session_timeout(Timing::event()).connect().await.unwrap();
    (ZooKeeperStore::new(&manager, MARKS).unwrap(), manager)
}

/// The data of the mark of `stock`.
fn mark(server: &TestServer, path: &str) -> String {
    let data = server.inspect(|machine| machine.tree().node(path).and_then(|node| node.data.clone()));
    String::from_utf8(data.expect("a mark").to_vec()).unwrap()
}

/// The requests that raise the mark of `stock`.
fn change() -> When {
    When::op(Op::Multi).path("/marks/stock")
}

fn token(number: u64) -> FencingToken {
    FencingToken::new(number)
}

/// The newer token that refuses this one.
fn newer(checked: Result<(), FenceError>) -> Option<FencingToken> {
    match checked {
        Ok(()) => None,
        Err(FenceError::Stale(stale)) => Some(stale.newer),
        Err(error) => panic!("{error}"),
    }
}

#[tokio::test]
async fn a_store_in_zookeeper_has_the_digits_of_the_newest_token_and_refuses_older_ones() {
    let server = TestServer::start().await.unwrap();
    let (first, _first) = receiver(&server).await;
    let mut service = FenceLayer::new(first, resource).layer(Stock);
    let newest = FencingToken::from_parts(1, 7, 3);
    for of in [token(900), newest, newest] {
        let sent = answer(&mut service, post(&[&of.to_decimal()])).await;
        assert_eq!((sent.status(), sent.body()), (StatusCode::OK, &of.to_string()));
        assert_eq!(mark(&server, "/marks/%2Ftrain-7"), of.to_decimal());
    }
    let (second, _second) = receiver(&server).await;
    let mut another = FenceLayer::new(second, resource).layer(Stock);
    let refused = answer(&mut another, post(&["901"])).await;
    assert_eq!(refused.status(), StatusCode::CONFLICT);
    assert_eq!(refused.headers()[FENCING_TOKEN], header_value(newest));
    assert_eq!(mark(&server, "/marks/%2Ftrain-7"), newest.to_decimal());
}

#[tokio::test]
async fn a_mark_that_a_check_has_raised_before_its_answer_was_lost_does_not_refuse_it() {
    // The first change creates the node, later ones write.
    for nth in 1..=3 {
        for fault in [Fault::DropConnectionAfter, Fault::DropConnectionBefore] {
            let server = TestServer::start().await.unwrap();
            let (store, _manager) = receiver(&server).await;
            let lost = server.fault(change().nth(nth), fault);
            for number in [5, 6, 6, 7] {
                let checked = within("answer", store.admit("stock", token(number))).await;
                assert_eq!(newer(checked), None, "{fault:?} at {nth}, {number}");
            }
            assert_eq!(newer(store.admit("stock", token(6)).await), Some(token(7)));
            assert_eq!((lost.hits(), mark(&server, "/marks/stock")), (1, token(7).to_decimal()));
        }
    }
}

#[tokio::test]
async fn a_check_is_decided_in_its_own_order_although_a_newer_one_comes_while_its_answer_is_lost() {
    for is_new in [true, false] {
        for fault in [Fault::DropConnectionAfter, Fault::DropConnectionBefore, Fault::HoldRequest] {
            let server = TestServer::start().await.unwrap();
            let (here, _here) = receiver(&server).await;
            let session = server.sessions()[0];
            let (there, _there) = receiver(&server).await;
            if !is_new {
                assert_eq!(newer(here.admit("stock", token(1)).await), None);
            }
            let lost = server.fault(change().session(session), fault);
            // The client comes back only after the other receiver has raised the mark.
            let back = server.fault(When::connect().session(session), Fault::HoldRequest);
            let late = tokio::spawn(async move { here.admit("stock", token(5)).await });
            within("request", lost.hit()).await;
            if fault != Fault::HoldRequest {
                within("reconnect", back.hit()).await;
            }
            assert_eq!(newer(within("answer", there.admit("stock", token(6))).await), None);
            lost.release();
            back.release();
            let late = newer(within("answer", late).await.unwrap());
            let was_applied = fault == Fault::DropConnectionAfter;
            assert_eq!(late, (!was_applied).then_some(token(6)), "{fault:?}, {is_new}");
            assert_eq!(mark(&server, "/marks/stock"), token(6).to_decimal(), "{fault:?}, {is_new}");
        }
    }
}

/// A check of a receiver: its token, and when it began and ended.
#[derive(Debug)]
struct Check {
    number: u64,
    begun: u64,
    ended: u64,
    newer: Option<FencingToken>,
}

#[tokio::test]
async fn of_two_receivers_that_race_none_admits_a_token_behind_a_newer_one() {
    let server = TestServer::start().await.unwrap();
    let clock = Arc::new(AtomicU64::new(0));
    let (mut checking, mut managers) = (Vec::new(), Vec::new());
    for seed in 0..2 {
        let (store, manager) = receiver(&server).await;
        managers.push(manager);
        for task in 0..3 {
            let (store, clock) = (store.clone(), Arc::clone(&clock));
            checking.push(tokio::spawn(async move {
                let mut rng = StdRng::seed_from_u64(seed * 3 + task);
                let mut checks = Vec::new();
                for step in 0..20 {
                    let number = rng.random_range(step..step + 6);
                    let begun = clock.fetch_add(1, Ordering::SeqCst);
                    let newer = newer(store.admit("stock", token(number)).await);
                    let ended = clock.fetch_add(1, Ordering::SeqCst);
                    checks.push(Check { number, begun, ended, newer });
                }
                checks
            }));
        }
    }
    let mut checks = Vec::new();
    for task in checking {
        checks.extend(within("checks", task).await.unwrap());
    }
    let greatest = checks.iter().map(|check| check.number).max().unwrap();
    assert_eq!(mark(&server, "/marks/stock"), token(greatest).to_decimal());
    assert!(checks.iter().any(|check| check.newer.is_some()), "none was late");
    for check in &checks {
        let before = |other: &&Check| other.newer.is_none() && other.ended < check.begun;
        let newest = checks.iter().filter(before).map(|other| other.number).max();
        match check.newer {
            None => assert!(newest <= Some(check.number), "{check:?} behind {newest:?}"),
            Some(newer) => {
                let begun = |other: &Check| token(other.number) == newer && other.begun < check.ended;
                assert!(newer > token(check.number) && checks.iter().any(begun), "{check:?}");
            }
        }
    }
}

#[tokio::test]
async fn a_mark_by_hand_refuses_a_holder_and_is_never_set_back() {
    let server = TestServer::start().await.unwrap();
    let (store, _manager) = receiver(&server).await;
    store.mark_above("stock", token(7)).await.unwrap();
    store.mark_above("stock", token(3)).await.unwrap();
    for late in [token(7), FencingToken::from_parts(0, 7, 9)] {
        assert_eq!(newer(store.admit("stock", late).await), Some(token(8)));
    }
    assert_eq!(newer(store.admit("stock", token(8)).await), None);
}

#[tokio::test]
async fn a_mark_that_is_no_token_and_a_manager_that_is_closed_admit_nothing() {
    let server = TestServer::start().await.unwrap();
    let (store, manager) = receiver(&server).await;
    assert_eq!(newer(store.admit("stock", token(5)).await), None);
    for wrong in ["", "0x2a.0", "removed"] {
        manager.znodes().write("/marks/stock", wrong, -1).await.unwrap();
        let unclear = store.admit("stock", token(6)).await.unwrap_err();
        assert!(!unclear.is_stale() && unclear.to_string().contains("/marks/stock"), "{unclear}");
        assert_eq!(mark(&server, "/marks/stock"), wrong);
    }
    let invalid = store.admit("", token(6)).await.unwrap_err();
    assert!(matches!(invalid, FenceError::InvalidResource { .. }), "{invalid}");
    manager.shutdown().await.unwrap();
    let mut service = FenceLayer::new(store, resource).layer(Stock);
    assert_eq!(answer(&mut service, post(&["9"])).await.status(), StatusCode::SERVICE_UNAVAILABLE);
}
