//! How long a call takes at most, and futures that outlive the lock that made them.

use std::time::Duration;

use lockkeeper::locks::ZooKeeperLock;
use lockkeeper::manager::State;
use lockkeeper::znodes::CreateMode;
use lockkeeper::{ConnectionManager, MultiLock, Mutex, Owner, ReentrantMutex, RwLock, Semaphore};
use lockkeeper_tests::{Timing, bounded};

use crate::limit::within;
use crate::server_fixture::{LOCK, SESSION, ServerFixture, builder};

const STOCK: &str = "/stock";
const MARKER: &str = "/done/order-4711";

/// More than any test waits.
const LONG: Duration = Duration::from_secs(600);

/// A server with a node, and a client whose session outlasts the faults.
async fn start() -> (ServerFixture, ConnectionManager) {
    let server_fixture = ServerFixture::start().await.unwrap();
    let servers = server_fixture.server.connect_string();
    let manager = builder(&servers).session_timeout(Timing::scaled(SESSION * 30)).connect().await.unwrap();
    manager.znodes().create(STOCK, "3", CreateMode::Persistent).await.unwrap();
    (server_fixture, manager)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_frozen_server_keeps_no_call_for_longer_than_its_operation_timeout() {
    let (server_fixture, manager) = start().await;
    assert!(manager.with_operation_timeout(Duration::ZERO).is_err());
    let quick = manager.with_operation_timeout(Duration::from_millis(200)).unwrap();
    let mutex = Mutex::new(&quick, LOCK).unwrap();
    let (committing, releasing) = (mutex.acquire().await.unwrap(), Mutex::new(&quick, "/other").unwrap());
    let releasing = releasing.acquire().await.unwrap();
    server_fixture.server.freeze();
    // A single call would take longer than this limit with the manager's own timeout.
    let calls = async {
        let commit = committing.txn().set(STOCK, "2", -1).commit().await.unwrap_err();
        assert!(commit.outcome_unknown(), "{commit}");
        let once = committing.txn().set(STOCK, "2", -1).once(MARKER).commit().await.unwrap_err();
        assert!(once.outcome_unknown() || once.is_lost(), "{once}");
        assert!(releasing.release().await.is_err());
        assert!(quick.znodes().read(STOCK).await.is_err());
        assert!(quick.znodes().write(STOCK, "1", -1).await.is_err());
        assert!(mutex.inspect().await.is_err());
    };
    within("the calls", calls).await.unwrap();
    server_fixture.server.thaw();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shutdown_with_nothing_held_and_no_server_returns_at_once() {
    let (server_fixture, manager) = start().await;
    let mut transitions = manager.transitions();
    server_fixture.server.stop().await;
    while matches!(manager.state(), State::Connected(_)) {
        within("the loss of the connection", transitions.next()).await.unwrap();
    }
    // Far less than the session would last.
    let ended = bounded(Timing::scaled(SESSION * 10), manager.shutdown_within(LONG)).await.unwrap();
    assert!(ended.unwrap_err().is_timeout(), "no server confirmed it");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_owned_acquire_of_every_lock_can_be_spawned() {
    let (_server_fixture, manager) = start().await;
    let rw = RwLock::new(&manager, "/rw").unwrap();
    let mutex = Mutex::new(&manager, "/mutex").unwrap();
    let locks: [Box<dyn ZooKeeperLock>; 6] = [
        Box::new(mutex.clone()),
        Box::new(ReentrantMutex::new(&manager, "/reentrant").unwrap().for_owner(&Owner::new("a"))),
        Box::new(rw.reader()),
        Box::new(rw.writer()),
        Box::new(Semaphore::new(&manager, "/semaphore", 1).unwrap().permits(1)),
        Box::new(MultiLock::builder().lock(&mutex).build().unwrap()),
    ];
    for lock in locks {
        let acquiring = lock.acquire_owned();
        drop(lock);
        let guard = within("a grant", tokio::spawn(acquiring)).await.unwrap().unwrap().unwrap();
        guard.release().await.unwrap();
    }
}
