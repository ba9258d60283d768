//! Lost answers and lost sessions of a read/write lock.

use lockkeeper::error::LossReason;
use lockkeeper::manager::State;
use lockkeeper::{Owner, RwLock};
use lockkeeper_tests::{Match, OpCode, Timing, eventually};

use super::{PATH, contender_nodes, lock, writing};
use crate::support::{behind_proxy, children, connect, no_node_is_left, nodes_become};

#[tokio::test]
async fn a_downgrade_without_an_answer_is_done_once() {
    for is_done in [true, false] {
        let (ensemble, proxies, manager) = behind_proxy().await;
        let (lock, other) = (lock(&manager), lock(&connect(&ensemble.connect_string()).await));
        let write = lock.write().await.unwrap();
        let (token, session) = (write.fencing_token(), proxies.sessions()[0].id);
        let waiter = writing(&other);
        nodes_become(&ensemble, PATH, 2).await;
        let arming = proxies.on(Match::new().op(OpCode::Multi).path_contains("__READ__"));
        let fault = if is_done { arming.drop_reply_and_cut() } else { arming.cut_before_forward() };
        let read = write.downgrade().await.unwrap();
        assert!(fault.has_triggered());
        assert_eq!(read.fencing_token(), token);
        let nodes = contender_nodes(&ensemble).await;
        assert_eq!(nodes.len(), 2, "{nodes:?}");
        assert!(read.path().ends_with(&nodes[0]) && read.is_valid() && !waiter.is_finished());
        assert_eq!(proxies.sessions().iter().filter(|s| s.id != session).count(), 0, "another session");
        read.release().await.unwrap();
        waiter.await.unwrap().release().await.unwrap();
        no_node_is_left(&ensemble, PATH).await;
    }
}

#[tokio::test]
async fn a_read_under_a_write_without_an_answer_creates_one_node() {
    for is_done in [true, false] {
        let (ensemble, proxies, manager) = behind_proxy().await;
        let lock = lock(&manager).for_owner(&Owner::new("one"));
        let write = lock.write().await.unwrap();
        let arming = proxies.on(Match::new().op(OpCode::Multi).path_contains("__READ__"));
        let fault = if is_done { arming.drop_reply_and_cut() } else { arming.cut_before_forward() };
        let read = lock.read().await.unwrap();
        assert!(fault.has_triggered());
        assert_eq!(contender_nodes(&ensemble).await.len(), 2);
        drop((write, read));
        no_node_is_left(&ensemble, PATH).await;
    }
}

#[tokio::test]
async fn all_guards_of_an_expired_session_are_lost_and_must_be_dropped_before_the_next_acquire() {
    let (ensemble, proxies, manager) = behind_proxy().await;
    let lock = lock(&manager).for_owner(&Owner::new("one"));
    let write = lock.write().await.unwrap();
    let read = lock.read().await.unwrap();
    proxies.expire_session(proxies.sessions()[0].id).await.unwrap();
    assert_eq!(write.lost().await.reason, LossReason::SessionExpired);
    assert_eq!(read.lost().await.reason, LossReason::SessionExpired);
    let again = eventually("the next session", Timing::settle(), async || {
        matches!(manager.state(), State::Connected(_)).then_some(())
    });
    again.await.unwrap();
    assert!(lock.read().await.unwrap_err().is_lost());
    assert!(lock.try_write().await.unwrap_err().is_lost());
    assert!(write.downgrade().await.unwrap_err().is_lost());
    // The read guard alone is reason enough.
    assert!(lock.write().await.unwrap_err().is_lost());
    let error = read.try_upgrade().await.unwrap_err();
    assert!(!error.is_not_alone(), "{error}");
    drop(error.into_guard());
    let write = lock.write().await.unwrap();
    write.downgrade().await.unwrap().release().await.unwrap();
    no_node_is_left(&ensemble, PATH).await;
}

#[tokio::test]
async fn a_waiting_writer_of_an_expired_session_waits_behind_the_readers_of_the_next() {
    let (ensemble, proxies, manager) = behind_proxy().await;
    let (lock, other) = (lock(&manager), lock(&connect(&ensemble.connect_string()).await));
    let held = other.read().await.unwrap();
    let waiter = writing(&lock);
    nodes_become(&ensemble, PATH, 2).await;
    let before = contender_nodes(&ensemble).await;
    proxies.expire_session(proxies.sessions()[0].id).await.unwrap();
    let moved = eventually("a node of the next session", Timing::settle(), async || {
        let nodes = contender_nodes(&ensemble).await;
        (nodes.len() == 2 && nodes[1] != before[1]).then_some(())
    });
    moved.await.unwrap();
    assert!(!waiter.is_finished() && held.is_valid());
    held.release().await.unwrap();
    waiter.await.unwrap().release().await.unwrap();
}

#[tokio::test]
async fn a_release_waits_for_a_read_of_another_task_of_its_owner() {
    let (ensemble, proxies, manager) = behind_proxy().await;
    let lock = RwLock::new(&manager, "/rw").unwrap().for_owner(&Owner::new("two tasks"));
    let write = lock.write().await.unwrap();
    let answer = proxies.on(Match::new().op(OpCode::Multi).path_contains("__READ__")).hold_reply();
    let reading = tokio::spawn({
        let lock = lock.clone();
        async move { lock.read().await }
    });
    answer.triggered().await.unwrap();
    let releasing = tokio::spawn(write.release());
    // Both nodes exist: nothing has been released, and no caller was told otherwise.
    nodes_become(&ensemble, "/rw", 2).await;
    assert!(!releasing.is_finished());
    answer.release();
    releasing.await.unwrap().unwrap();
    let left = children(&ensemble, "/rw").await;
    assert!(left.len() == 1 && left[0].contains("__READ__"), "{left:?}");
    reading.await.unwrap().unwrap().release().await.unwrap();
}
