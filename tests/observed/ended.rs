//! The events of a hold that ended: a loss only of a hold, and never for a delete of our own.

use std::time::Duration;

use futures::FutureExt;
use lockkeeper::config::HandOffPolicy;
use lockkeeper::error::LossReason;
use lockkeeper::locks::ZooKeeperLock;
use lockkeeper::manager::{HoldEvent, HoldEvents};
use lockkeeper::{ConnectionManager, MultiLock, Mutex};
use lockkeeper_core::HoldExt;
use lockkeeper_testserver::{Fault, Op, TestServer, When};

use crate::connected;
use crate::recorded::recorder;
use crate::seen::Seen;

const LOST: &str = "hold lost";

/// After the answer to this read, all earlier requests are answered, and all earlier events have arrived.
async fn round_trip(manager: &ConnectionManager) {
    for _ in 0..3 {
        manager.znodes().read("/zookeeper").await.unwrap();
    }
}

/// The session watches every node that it holds.
async fn are_watched(server: &TestServer, nodes: usize) {
    server.wait_until(|machine| machine.watch_count(0) >= nodes).await;
}

async fn are_gone(server: &TestServer, manager: &ConnectionManager) {
    let nobody = |machine: &lockkeeper_testserver::machine::Machine| {
        machine.sessions().iter().all(|session| machine.tree().ephemerals(*session).next().is_none())
    };
    server.wait_until(nobody).await;
    round_trip(manager).await;
}

/// The kinds of the events so far.
fn kinds(events: &mut HoldEvents) -> Vec<&'static str> {
    let mut kinds = Vec::new();
    while let Some(Some(event)) = events.next().now_or_never() {
        kinds.push(match event {
            HoldEvent::Acquired { .. } => "acquired",
            HoldEvent::Released { .. } => "released",
            _ => "lost",
        });
    }
    kinds
}

fn locks(manager: &ConnectionManager) -> Vec<(&'static str, Box<dyn ZooKeeperLock>)> {
    let mutex = |path| Mutex::new(manager, path).unwrap();
    // A path is a member either of ordered locks only, or of atomic locks only.
    let both = |one, other| MultiLock::builder().lock(&mutex(one)).lock(&mutex(other));
    vec![
        ("mutex", Box::new(mutex("/locks/a"))),
        (
            "mutex that keeps its node",
            Box::new(mutex("/locks/a").with_handoff(HandOffPolicy::default()).unwrap()),
        ),
        ("in order", Box::new(both("/locks/a", "/locks/b").build().unwrap())),
        ("at once", Box::new(both("/locks/c", "/locks/d").atomic().build().unwrap())),
    ]
}

/// The event of the delete is processed after the end of the hold.
#[tokio::test]
async fn the_delete_of_a_released_guard_is_not_reported_as_a_loss() {
    for by_drop in [true, false] {
        for number in 0.. {
            let (seen, _listening) = Seen::begin();
            let (recorder, recorded) = recorder();
            let _recorder = metrics::set_default_local_recorder(&recorder);
            let (server, manager) = connected().await;
            let Some((name, lock)) = locks(&manager).into_iter().nth(number) else { break };
            let mut events = lock.events();
            let guard = lock.acquire().await.unwrap();
            let monitors: Vec<_> = guard.members().map(|(_, hold)| hold.monitor()).collect();
            are_watched(&server, monitors.len()).await;
            round_trip(&manager).await;
            match by_drop {
                true => drop(guard),
                false => guard.release().await.unwrap(),
            }
            are_gone(&server, &manager).await;
            for monitor in &monitors {
                assert!(
                    monitor.lost().now_or_never().is_none(),
                    "{name}, drop {by_drop}: given up, not lost"
                );
            }
            assert_eq!(seen.events(LOST).len(), 0, "{name}, drop {by_drop}: {:?}", seen.events(LOST));
            let kinds = kinds(&mut events);
            let holds = monitors.len();
            assert_eq!(kinds.iter().filter(|kind| **kind == "released").count(), holds, "{name}: {kinds:?}");
            assert_eq!(kinds.len(), 2 * holds, "{name}: {kinds:?}");
            let [released, dropped, lost, unconfirmed] = recorded.held();
            assert_eq!((released + dropped, lost + unconfirmed), (holds, 0), "{name}");
        }
    }
}

/// After a reconnect the client verifies the nodes that it held at that time.
#[tokio::test]
async fn a_guard_dropped_while_a_new_connection_is_verified_is_not_reported_as_lost() {
    let (seen, _listening) = Seen::begin();
    let (server, manager) = connected().await;
    let mutex = |path: &str| Mutex::new(&manager, path).unwrap();
    let (first, second) = (mutex("/locks/a"), mutex("/locks/b"));
    let taken = first.acquire().await.unwrap();
    let dropped = second.acquire().await.unwrap();
    let verify = server.fault(When::op(Op::GetEphemerals), Fault::HoldReply);
    assert!(server.delete_node(taken.path()));
    server.drop_connections();
    verify.hit().await;
    let (by_hand, node) = (taken.path().to_owned(), dropped.path().to_owned());
    drop(dropped);
    server.wait_until(|machine| machine.tree().node(&node).is_none()).await;
    verify.release();
    // The connection is not verified yet: the session, and with it the node, may have ended.
    assert_eq!(taken.lost().await.reason, LossReason::NodeMissing);
    round_trip(&manager).await;
    let lost: Vec<String> = seen.events(LOST).iter().map(|entry| entry.field("path").to_owned()).collect();
    assert_eq!(lost, [by_hand]);
}

#[tokio::test]
async fn a_guard_dropped_before_its_session_expires_is_not_reported_as_lost() {
    let (seen, _listening) = Seen::begin();
    let (server, manager) = connected().await;
    let mutex = Mutex::new(&manager, "/locks/a").unwrap();
    let guard = mutex.acquire().await.unwrap();
    let monitor = guard.hold().monitor();
    let mut events = ZooKeeperLock::events(&mutex);
    let delete = server.fault(When::op(Op::Delete), Fault::HoldRequest);
    drop(guard);
    delete.hit().await;
    let session = server.sessions()[0];
    assert!(server.expire(session));
    while manager.health().epoch.is_none_or(|epoch| epoch.as_u64() < 2) {
        tokio::task::yield_now().await;
    }
    let _ = monitor.lost().now_or_never();
    assert_eq!(seen.events(LOST).len(), 0, "{:?}", seen.events(LOST));
    assert_eq!(kinds(&mut events), ["released"]);
}

#[tokio::test]
async fn a_node_without_a_hold_is_not_reported_as_lost() {
    let (seen, _listening) = Seen::begin();
    let (server, manager) = connected().await;
    let keep = HandOffPolicy::default().idle_time(crate::SESSION / 3);
    let mutex = Mutex::new(&manager, "/locks/a").unwrap().with_handoff(keep).unwrap();
    let guard = mutex.acquire().await.unwrap();
    let (node, monitor) = (guard.path().to_owned(), guard.hold().monitor());
    guard.release().await.unwrap();
    are_watched(&server, 1).await;
    assert!(server.delete_node(&node));
    let lost = tokio::time::timeout(Duration::from_secs(20), monitor.lost()).await.unwrap();
    assert_eq!(lost.reason, LossReason::NodeDeleted);
    assert_eq!(seen.events(LOST).len(), 0, "{:?}", seen.events(LOST));
}

#[tokio::test]
async fn a_guard_whose_node_was_deleted_by_hand_is_reported_as_lost_once() {
    for is_released in [true, false] {
        for number in 0.. {
            let (seen, _listening) = Seen::begin();
            let (server, manager) = connected().await;
            let Some((name, lock)) = locks(&manager).into_iter().nth(number) else { break };
            let mut events = lock.events();
            let guard = lock.acquire().await.unwrap();
            let nodes: Vec<String> = guard.members().map(|(_, hold)| hold.path().to_string()).collect();
            if !is_released {
                are_watched(&server, nodes.len()).await;
            }
            assert!(server.delete_node(&nodes[0]));
            match is_released {
                // The delete that finds no node is the first report of the loss.
                true => assert!(guard.release().await.is_err(), "{name}"),
                false => {
                    tokio::time::timeout(Duration::from_secs(20), guard.lost()).await.unwrap();
                    drop(guard);
                }
            }
            are_gone(&server, &manager).await;
            let lost = seen.events(LOST);
            assert_eq!(lost.len(), 1, "{name}, released {is_released}: {lost:?}");
            assert_eq!(lost[0].field("path"), nodes[0]);
            assert_eq!(lost[0].field("reason"), "another client deleted its node");
            let lost = kinds(&mut events).into_iter().filter(|kind| *kind == "lost").count();
            assert_eq!(lost, 1, "{name}, released {is_released}");
        }
    }
}
