//! The orderly shutdown of a manager, and its health.

use std::time::Duration;

use lockkeeper::error::LossReason;
use lockkeeper::locks::ZooKeeperLock;
use lockkeeper::manager::{HoldEvent, State};
use lockkeeper::{Mutex, Owner, RateLimiter, ReentrantMutex, RwLock, Semaphore};
use lockkeeper_tests::{Direction, Ensemble, Timing, eventually};

use crate::support::{behind_proxy, builder, children, connect, nodes_become};

/// More than any test waits.
const LONG: Duration = Duration::from_secs(600);

#[tokio::test]
async fn a_shutdown_refuses_waiters_and_waits_for_holders() {
    let ensemble = Ensemble::lend().await.unwrap();
    let (manager, other) =
        (connect(&ensemble.connect_string()).await, connect(&ensemble.connect_string()).await);
    let mutex = ReentrantMutex::new(&manager, "/lock").unwrap();
    let owner = Owner::new("a");
    let guard = mutex.acquire(&owner).await.unwrap();
    let theirs = Mutex::new(&other, "/theirs").unwrap().acquire().await.unwrap();
    let semaphore = Semaphore::new(&manager, "/permits", 1).unwrap();
    let lease = semaphore.acquire().await.unwrap();
    let calls = RateLimiter::new(&manager, "/calls", 1, LONG).unwrap();
    drop(calls.admit().await.unwrap());
    let lock = RwLock::new(&manager, "/rw").unwrap();
    let read = lock.read().await.unwrap();

    let queued = Mutex::new(&manager, "/theirs").unwrap();
    // Behind a holder of their own process, which keeps its hold.
    let ours = Mutex::new(&manager, "/ours").unwrap();
    let held = ours.acquire().await.unwrap();
    let waiters = [
        tokio::spawn(async move { ours.acquire().await.map(drop) }),
        tokio::spawn(async move { queued.acquire().await.map(drop) }),
        tokio::spawn({
            let semaphore = semaphore.clone();
            async move { semaphore.acquire().await.map(drop) }
        }),
        tokio::spawn({
            let lock = lock.clone();
            async move { lock.write().await.map(drop) }
        }),
        tokio::spawn(async move { calls.admit().await.map(drop) }),
    ];
    for (path, nodes) in [("/ours", 2), ("/theirs", 2), ("/permits/locks", 1), ("/rw", 2), ("/calls", 1)] {
        nodes_become(&ensemble, path, nodes).await;
    }
    let ending = tokio::spawn({
        let manager = manager.clone();
        async move { manager.shutdown_within(LONG).await }
    });
    for waiter in waiters {
        let sent_away = tokio::time::timeout(Timing::settle(), waiter).await.expect("an answer");
        assert!(sent_away.unwrap().unwrap_err().is_closed());
    }
    // The holders are not affected.
    assert!(guard.is_valid() && lease.is_valid() && read.is_valid());
    assert!(manager.health().is_closing && !manager.health().is_ready());
    assert_eq!(manager.health().held, 4);
    assert!(Mutex::new(&manager, "/new").unwrap().try_acquire().await.unwrap_err().is_closed());
    guard.txn().create("/written", Vec::new()).commit().await.unwrap();
    assert!(manager.znodes().read("/written").await.unwrap().is_some());
    mutex.acquire(&owner).await.unwrap().release().await.unwrap();
    assert!(!ending.is_finished());
    guard.release().await.unwrap();
    read.release().await.unwrap();
    drop((lease, held));
    assert_eq!(ending.await.unwrap().unwrap(), 0);
    assert_eq!(manager.state(), State::Closed);
    for path in ["/lock", "/permits/leases", "/permits/locks", "/rw", "/calls/locks"] {
        assert_eq!(children(&ensemble, path).await, Vec::<String>::new(), "{path}");
    }
    drop(theirs);
}

#[tokio::test]
async fn a_holder_that_does_not_release_in_time_is_lost_and_reported() {
    let ensemble = Ensemble::lend().await.unwrap();
    let manager = connect(&ensemble.connect_string()).await;
    let mutex = Mutex::new(&manager, "/lock").unwrap();
    let mut events = mutex.events();
    let guard = mutex.acquire().await.unwrap();
    assert_eq!(manager.shutdown_within(Duration::from_secs(4)).await.unwrap(), 1);
    assert_eq!(guard.lost().await.reason, LossReason::Closed);
    assert!(matches!(events.next().await, Some(HoldEvent::Acquired { .. })));
    assert!(matches!(events.next().await, Some(HoldEvent::Lost { .. })));
    assert_eq!(children(&ensemble, "/lock").await, Vec::<String>::new());
}

#[tokio::test]
async fn a_shutdown_that_is_dropped_grants_nothing_more_and_can_be_continued() {
    let ensemble = Ensemble::lend().await.unwrap();
    let manager = connect(&ensemble.connect_string()).await;
    let mutex = Mutex::new(&manager, "/lock").unwrap();
    let guard = mutex.acquire().await.unwrap();
    let given_up = tokio::time::timeout(Duration::from_millis(100), manager.shutdown_within(LONG)).await;
    assert!(given_up.is_err());
    assert!(guard.is_valid());
    assert!(mutex.acquire().await.unwrap_err().is_closed());
    guard.release().await.unwrap();
    assert_eq!(manager.shutdown_within(LONG).await.unwrap(), 0);
}

#[tokio::test]
async fn a_dead_server_does_not_delay_a_shutdown_beyond_its_limit() {
    let ensemble = Ensemble::lend().await.unwrap();
    let manager =
        builder(&ensemble.connect_string()).session_timeout(Duration::from_secs(10)).connect().await.unwrap();
    let guard = Mutex::new(&manager, "/lock").unwrap().acquire().await.unwrap();
    ensemble.server(0).pause().await.unwrap();
    let releasing = tokio::spawn(guard.release());
    let limit = Duration::from_millis(800);
    let ended = tokio::time::timeout(Timing::event(), manager.shutdown_within(limit)).await;
    let error = ended.expect("the shutdown ends by itself").unwrap_err();
    assert!(error.is_timeout(), "{error}");
    assert!(releasing.await.unwrap().is_err());
    ensemble.server(0).resume().await.unwrap();
}

#[tokio::test]
async fn health_shows_the_link_the_lease_and_the_pending_deletes() {
    let (_ensemble, proxies, manager) = behind_proxy().await;
    let healthy = manager.health();
    assert!(healthy.is_ready() && healthy.can_read && healthy.can_write, "{healthy}");
    assert_eq!((healthy.epoch.map(|epoch| epoch.as_u64()), healthy.held), (Some(1), 0));
    assert!(healthy.lease_left.unwrap() > Duration::ZERO);

    let guard = Mutex::new(&manager, "/lock").unwrap().acquire().await.unwrap();
    assert_eq!(manager.health().held, 1);
    proxies.refuse().await.unwrap();
    proxies.cut().await.unwrap();
    health_becomes(&manager, "cut off", |health| !health.can_read && !health.can_write).await;
    assert!(!manager.health().is_ready());
    drop(guard);
    let health = manager.health();
    assert_eq!((health.held, health.pending_deletes), (0, 1), "{health}");
    assert!(health.to_string().contains("0 held, 1 to delete; neither reads nor writes"), "{health}");
    proxies.accept().await.unwrap();
    health_becomes(&manager, "back", |health| health.is_ready() && health.pending_deletes == 0).await;
    manager.shutdown().await.unwrap();
    let health = manager.health();
    assert_eq!((health.state, health.lease_left, health.is_ready()), (State::Closed, None, false));
}

#[tokio::test]
async fn a_link_over_which_no_write_is_answered_is_not_ready() {
    let (_ensemble, proxies, manager) = behind_proxy().await;
    let guard = Mutex::new(&manager, "/lock").unwrap().acquire().await.unwrap();
    // As with a server without a quorum: the link is up, and the confirmations get no answer.
    proxies.hold(Direction::ToClient);
    health_becomes(&manager, "silent", |health| !health.can_write).await;
    proxies.release(Direction::ToClient);
    drop(guard);
    let _ = manager.connected_timeout(Timing::settle()).await;
    health_becomes(&manager, "back", |health| health.is_ready()).await;
}

async fn health_becomes(
    manager: &lockkeeper::ConnectionManager,
    what: &str,
    is_so: impl Fn(lockkeeper::manager::Health) -> bool,
) {
    let seen = eventually(format!("health: {what}"), Timing::settle(), || async {
        is_so(manager.health()).then_some(())
    });
    seen.await.unwrap_or_else(|error| panic!("{error}: {}", manager.health()));
}
