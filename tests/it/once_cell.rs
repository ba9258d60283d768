//! Values that are initialised once, on a real server.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use lockkeeper::OnceCell;
use lockkeeper_tests::{Ensemble, Match, OpCode};
use tokio::sync::Notify;

use crate::support::{behind_proxy, briefly_behind_proxy, children, connect, no_node_is_left, nodes_become};

const PATH: &str = "/cell";
const LOCKS: &str = "/cell/locks";

#[tokio::test]
async fn a_fleet_initialises_a_value_once_and_all_get_it() {
    let ensemble = Ensemble::lend().await.unwrap();
    let (runs, mut tasks) = (Arc::new(AtomicUsize::new(0)), tokio::task::JoinSet::new());
    for number in 0..4 {
        let cell = OnceCell::new(&connect(&ensemble.connect_string()).await, PATH).unwrap();
        let runs = Arc::clone(&runs);
        for _ in 0..3 {
            let (cell, runs) = (cell.clone(), Arc::clone(&runs));
            tasks.spawn(async move {
                let init = async || {
                    runs.fetch_add(1, Ordering::Relaxed);
                    vec![0, number, 255]
                };
                cell.get_or_init(init).await.unwrap()
            });
        }
    }
    let values = tasks.join_all().await;
    let (stored, _) = ensemble.raw().await.unwrap().data("/cell/value").await.unwrap();
    assert!(values.iter().all(|value| value[..] == stored[..]), "{values:?}");
    assert_eq!(runs.load(Ordering::Relaxed), 1);
    no_node_is_left(&ensemble, LOCKS).await;
    assert_eq!(children(&ensemble, PATH).await.iter().filter(|name| *name == "value").count(), 1);
}

#[tokio::test]
async fn a_cut_off_initialiser_is_dropped_and_stores_nothing() {
    let (ensemble, proxies, doomed) = briefly_behind_proxy().await;
    let begun = Arc::new(Notify::new());
    let first = tokio::spawn({
        let (cell, begun) = (OnceCell::new(&doomed, PATH).unwrap(), Arc::clone(&begun));
        async move {
            let init = async || {
                begun.notify_one();
                std::future::pending::<Vec<u8>>().await
            };
            cell.get_or_init(init).await
        }
    });
    begun.notified().await;
    let other = OnceCell::new(&connect(&ensemble.connect_string()).await, PATH).unwrap();
    let second = tokio::spawn(async move { other.get_or_init(async || b"second".to_vec()).await });
    nodes_become(&ensemble, LOCKS, 2).await;
    proxies.sever_until_expired(proxies.sessions()[0].id).await.unwrap();
    for value in [second, first] {
        assert_eq!(value.await.unwrap().unwrap(), b"second");
    }
    no_node_is_left(&ensemble, LOCKS).await;
}

#[tokio::test]
async fn a_lost_reply_stores_one_value() {
    for is_committed in [true, false] {
        let (ensemble, proxies, manager) = behind_proxy().await;
        let cell = OnceCell::new(&manager, PATH).unwrap();
        let arming = proxies.on(Match::new().op(OpCode::Multi).path_contains("/cell/value"));
        let fault = if is_committed { arming.drop_reply_and_cut() } else { arming.cut_before_forward() };
        let value = cell.get_or_init(async || b"value".to_vec()).await.unwrap();
        assert!(fault.has_triggered());
        assert_eq!((value.as_slice(), cell.get().await.unwrap()), (&b"value"[..], Some(b"value".to_vec())));
        no_node_is_left(&ensemble, LOCKS).await;
    }
}

#[tokio::test]
async fn a_value_that_exists_costs_one_read_and_no_place_in_the_queue() {
    let (_ensemble, proxies, manager) = behind_proxy().await;
    let cell = OnceCell::new(&manager, PATH).unwrap();
    cell.get_or_init(async || b"value".to_vec()).await.unwrap();
    proxies.clear_log();
    cell.get_or_init(async || panic!("initialised twice")).await.unwrap();
    let asked = |op| proxies.log().count(op);
    assert_eq!((asked(OpCode::GetData), asked(OpCode::Create2), asked(OpCode::Exists)), (1, 0, 0));
}
