//! Servers that lose their data, under a client that lives on.

use std::time::Duration;

use lockkeeper::error::{ErrorKind, Outcome};
use lockkeeper::locks::ZooKeeperLock;
use lockkeeper::{
    ConnectionManager, Counter, DoubleBarrier, Error, IdBlocks, Mutex, RateLimiter, RwLock, Semaphore,
    SharedValue,
};
use lockkeeper_testserver::TestServer;

use crate::limit::within;
use crate::server_fixture::{TICK, builder, children, servers};

async fn server_at(port: u16) -> TestServer {
    loop {
        let server = servers().port(port).tick(TICK);
        match server.session_timeouts(TICK * 2, Duration::from_secs(60)).start().await {
            Ok(server) => return server,
            // The server before still has the port.
            Err(_) => tokio::task::yield_now().await,
        }
    }
}

/// A server without data at the port of this one.
async fn wiped(server: TestServer) -> TestServer {
    let port = server.port();
    server.stop().await;
    drop(server);
    within("the port", server_at(port)).await.unwrap()
}

async fn client(server: &TestServer) -> ConnectionManager {
    let builder = builder(&server.connect_string()).operation_timeout(Duration::from_secs(60));
    builder.connect().await.unwrap()
}

/// Raises the transaction id.
async fn used(manager: &ConnectionManager) -> Mutex {
    let mutex = Mutex::new(manager, "/locks/mutex").unwrap();
    for _ in 0..20 {
        mutex.acquire().await.unwrap().release().await.unwrap();
    }
    mutex
}

fn assert_reset(refused: &Error) {
    assert!(matches!(refused, Error::ServersReset { seen, now, .. } if now < seen), "{refused}");
    assert_eq!((refused.kind(), refused.outcome()), (ErrorKind::Misuse, Outcome::NotApplied));
    assert!(!refused.is_transient() && refused.to_string().contains("token_generation"), "{refused}");
}

/// The create of the window is the first write that shows it.
#[tokio::test]
async fn a_limiter_admits_nothing_on_servers_that_have_lost_its_window() {
    let server = server_at(0).await;
    let manager = client(&server).await;
    used(&manager).await;
    let limiter = RateLimiter::new(&manager, "/starts", 1, Duration::from_secs(600)).unwrap();
    drop(limiter.admit().await.unwrap());
    let _server = wiped(server).await;
    // In the next session. A read shows nothing.
    within("a connection", manager.znodes().read("/")).await.unwrap().unwrap();
    let another = RateLimiter::new(&manager, "/others", 1, Duration::from_secs(600)).unwrap();
    for limiter in [another, limiter] {
        assert_reset(&within("an answer", limiter.admit()).await.unwrap().unwrap_err());
        assert_reset(&within("an answer", limiter.try_admit()).await.unwrap().unwrap_err());
    }
}

#[tokio::test]
async fn a_manager_that_has_seen_the_servers_go_back_grants_nothing() {
    let server = server_at(0).await;
    let manager = client(&server).await;
    let mutex = used(&manager).await;
    let guard = mutex.acquire().await.unwrap();
    let last = guard.fencing_token();
    let server = wiped(server).await;
    let refused = within("an acquire", mutex.acquire()).await.unwrap().unwrap_err();
    assert_reset(&refused);
    assert!(guard.check().is_err(), "a hold of the servers before");
    let rw_lock = RwLock::new(&manager, "/locks/rw").unwrap();
    let semaphore = Semaphore::new(&manager, "/locks/semaphore", 3).unwrap();
    let kept = Mutex::new(&manager, "/locks/kept").unwrap();
    let kept = kept.with_handoff(lockkeeper::config::HandOffPolicy::default()).unwrap();
    let locks: [Box<dyn ZooKeeperLock>; 5] = [
        Box::new(rw_lock.reader()),
        Box::new(rw_lock.writer()),
        Box::new(semaphore.permits(1)),
        Box::new(kept),
        Box::new(mutex),
    ];
    for lock in locks {
        assert_reset(&within("an acquire", lock.acquire()).await.unwrap().unwrap_err());
        assert_reset(&within("a try", lock.try_acquire()).await.unwrap().unwrap_err());
    }
    let barrier = DoubleBarrier::new(&manager, "/locks/barrier", 1).unwrap();
    assert_reset(&within("an entry", barrier.enter()).await.unwrap().unwrap_err());
    let left = server.wait_until(|machine| {
        machine.sessions().iter().all(|session| machine.tree().ephemerals(*session).next().is_none())
    });
    within("no node", left).await.unwrap();
    // The way out: processes that are started with the next generation of tokens.
    let next = builder(&server.connect_string()).token_generation(1).connect().await.unwrap();
    let mutex = Mutex::new(&next, "/locks/mutex").unwrap();
    assert!(within("an acquire", mutex.acquire()).await.unwrap().unwrap().fencing_token() > last);
}

#[tokio::test]
async fn no_id_is_given_out_twice_by_a_process_that_lives_while_the_servers_lose_their_data() {
    let server = server_at(0).await;
    let manager = client(&server).await;
    used(&manager).await;
    let ids = IdBlocks::new(&manager, "/ids", 4).unwrap();
    let mut given = Vec::new();
    for _ in 0..6 {
        given.push(ids.next().await.unwrap());
    }
    let _server = wiped(server).await;
    let refused = loop {
        match within("an id", ids.next()).await.unwrap() {
            Ok(id) => given.push(id),
            Err(error) => break error,
        }
    };
    assert_reset(&refused);
    assert_eq!(given, (1..=given.len() as i64).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_write_to_the_restored_data_is_of_unknown_outcome_and_the_next_one_is_not_applied() {
    let server = server_at(0).await;
    let manager = client(&server).await;
    used(&manager).await;
    let value = SharedValue::new(&manager, "/value", String::new()).unwrap();
    value.set("before".to_owned()).await.unwrap();
    let server = wiped(server).await;
    let unknown = within("a write", value.set("after".to_owned())).await.unwrap().unwrap_err();
    assert_eq!(unknown.kind(), ErrorKind::Unknown, "{unknown}");
    assert!(unknown.to_string().contains("token_generation"), "{unknown}");
    assert_eq!(value.get().await.unwrap().value, "after");
    assert_reset(&value.set("again".to_owned()).await.unwrap_err());
    let counter = Counter::new(&manager, "/counter").unwrap();
    assert_reset(&counter.add(1).await.unwrap_err());
    assert_eq!(counter.get().await.unwrap(), 0, "a read shows what is there");
    assert!(server.inspect(|machine| children(machine, "/counter").is_empty()));
}
