//! Below a chroot, every path that comes out of the library can go in again, and names the same node.

use std::sync::Arc;

use lockkeeper::locks::ZooKeeperLock;
use lockkeeper::manager::HoldEvent;
use lockkeeper::znodes::{CreateMode, TxnResult};
use lockkeeper::{
    ConnectionManager, MultiLock, MultiLockGuard, Mutex, Owner, RateLimiter, ReentrantMutex, Revoker, RwLock,
    Semaphore, ZnodePath,
};

use crate::limit::within;
use crate::server_fixture::{SESSION, ServerFixture, builder};

const CHROOT: &str = "/shop";

/// A manager below the chroot, and its server.
async fn below() -> (ServerFixture, ConnectionManager) {
    let server_fixture = ServerFixture::start().await.unwrap();
    let servers = format!("{}{CHROOT}", server_fixture.server.connect_string());
    let manager = builder(&servers).session_timeout(SESSION * 30).connect().await.unwrap();
    (server_fixture, manager)
}

type Make = fn(&ConnectionManager, &str) -> Arc<dyn ZooKeeperLock>;

/// Every lock that excludes another object of the same path.
const KINDS: [(&str, Make); 8] = [
    ("mutex", |manager, path| Arc::new(Mutex::new(manager, path).unwrap())),
    ("mutex in semaphore layout", |manager, path| {
        Arc::new(Mutex::in_semaphore_layout(manager, path).unwrap())
    }),
    ("reentrant mutex", |manager, path| {
        Arc::new(ReentrantMutex::new(manager, path).unwrap().for_owner(&Owner::new("a")))
    }),
    ("writer", |manager, path| Arc::new(RwLock::new(manager, path).unwrap().writer())),
    ("reader", |manager, path| Arc::new(RwLock::new(manager, path).unwrap().reader())),
    ("semaphore", |manager, path| Arc::new(Semaphore::new(manager, path, 1).unwrap().permits(1))),
    ("multi-lock", |manager, path| {
        let member = Mutex::new(manager, path).unwrap();
        Arc::new(MultiLock::builder().lock(&member).build().unwrap())
    }),
    ("multi-lock in place", |manager, path| {
        let member = Mutex::new(manager, path).unwrap();
        Arc::new(MultiLock::builder().lock(&member).atomic().build().unwrap())
    }),
];

/// Whether a node exists at a path that came out.
async fn exists(manager: &ConnectionManager, path: &str) -> bool {
    let path: ZnodePath = path.parse().unwrap();
    manager.znodes().read(&path).await.unwrap().is_some()
}

/// What one lock says of its own path, of its guard's, and of its nodes, names what it holds.
async fn paths_of_a_grant_go_in_again(name: &str, manager: &ConnectionManager, make: Make) {
    let lock = make(manager, "/locks/a");
    let mut events = lock.events();
    let guard = lock.acquire().await.unwrap();
    let Some(HoldEvent::Acquired { path, .. }) = within("an event", events.next()).await.unwrap() else {
        panic!("{name}: no grant is reported");
    };
    assert!(exists(manager, path.as_ref()).await, "{name}: the event names {path}");
    for (path, hold) in guard.members() {
        let node = hold.path();
        assert!(exists(manager, node).await, "{name}: the hold names {node}");
        assert_eq!(path.as_str(), lock.path().as_str(), "{name}");
        assert!(guard.fencing_token(path).is_some(), "{name}");
    }
    for inspection in lock.inspect().await.unwrap() {
        assert_eq!(inspection.path().as_str(), lock.path().as_str(), "{name}");
        for contender in inspection.contenders() {
            assert!(exists(manager, contender.path()).await, "{name}: inspected {}", contender.path());
            let asked = Revoker::new(manager).ask_node(contender.path()).await.unwrap();
            assert!(asked, "{name}: {} is not reached", contender.path());
        }
    }
    excludes_again(name, manager, &*lock, make, guard).await;
}

/// A lock that is made again, at the path that came out, is the same lock. A reader is asked by a writer.
async fn excludes_again(
    name: &str,
    manager: &ConnectionManager,
    lock: &dyn ZooKeeperLock,
    make: Make,
    guard: MultiLockGuard,
) {
    let again = make(manager, lock.path().as_str());
    assert_eq!(again.path().as_str(), lock.path().as_str(), "{name}");
    let rival = if name == "reader" {
        Arc::new(RwLock::new(manager, lock.path()).unwrap().writer()) as Arc<dyn ZooKeeperLock>
    } else {
        make(manager, lock.path().as_str())
    };
    let held = rival.try_acquire().await.unwrap();
    assert!(held.is_none(), "{name}: both are held at once: {:?} and {guard:?}", held);
    guard.release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lock_made_at_a_path_that_came_out_excludes_the_lock_that_it_came_out_of() {
    for (name, make) in KINDS {
        let (_server_fixture, manager) = below().await;
        paths_of_a_grant_go_in_again(name, &manager, make).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rate_limiter_made_at_a_path_that_came_out_counts_the_same_starts() {
    let (_server_fixture, manager) = below().await;
    let minute = std::time::Duration::from_secs(60);
    let limiter = RateLimiter::new(&manager, "/limits/a", 1, minute).unwrap();
    let admission = limiter.admit().await.unwrap();
    assert!(admission.is_fresh());
    let inspection = limiter.inspect().await.unwrap();
    let again = RateLimiter::new(&manager, inspection.path(), 1, minute).unwrap();
    assert!(again.try_admit().await.unwrap().admitted().is_none(), "two starts at once");
    assert_eq!(inspection.free(), Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_path_of_a_created_node_reads_that_node() {
    let (_server_fixture, manager) = below().await;
    let znodes = manager.znodes();
    for mode in [CreateMode::Persistent, CreateMode::PersistentSequential, CreateMode::Ephemeral] {
        let path: ZnodePath = format!("/stock/{mode:?}-").parse().unwrap();
        let created = znodes.create(&path, b"3", mode).await.unwrap();
        assert!(exists(&manager, created.as_ref()).await, "{created}");
    }
    let guard = Mutex::new(&manager, "/locks/a").unwrap().acquire().await.unwrap();
    let (plain, numbered): (ZnodePath, ZnodePath) =
        ("/stock/plain".parse().unwrap(), "/stock/sale-".parse().unwrap());
    let txn = guard.txn().create(plain, b"1".to_vec()).create_sequential(numbered, b"2".to_vec());
    let results = txn.commit().await.unwrap();
    assert_eq!(results.len(), 2);
    for result in results {
        let TxnResult::Created(path) = result else { panic!("{result:?}") };
        assert!(exists(&manager, path.as_ref()).await, "{path}");
    }
}
