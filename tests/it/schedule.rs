//! Schedules on a real server.

use std::collections::BTreeSet;
use std::time::Duration;

use lockkeeper::schedule::{Missed, Slot};
use lockkeeper::znodes::CreateMode;
use lockkeeper::{ConnectionManager, Schedule};
use lockkeeper_tests::{Ensemble, Match, OpCode};

use crate::support::{behind_proxy, briefly_behind_proxy, children, connect, no_node_is_left, nodes_become};

const PATH: &str = "/schedule";
const SLOTS: &str = "/schedule/slots";
const LOCKS: &str = "/schedule/locks";
const WRITTEN: &str = "/written";

fn schedule(manager: &ConnectionManager, interval: Duration) -> Schedule {
    Schedule::new(manager, PATH, interval).unwrap().with_missed(Missed::CatchUp)
}

async fn write(slot: Slot) -> Result<(), lockkeeper::Error> {
    slot.done_with("written", |txn| txn.create_sequential(format!("{WRITTEN}/w-"), b"".to_vec())).await
}

#[tokio::test]
async fn a_fleet_does_each_slot_once_by_the_servers_time() {
    let ensemble = Ensemble::lend().await.unwrap();
    let first = connect(&ensemble.connect_string()).await;
    first.znodes().create(WRITTEN, b"", CreateMode::Persistent).await.unwrap();
    let interval = Duration::from_millis(200);
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..3 {
        let schedule = schedule(&connect(&ensemble.connect_string()).await, interval);
        tasks.spawn(async move {
            let mut slots = Vec::new();
            for _ in 0..4 {
                let slot = schedule.due().await.unwrap();
                slots.push(slot.begins());
                write(slot).await.unwrap();
            }
            slots
        });
    }
    let slots: Vec<_> = tasks.join_all().await.into_iter().flatten().collect();
    assert_eq!((slots.len(), slots.iter().collect::<BTreeSet<_>>().len()), (12, 12), "{slots:?}");
    assert_eq!(children(&ensemble, WRITTEN).await.len(), 12);
    // The server has made each record after the begin of its slot.
    let mut raw = ensemble.raw().await.unwrap();
    for name in children(&ensemble, SLOTS).await {
        let stat = raw.exists(&format!("{SLOTS}/{name}")).await.unwrap().unwrap();
        assert!(stat.ctime >= name.parse().unwrap(), "{name} was recorded at {}", stat.ctime);
    }
    let seen = schedule(&first, interval).inspect().await.unwrap();
    assert_eq!(seen.last().map(|last| last.slot()), slots.iter().max().copied());
    no_node_is_left(&ensemble, LOCKS).await;
}

#[tokio::test]
async fn a_slot_of_an_expired_session_is_due_again_and_recorded_once() {
    let (ensemble, proxies, doomed) = briefly_behind_proxy().await;
    let other = connect(&ensemble.connect_string()).await;
    other.znodes().create(WRITTEN, b"", CreateMode::Persistent).await.unwrap();
    let interval = Duration::from_millis(300);
    let slot = schedule(&doomed, interval).due().await.unwrap();
    let begins = slot.begins();
    let waiting = tokio::spawn({
        let schedule = schedule(&other, interval);
        async move { schedule.due().await.unwrap() }
    });
    nodes_become(&ensemble, LOCKS, 2).await;
    proxies.sever_until_expired(proxies.sessions()[0].id).await.unwrap();
    let again = waiting.await.unwrap();
    assert_eq!(again.begins(), begins);
    assert!(!slot.is_valid(), "two have one slot");
    write(again).await.unwrap();
    assert!(write(slot).await.unwrap_err().is_lost());
    assert_eq!(children(&ensemble, WRITTEN).await.len(), 1);
    no_node_is_left(&ensemble, LOCKS).await;
}

#[tokio::test]
async fn a_lost_reply_records_a_slot_with_its_writes_once() {
    for is_committed in [true, false] {
        let (ensemble, proxies, manager) = behind_proxy().await;
        manager.znodes().create(WRITTEN, b"", CreateMode::Persistent).await.unwrap();
        let schedule = schedule(&manager, Duration::from_millis(300));
        let slot = schedule.due().await.unwrap();
        let begins = slot.begins();
        let arming = proxies.on(Match::new().op(OpCode::Multi).path_contains(SLOTS));
        let fault = if is_committed { arming.drop_reply_and_cut() } else { arming.cut_before_forward() };
        write(slot).await.unwrap();
        assert!(fault.has_triggered());
        assert_eq!(children(&ensemble, WRITTEN).await.len(), 1);
        let last = schedule.inspect().await.unwrap().last().map(|last| last.slot());
        assert_eq!(last, Some(begins));
        no_node_is_left(&ensemble, LOCKS).await;
    }
}
