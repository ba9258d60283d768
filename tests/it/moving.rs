//! Another list of servers for a living manager, on Apache ZooKeeper.

use lockkeeper::error::LossReason;
use lockkeeper::manager::State;
use lockkeeper::{Error, Mutex, TreeView};
use lockkeeper_tests::{Ensemble, Timing, bounded, left_out};

use crate::support::{connect, no_node_is_left, nodes_become};

fn list(ensemble: &Ensemble, indices: &[usize]) -> String {
    indices.iter().map(|index| ensemble.server(*index).address().to_string()).collect::<Vec<_>>().join(",")
}

#[tokio::test]
async fn a_hold_and_a_waiter_survive_while_all_their_servers_are_replaced_and_killed() {
    if left_out() {
        return;
    }
    let ensemble = Ensemble::builder().servers(3).lend().await.unwrap();
    let (holder, waiter) = (connect(&list(&ensemble, &[0, 1])).await, connect(&list(&ensemble, &[0])).await);
    let before = (holder.state(), waiter.state());
    let view = TreeView::new(&waiter, "/lock").unwrap();
    bounded(Timing::settle(), view.ready()).await.expect("in time").unwrap();
    let guard = Mutex::new(&holder, "/lock").unwrap().acquire().await.unwrap();
    let waiting = Mutex::new(&waiter, "/lock").unwrap();
    let waiting = tokio::spawn(async move { waiting.acquire().await });
    nodes_become(&ensemble, "/lock", 2).await;
    // Server 0 is replaced by server 2. The rest is a quorum.
    for manager in [&holder, &waiter] {
        manager.set_servers(&list(&ensemble, &[1, 2])).await.unwrap();
    }
    ensemble.server(0).kill().await.unwrap();
    ensemble.settled().await.unwrap();
    assert!(guard.is_valid() && !waiting.is_finished());
    // It joins again, in place of server 1.
    ensemble.server(0).restart().await.unwrap();
    ensemble.settled().await.unwrap();
    for manager in [&holder, &waiter] {
        manager.set_servers(&list(&ensemble, &[0, 2])).await.unwrap();
    }
    ensemble.server(1).kill().await.unwrap();
    ensemble.settled().await.unwrap();
    let token = guard.fencing_token();
    guard.release().await.unwrap();
    let next = bounded(Timing::settle(), waiting).await.expect("the grant").unwrap().unwrap();
    assert!(next.fencing_token() > token);
    assert_eq!((holder.state(), waiter.state()), before);
    assert_eq!(bounded(Timing::settle(), view.sync()).await.expect("in time").unwrap().len(), 2);
    next.release().await.unwrap();
    no_node_is_left(&ensemble, "/lock").await;
}

#[tokio::test]
async fn another_ensemble_ends_the_session_and_its_holds() {
    let (former, other) = (Ensemble::lend().await.unwrap(), Ensemble::lend().await.unwrap());
    let manager = connect(&former.connect_string()).await;
    let guard = Mutex::new(&manager, "/lock").unwrap().acquire().await.unwrap();
    bounded(Timing::settle(), manager.set_servers(&other.connect_string())).await.expect("in time").unwrap();
    assert_eq!(guard.lost().await.reason, LossReason::SessionExpired);
    assert!(matches!(manager.state(), State::Connected(epoch) if epoch.as_u64() == 2));
    // Which of the two has the greater transaction ids is chance.
    match Mutex::new(&manager, "/lock").unwrap().acquire().await {
        Ok(again) => assert!(again.is_valid()),
        Err(error) => assert!(matches!(error, Error::ServersReset { .. }), "{error:?}"),
    }
    nodes_become(&former, "/lock", 1).await;
    let closing = manager.shutdown().await;
    assert!(closing.is_ok(), "{closing:?}");
}
