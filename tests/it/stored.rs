//! Tables, latches and migrations on a real server.

use futures::future::join_all;
use lockkeeper::table::{Plain, Removal};
use lockkeeper::{ConnectionManager, CountDownLatch, Error, Migrations, Table, Txn};
use lockkeeper_tests::{Ensemble, Match, OpCode, Timing};
use tokio::time::timeout;

use crate::support::{behind_proxy, briefly_behind_proxy, children, connect, no_node_is_left};

const TABLE: &str = "/quotas";
const ALICE: &str = "/quotas/alice";

fn quotas(manager: &ConnectionManager) -> Table<i64> {
    Table::with_codec(manager, TABLE, Plain).unwrap()
}

async fn add(table: &Table<i64>) -> i64 {
    let added = table.update("alice", |quota| Some(quota.unwrap_or(&0) + 1)).await;
    added.unwrap().expect("an entry").value
}

#[tokio::test]
async fn a_change_of_an_entry_whose_reply_is_lost_is_applied_once() {
    for is_committed in [true, false] {
        let (ensemble, proxies, manager) = behind_proxy().await;
        let table = quotas(&manager);
        // The first change creates the node, the second one writes it.
        for expected in 1..=2 {
            let arming = proxies.on(Match::new().op(OpCode::Multi).path_contains(ALICE));
            let fault = if is_committed { arming.drop_reply_and_cut() } else { arming.cut_before_forward() };
            assert_eq!(add(&table).await, expected);
            assert!(fault.has_triggered());
        }
        let removed = table.remove("alice", None).await.unwrap();
        assert_eq!((removed, table.get("alice").await.unwrap()), (Removal::Removed, None));
        no_node_is_left(&ensemble, TABLE).await;
    }
}

#[tokio::test]
async fn all_changes_of_many_clients_are_in_the_entry_and_in_the_views() {
    let ensemble = Ensemble::lend().await.unwrap();
    let mut tables = Vec::new();
    for _ in 0..3 {
        tables.push(quotas(&connect(&ensemble.connect_string()).await));
    }
    let views: Vec<_> = tables.iter().map(|table| table.view().unwrap()).collect();
    let adds = tables.iter().cycle().take(30).map(add);
    let mut values = join_all(adds).await;
    values.sort_unstable();
    assert_eq!(values, (1..=30).collect::<Vec<_>>());
    for view in views {
        assert_eq!(view.sync().await.unwrap().get("alice").unwrap(), Some(&30));
    }
    no_node_is_left(&ensemble, ALICE).await;
}

async fn changed(manager: ConnectionManager, by: fn(u32) -> u32) -> Result<Txn<'static>, Error> {
    let (value, stat) = manager.znodes().read("/value").await?.expect("it was created");
    let value: u32 = String::from_utf8(value).unwrap().parse().unwrap();
    Ok(manager.txn().set("/value", by(value).to_string(), stat.version))
}

/// Three steps: one creates a node with 1, one adds 1, and one doubles.
fn migrations(manager: &ConnectionManager) -> Migrations {
    Migrations::new(manager, "/migrations")
        .unwrap()
        .step("create", 1, async |manager| Ok(manager.txn().create("/value", "1")))
        .step("add", 1, |manager| changed(manager, |value| value + 1))
        .step("double", 1, |manager| changed(manager, |value| value * 2))
}

#[tokio::test]
async fn of_a_fleet_that_starts_each_step_is_done_once_and_all_wait_for_it() {
    let ensemble = Ensemble::lend().await.unwrap();
    let mut fleet = Vec::new();
    for _ in 0..4 {
        fleet.push(migrations(&connect(&ensemble.connect_string()).await));
    }
    let done = join_all(fleet.iter().map(async |process| {
        let done = process.run().await.unwrap();
        let (value, _) = ensemble.raw().await.unwrap().data("/value").await.unwrap();
        assert_eq!(value, b"4", "it did not wait");
        done.steps
    }));
    let mut done = done.await.concat();
    done.sort();
    assert_eq!(done, ["add", "create", "double"]);
    no_node_is_left(&ensemble, "/migrations/lock").await;
}

#[tokio::test]
async fn a_step_of_a_process_whose_session_ends_is_done_once() {
    let (ensemble, proxies, doomed) = briefly_behind_proxy().await;
    doomed.znodes().ensure("/migrations/done").await.unwrap();
    let record = Match::new().op(OpCode::Multi).path_contains("/migrations/done/0001");
    let held = proxies.on(record).hold_reply();
    let first = tokio::spawn(async move { migrations(&doomed).run().await });
    timeout(Timing::event(), held.triggered()).await.expect("the second step").unwrap();
    proxies.sever_until_expired(proxies.sessions()[0].id).await.unwrap();
    let second = migrations(&connect(&ensemble.connect_string()).await);
    second.run().await.unwrap();
    first.await.unwrap().unwrap();
    let (value, _) = ensemble.raw().await.unwrap().data("/value").await.unwrap();
    assert_eq!(value, b"4");
    assert_eq!(children(&ensemble, "/migrations/done").await.len(), 3);
}

#[tokio::test]
async fn a_latch_opens_with_the_last_count_of_all_clients_and_again_in_the_next_generation() {
    let ensemble = Ensemble::lend().await.unwrap();
    let mut latches = Vec::new();
    for _ in 0..3 {
        latches.push(CountDownLatch::new(&connect(&ensemble.connect_string()).await, "/latch", 3).unwrap());
    }
    for generation in 0..2 {
        let waiting = join_all(latches.iter().map(|latch| latch.wait_timeout(Timing::settle())));
        let counting = async {
            let mut left = Vec::new();
            for latch in &latches {
                left.push(latch.count_down().await.unwrap());
            }
            left
        };
        let (waited, left) = tokio::join!(waiting, counting);
        assert!(waited.iter().all(Result::is_ok), "{waited:?}");
        assert_eq!(left, [2, 1, 0]);
        let resets = join_all(latches.iter().map(|latch| latch.reset(generation))).await;
        assert_eq!(resets.into_iter().filter(|reset| *reset.as_ref().unwrap()).count(), 1);
    }
}
