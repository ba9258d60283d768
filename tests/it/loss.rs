//! How and when a holder learns that its hold is lost.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use lockkeeper::error::LossReason;
use lockkeeper::manager::{Epoch, State};
use lockkeeper::{BootInstant, Error, Mutex, ReleaseError};
use lockkeeper_tests::{Direction, Ensemble, Proxies};

use crate::support::{
    behind_proxy, briefly_behind_proxy, builder, children, connect, connect_briefly, no_node_is_left,
    nodes_become,
};

fn epoch(state: State) -> Option<Epoch> {
    match state {
        State::Connected(epoch) | State::Suspended(epoch) | State::Lost(epoch, _) => Some(epoch),
        _ => None,
    }
}

#[tokio::test]
async fn a_holder_that_is_cut_off_learns_its_loss_before_another_contender_is_granted() {
    for direction in [Direction::Both, Direction::ToServer, Direction::ToClient] {
        let (ensemble, proxies, manager) = briefly_behind_proxy().await;
        let other = connect(&ensemble.connect_string()).await;
        let (mutex, others) = (Mutex::new(&manager, "/lock").unwrap(), Mutex::new(&other, "/lock").unwrap());
        let guard = Arc::new(mutex.acquire().await.unwrap());
        let valid_until = guard.valid_until();
        let earlier = Arc::clone(&guard);
        let next = tokio::spawn(async move {
            let guard = others.acquire().await.unwrap();
            // Asked at once: on a busy machine the task that waits for the loss is woken late.
            (earlier.lost().now_or_never().is_some(), guard)
        });
        nodes_become(&ensemble, "/lock", 2).await;
        proxies.hold(direction);
        let lost = guard.lost().await;
        let lost_at = BootInstant::now();
        assert_eq!(lost.reason, LossReason::LeaseRanOut, "{direction:?}");
        assert!(!guard.is_valid());
        assert!(lost_at >= valid_until, "given up early");
        let (is_told, granted) = next.await.unwrap();
        assert!(is_told, "{direction:?}: granted before the loss");
        assert!(granted.fencing_token() > guard.fencing_token());
        // Late, as in a paused process: the transaction writes nothing, and the release returns the loss.
        let error = guard.txn().create("/late", Vec::new()).commit().await.unwrap_err();
        assert!(error.is_lost());
        proxies.release(direction);
        let guard = Arc::into_inner(guard).unwrap();
        assert!(matches!(guard.release().await, Err(ReleaseError::Lost(_))));
        granted.release().await.unwrap();
        no_node_is_left(&ensemble, "/lock").await;
    }
}

#[tokio::test]
async fn a_loss_is_final_and_its_node_is_deleted_when_the_session_survives() {
    // The server is paused: it keeps the session, which the holder cannot know.
    let ensemble = Ensemble::lend().await.unwrap();
    let manager = connect_briefly(&ensemble.connect_string()).await;
    let mutex = Mutex::new(&manager, "/lock").unwrap();
    let guard = mutex.acquire().await.unwrap();
    ensemble.server(0).pause().await.unwrap();
    let lost = guard.lost().await;
    assert_eq!(lost.reason, LossReason::LeaseRanOut);
    ensemble.server(0).resume().await.unwrap();
    no_node_is_left(&ensemble, "/lock").await;
    manager.connected_timeout(Duration::from_secs(30)).await.unwrap();
    assert!(!guard.is_valid(), "a lost hold came back");
    mutex.acquire().await.unwrap().release().await.unwrap();
}

#[tokio::test]
async fn an_expired_session_loses_its_holds_and_a_new_one_is_opened() {
    let (ensemble, proxies, manager) = behind_proxy().await;
    let mut transitions = manager.transitions();
    let mutex = Mutex::new(&manager, "/lock").unwrap();
    let guard = mutex.acquire().await.unwrap();
    let first = epoch(manager.state()).unwrap();
    proxies.expire_session(proxies.sessions()[0].id).await.unwrap();
    assert_eq!(guard.lost().await.reason, LossReason::SessionExpired);
    let mut said = Vec::new();
    loop {
        let transition = transitions.next().await.unwrap();
        said.push(transition);
        if matches!(transition.state, State::Connected(epoch) if epoch > first) {
            break;
        }
    }
    assert!(said.iter().any(|transition| transition.state == State::Lost(first, LossReason::SessionExpired)));
    let numbers: Vec<u64> = said.iter().map(|transition| transition.number).collect();
    let expected: Vec<u64> = (numbers[0]..).take(numbers.len()).collect();
    assert_eq!(numbers, expected, "a transition was left out");
    assert!(!guard.is_valid());
    mutex.acquire().await.unwrap().release().await.unwrap();
    no_node_is_left(&ensemble, "/lock").await;
}

#[tokio::test]
async fn a_waiter_of_a_dead_session_gets_the_lock_on_its_next_one() {
    let (ensemble, proxies, manager) = behind_proxy().await;
    let other = connect(&ensemble.connect_string()).await;
    let (mutex, others) = (Mutex::new(&manager, "/lock").unwrap(), Mutex::new(&other, "/lock").unwrap());
    let held = others.acquire().await.unwrap();
    let waiter = tokio::spawn(async move { mutex.acquire().await.unwrap() });
    nodes_become(&ensemble, "/lock", 2).await;
    let before = children(&ensemble, "/lock").await;
    proxies.expire_session(proxies.sessions()[0].id).await.unwrap();
    nodes_become(&ensemble, "/lock", 2).await;
    assert_ne!(before, children(&ensemble, "/lock").await, "the old session's node is still there");
    held.release().await.unwrap();
    let guard = waiter.await.unwrap();
    assert!(guard.is_valid());
    assert_eq!(guard.hold().epoch().as_u64(), 2);
    guard.release().await.unwrap();
}

#[tokio::test]
async fn a_node_deleted_by_hand_is_a_loss_for_its_holder() {
    let ensemble = Ensemble::lend().await.unwrap();
    let manager = connect(&ensemble.connect_string()).await;
    let mutex = Mutex::new(&manager, "/lock").unwrap();
    let guard = mutex.acquire().await.unwrap();
    ensemble.raw().await.unwrap().delete(guard.path()).await.unwrap();
    // At once and exactly: the server itself refuses a transaction of the lost hold.
    let error = guard.txn().create("/late", Vec::new()).commit().await.unwrap_err();
    assert!(error.is_lost());
    assert!(manager.znodes().read("/late").await.unwrap().is_none());
    assert_eq!(guard.lost().await.reason, LossReason::NodeDeleted);

    // Without a write, by the confirmation of the holds.
    let guard = mutex.acquire().await.unwrap();
    ensemble.raw().await.unwrap().delete(guard.path()).await.unwrap();
    assert_eq!(guard.lost().await.reason, LossReason::NodeDeleted);
    assert!(matches!(guard.release().await, Err(ReleaseError::Lost(_))));
}

#[tokio::test]
async fn a_waiter_whose_node_is_deleted_by_hand_queues_again() {
    let ensemble = Ensemble::lend().await.unwrap();
    let (manager, other) =
        (connect(&ensemble.connect_string()).await, connect(&ensemble.connect_string()).await);
    let (mutex, others) = (Mutex::new(&manager, "/lock").unwrap(), Mutex::new(&other, "/lock").unwrap());
    let held = others.acquire().await.unwrap();
    let waiter = tokio::spawn(async move { mutex.acquire().await.unwrap() });
    nodes_become(&ensemble, "/lock", 2).await;
    let mine =
        children(&ensemble, "/lock").await.into_iter().find(|child| !held.path().ends_with(child)).unwrap();
    ensemble.raw().await.unwrap().delete(&format!("/lock/{mine}")).await.unwrap();
    nodes_become(&ensemble, "/lock", 2).await;
    assert!(!waiter.is_finished(), "granted without a node");
    held.release().await.unwrap();
    let guard = waiter.await.unwrap();
    assert!(!guard.path().ends_with(&mine));
    guard.release().await.unwrap();
}

#[tokio::test]
async fn work_under_a_lost_hold_is_dropped_and_not_polled_again() {
    let (_ensemble, proxies, manager) = briefly_behind_proxy().await;
    let mutex = Mutex::new(&manager, "/lock").unwrap();
    let guard = mutex.acquire().await.unwrap();
    assert_eq!(guard.run(async { 7 }).await.unwrap(), 7);
    proxies.hold(Direction::Both);
    let mut polls_when_invalid = 0;
    let endless = std::future::poll_fn(|context| {
        // The clock may pass the end within this poll; no further poll may follow.
        polls_when_invalid += usize::from(!guard.is_valid());
        // Woken again at once, like busy work.
        context.waker().wake_by_ref();
        std::task::Poll::<()>::Pending
    });
    let lost = guard.run(endless).await.unwrap_err();
    assert_eq!(lost.reason, LossReason::LeaseRanOut);
    proxies.release(Direction::Both);
    drop(guard);
    assert!(polls_when_invalid <= 1, "polled {polls_when_invalid} times after the loss");
}

#[tokio::test]
async fn the_kill_of_one_server_of_three_ends_no_session_and_no_hold() {
    let ensemble = Ensemble::builder().servers(3).lend().await.unwrap();
    let proxies = Proxies::start(&ensemble).await.unwrap();
    // The one that is killed may be the leader.
    let manager = builder(&proxies.connect_string()).session_timeout(Duration::from_secs(30));
    let manager = manager.connect().await.unwrap();
    let mut transitions = manager.transitions();
    let guard = Mutex::new(&manager, "/lock").unwrap().acquire().await.unwrap();
    let before = manager.state();
    let connected = (0..3).find(|index| proxies.proxy(*index).connections() > 0).unwrap();
    ensemble.server(connected).kill().await.unwrap();
    let mut seen = Vec::new();
    while seen.last() != Some(&before) {
        seen.push(transitions.next().await.unwrap().state);
    }
    assert_eq!(seen, [State::Suspended(epoch(before).unwrap()), before]);
    assert!(guard.is_valid());
    guard.release().await.unwrap();
    manager.shutdown().await.unwrap();
}

#[test]
fn the_end_of_the_managers_runtime_is_a_loss_that_wakes_its_holders() {
    let other = tokio::runtime::Runtime::new().unwrap();
    let ensemble = other.block_on(Ensemble::lend()).unwrap();
    let managers = tokio::runtime::Runtime::new().unwrap();
    let manager = managers.block_on(connect(&ensemble.connect_string()));
    let mutex = Mutex::new(&manager, "/lock").unwrap();
    let guard = managers.block_on(mutex.acquire()).unwrap();
    let (waiting, is_waiting) = tokio::sync::oneshot::channel();
    let holder = other.spawn(async move {
        let mut lost = std::pin::pin!(guard.lost());
        assert!(futures::poll!(&mut lost).is_pending());
        waiting.send(()).unwrap();
        lost.await.reason
    });
    other.block_on(is_waiting).unwrap();
    drop(managers);
    assert_eq!(other.block_on(holder).unwrap(), LossReason::RuntimeEnded);
    assert_eq!(manager.state(), State::Closed);
    let acquired = other.block_on(mutex.acquire());
    assert!(matches!(acquired, Err(Error::RuntimeEnded { .. })), "{acquired:?}");
}

#[tokio::test]
async fn a_lost_hold_is_not_valid_until_some_later_time() {
    let ensemble = Ensemble::lend().await.unwrap();
    let manager = connect(&ensemble.connect_string()).await;
    let guard = Mutex::new(&manager, "/lock").unwrap().acquire().await.unwrap();
    assert!(!guard.valid_until().remaining().is_zero());
    ensemble.raw().await.unwrap().delete(guard.path()).await.unwrap();
    guard.lost().await;
    assert!(guard.valid_until().remaining().is_zero());
}
