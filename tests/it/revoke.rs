//! Revocation: asking a holder to release, and releasing by force.

use lockkeeper::error::{ConfigError, LossReason};
use lockkeeper::locks::ZooKeeperLock;
use lockkeeper::manager::HoldEvent;
use lockkeeper::znodes::CreateMode;
use lockkeeper::{Error, MultiLock, Mutex, ReleaseError, Revoker, Semaphore};
use lockkeeper_tests::{Ensemble, OpCode, Proxies, Record, Timing, eventually};

use crate::support::{LONG, behind_proxy, builder, connect, no_node_is_left};

#[tokio::test]
async fn a_revoke_request_reaches_the_holder_and_ends_no_hold() {
    let ensemble = Ensemble::shared().await.unwrap();
    let (one, ops) = (connect(&ensemble.connect_string()).await, connect(&ensemble.connect_string()).await);
    let semaphore = Semaphore::new(&one, "/revoke/ask", 5).unwrap();
    let (lease, other) = (semaphore.acquire_many(3).await.unwrap(), semaphore.acquire().await.unwrap());
    let revoker = Revoker::new(&ops);
    let mut not_requested = std::pin::pin!(other.revoke_requested());
    assert!(futures::poll!(&mut not_requested).is_pending());

    // A request for one of its nodes is enough.
    let node = lease.hold().paths().last().unwrap().to_owned();
    let asked = tokio::spawn(async move {
        lease.revoke_requested().await.unwrap();
        lease.revoke_requested().await.unwrap();
        assert!(lease.is_valid());
        lease.release().await.unwrap();
    });
    assert!(revoker.ask_node(node.as_str()).await.unwrap());
    asked.await.unwrap();
    assert!(!revoker.ask_node(node.as_str()).await.unwrap(), "the node is deleted");
    assert!(futures::poll!(&mut not_requested).is_pending());
    assert_eq!(revoker.ask(semaphore.inspect().await.unwrap().holders()).await.unwrap().len(), 1);
    not_requested.await.unwrap();
}

#[tokio::test]
async fn a_revoke_request_survives_a_reconnect_and_a_loss_replaces_it() {
    let (ensemble, proxies, manager) = behind_proxy().await;
    let guard = Mutex::new(&manager, "/lock").unwrap().acquire().await.unwrap();
    let path = guard.path().to_owned();
    let asked = tokio::spawn(async move {
        guard.revoke_requested().await.unwrap();
        guard
    });
    proxies.cut().await.unwrap();
    ensemble.raw().await.unwrap().set_data(&path, b"__REVOKE__").await.unwrap();
    let guard = asked.await.unwrap();
    guard.release().await.unwrap();

    let guard = Mutex::new(&manager, "/lock").unwrap().acquire().await.unwrap();
    let mut revocation = std::pin::pin!(guard.revoke_requested());
    assert!(futures::poll!(&mut revocation).is_pending());
    ensemble.raw().await.unwrap().delete(guard.path()).await.unwrap();
    assert!(matches!(revocation.await, Err(Error::Lost(lost)) if lost.reason == LossReason::NodeDeleted));
}

#[tokio::test]
async fn a_guard_of_several_locks_reports_the_first_revoke_request() {
    let ensemble = Ensemble::shared().await.unwrap();
    let manager = connect(&ensemble.connect_string()).await;
    let (a, b) = (Mutex::new(&manager, "/revoke/m/a").unwrap(), Mutex::new(&manager, "/revoke/m/b").unwrap());
    let guard = MultiLock::builder().lock(&a).lock(&b).build().unwrap().acquire().await.unwrap();
    Revoker::new(&manager).ask(b.inspect().await.unwrap().holders()).await.unwrap();
    guard.revoke_requested().await.unwrap();
    guard.release().await.unwrap();
}

#[tokio::test]
async fn a_forced_release_returns_the_token_and_the_holder_learns_its_loss_at_once() {
    let ensemble = Ensemble::lend().await.unwrap();
    let one = builder(&ensemble.connect_string()).session_timeout(LONG).connect().await.unwrap();
    let ops = connect(&ensemble.connect_string()).await;
    let mutex = Mutex::new(&one, "/lock").unwrap();
    let mut events = mutex.events();
    let guard = mutex.acquire().await.unwrap();
    let mut ticket = Mutex::new(&ops, "/lock").unwrap().enqueue().await.unwrap();
    // A long hold watches its node, in addition to the waiter's two watches.
    eventually("a watch on the holder's node", Timing::settle(), || async {
        let watches = lockkeeper_tests::inspect::watches(ensemble.server(0).address()).await.ok()?;
        watches.contains_key(guard.path().as_str()).then_some(())
    })
    .await
    .unwrap();

    let seen = mutex.inspect().await.unwrap();
    let by_pid = seen.holders().filter(|of| of.identity().pid() == Some(std::process::id()));
    let gone = Revoker::new(&ops).force_release(by_pid).await.unwrap();
    assert_eq!(gone[0].fencing_token(), Some(guard.fencing_token()));
    assert_eq!(guard.lost().await.reason, LossReason::NodeDeleted);
    assert!(!guard.is_valid());
    let granted = ticket.wait().await.unwrap();
    assert!(granted.fencing_token() > guard.fencing_token());
    let error = guard.txn().create("/late", Vec::new()).commit().await.unwrap_err();
    assert!(error.is_lost());
    assert!(matches!(guard.release().await, Err(ReleaseError::Lost(_))));
    assert!(matches!(events.next().await, Some(HoldEvent::Acquired { .. })));
    assert!(
        matches!(events.next().await, Some(HoldEvent::Lost { .. })),
        "the guard reports a revoke request that was never made"
    );
    assert!(Revoker::new(&ops).force_release_node(seen.contenders()[0].path()).await.unwrap().is_none());
    granted.release().await.unwrap();
    no_node_is_left(&ensemble, "/lock").await;
}

#[tokio::test]
async fn only_the_chosen_contenders_are_deleted_and_no_other_node() {
    let ensemble = Ensemble::shared().await.unwrap();
    let manager = connect(&ensemble.connect_string()).await;
    let semaphore = Semaphore::new(&manager, "/revoke/chosen", 4).unwrap();
    let leases = [semaphore.acquire().await.unwrap(), semaphore.acquire().await.unwrap()];
    let seen = semaphore.inspect().await.unwrap();
    let later = semaphore.acquire().await.unwrap();
    let revoker = Revoker::new(&manager);
    let chosen = seen.holders().filter(|of| of.path() == leases[1].path());
    assert_eq!(revoker.force_release(chosen).await.unwrap().len(), 1);
    assert_eq!(leases[1].lost().await.reason, LossReason::NodeDeleted);
    assert_eq!(
        revoker.force_release(seen.holders()).await.unwrap().len(),
        1,
        "one of the two was deleted before"
    );
    assert_eq!(leases[0].lost().await.reason, LossReason::NodeDeleted);
    later.release().await.unwrap();

    let config = "/revoke/chosen/config";
    manager.znodes().create(config, b"x", CreateMode::Persistent).await.unwrap();
    for path in [config, "/", "/revoke"] {
        let error = revoker.force_release_node(path).await.unwrap_err();
        assert!(matches!(error, Error::Config(ConfigError::Setting { name: "node", .. })), "{path}: {error}");
        assert!(revoker.ask_node(path).await.is_err());
    }
    assert!(manager.znodes().read(config).await.unwrap().is_some());
}

#[tokio::test]
async fn a_short_hold_sets_no_watch() {
    let ensemble = Ensemble::lend().await.unwrap();
    let proxies = Proxies::start(&ensemble).await.unwrap();
    let manager = builder(&proxies.connect_string()).session_timeout(LONG).connect().await.unwrap();
    let mutex = Mutex::new(&manager, "/lock").unwrap();
    mutex.acquire().await.unwrap().release().await.unwrap();
    let guard = mutex.acquire().await.unwrap();
    let path = guard.path().to_owned();
    eventually("a read of the holder's node", Timing::settle(), || async {
        let is_read = |request: &Record| {
            request.op == OpCode::GetData && request.path.as_deref() == Some(path.as_str())
        };
        proxies.log().requests().any(is_read).then_some(())
    })
    .await
    .unwrap();
    // One for the long hold, none for the short one.
    let log = proxies.log();
    assert_eq!(log.requests().filter(|request| request.op == OpCode::GetData).count(), 1);
    guard.release().await.unwrap();
}
