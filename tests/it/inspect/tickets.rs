//! Queue tickets: the node is created first, and the wait comes later.

use std::time::Duration;

use lockkeeper::error::SemaphoreError;
use lockkeeper::manager::State;
use lockkeeper::{ConnectionManager, Mutex, Owner, ReentrantMutex, RwLock, Semaphore};
use lockkeeper_tests::{After, Ensemble, dropped_after};

use crate::support::{behind_proxy, connect, no_node_is_left, nodes_become};

const SHORTLY: Duration = Duration::from_millis(100);

async fn manager() -> (&'static Ensemble, ConnectionManager) {
    let ensemble = Ensemble::shared().await.unwrap();
    (ensemble, connect(&ensemble.connect_string()).await)
}

#[tokio::test]
async fn a_ticket_keeps_its_node_when_a_wait_times_out_or_is_dropped() {
    let (ensemble, manager) = manager().await;
    for (path, below) in [("/tickets/mutex", ""), ("/tickets/semaphore", "/locks")] {
        let mutex = match below {
            "" => Mutex::new(&manager, path).unwrap(),
            _ => Mutex::in_semaphore_layout(&manager, path).unwrap(),
        };
        // In semaphore layout the holder's node is in another directory.
        let holder_nodes = u32::from(below.is_empty());
        let queue = format!("{path}{below}");
        let guard = mutex.acquire().await.unwrap();
        let mut first = mutex.enqueue().await.unwrap();
        let mut second = mutex.enqueue().await.unwrap();
        assert_eq!((first.position(), second.position()), (Some(holder_nodes), Some(holder_nodes + 1)));

        for polls in 0..6 {
            if let After::Done(done) = dropped_after(polls, first.wait()).await {
                panic!("granted while the lock is held: {done:?}");
            }
        }
        let error = first.wait_timeout(SHORTLY).await.unwrap_err();
        assert!(error.is_timeout(), "{error}");
        let error = second.wait_timeout(Duration::ZERO).await.unwrap_err();
        assert!(error.is_timeout(), "{error}");
        nodes_become(ensemble, &queue, holder_nodes as usize + 2).await;

        guard.release().await.unwrap();
        let guard = first.wait().await.unwrap();
        assert!(guard.is_valid());
        assert_eq!(second.refresh().await.unwrap(), holder_nodes);
        assert!(second.wait_timeout(SHORTLY).await.unwrap_err().is_timeout());
        guard.release().await.unwrap();
        second.wait().await.unwrap().release().await.unwrap();
        no_node_is_left(ensemble, &queue).await;
    }
}

#[tokio::test]
async fn a_dropped_ticket_leaves_the_queue_and_no_node() {
    let (ensemble, manager) = manager().await;
    let mutex = Mutex::new(&manager, "/tickets/dropped").unwrap();
    let (first, mut second) = (mutex.enqueue().await.unwrap(), mutex.enqueue().await.unwrap());
    assert_eq!(second.position(), Some(1));
    // A ticket at the head of the queue excludes the others, even if its `wait` is not called.
    assert!(mutex.try_acquire().await.unwrap().is_none());
    drop(first);
    let guard = second.wait().await.unwrap();
    drop((guard, second));
    no_node_is_left(ensemble, "/tickets/dropped").await;
}

#[tokio::test]
async fn a_ticket_whose_session_expired_creates_a_new_node() {
    let (_ensemble, proxies, manager) = behind_proxy().await;
    let mutex = Mutex::new(&manager, "/lock").unwrap();
    let mut ticket = mutex.enqueue().await.unwrap();
    assert_eq!(ticket.position(), Some(0));
    let mut transitions = manager.transitions();
    proxies.expire_session(proxies.sessions()[0].id).await.unwrap();
    while !matches!(transitions.next().await.unwrap().state, State::Lost(..)) {}
    let guard = ticket.wait().await.unwrap();
    assert_eq!(guard.hold().epoch().as_u64(), 2);
    guard.release().await.unwrap();
}

#[tokio::test]
async fn readers_and_writers_keep_their_positions() {
    let (ensemble, manager) = manager().await;
    let path = "/tickets/rw";
    let lock = RwLock::new(&manager, path).unwrap();
    let write = lock.write().await.unwrap();
    let (mut reader, mut writer) = (lock.enqueue_read().await.unwrap(), lock.enqueue_write().await.unwrap());
    assert!(reader.wait_timeout(SHORTLY).await.unwrap_err().is_timeout());
    assert!(writer.wait_timeout(SHORTLY).await.unwrap_err().is_timeout());
    write.release().await.unwrap();
    assert_eq!((reader.refresh().await.unwrap(), writer.refresh().await.unwrap()), (0, 1));
    let read = reader.wait().await.unwrap();
    assert!(writer.wait_timeout(SHORTLY).await.unwrap_err().is_timeout());
    drop((read, reader));
    writer.wait().await.unwrap().release().await.unwrap();
    no_node_is_left(ensemble, path).await;
}

#[tokio::test]
async fn a_ticket_grants_to_its_owner_and_at_once_if_that_owner_already_holds() {
    let (ensemble, manager) = manager().await;
    let (a, b) = (Owner::new("a"), Owner::new("b"));
    let path = "/tickets/owners";
    let lock = RwLock::new(&manager, path).unwrap();
    let write = lock.for_owner(&a).write().await.unwrap();
    let mut again = lock.for_owner(&a).enqueue_read().await.unwrap();
    assert_eq!(again.position(), Some(0));
    let read = again.wait().await.unwrap();
    let error = lock.for_owner(&b).enqueue_write().await.unwrap().wait_timeout(SHORTLY).await.unwrap_err();
    assert!(error.is_timeout(), "{error}");
    // The hold belongs to the owner of the ticket, whichever task waits.
    let mut theirs = b.scope(lock.enqueue_write()).await.unwrap();
    drop((write, read));
    let write = theirs.wait().await.unwrap();
    assert_eq!(lock.write_hold_count(&b), 1);
    let error = lock.for_owner(&a).enqueue_write().await.unwrap().wait_timeout(SHORTLY).await.unwrap_err();
    assert!(error.is_timeout(), "{error}");
    write.release().await.unwrap();

    let path = "/tickets/reentrant";
    let mutex = ReentrantMutex::new(&manager, path).unwrap();
    let guard = mutex.acquire(&a).await.unwrap();
    let inner = mutex.enqueue(&a).await.unwrap().wait().await.unwrap();
    assert_eq!(mutex.hold_count(&a), 2);
    let mut ticket = mutex.enqueue(&b).await.unwrap();
    assert!(ticket.wait_timeout(SHORTLY).await.unwrap_err().is_timeout());
    // The owner's other tasks wait for it.
    let error = mutex.acquire_timeout(&b, SHORTLY).await.unwrap_err();
    assert!(error.to_string().contains("another task of the same owner"), "{error}");
    drop((guard, inner));
    let guard = ticket.wait().await.unwrap();
    assert_eq!(mutex.hold_count(&b), 1);
    mutex.acquire(&b).await.unwrap().release().await.unwrap();
    guard.release().await.unwrap();
    no_node_is_left(ensemble, path).await;
}

#[tokio::test]
async fn a_ticket_at_the_head_of_a_semaphore_waits_for_permits() {
    let (ensemble, manager) = manager().await;
    let path = "/tickets/permits";
    let semaphore = Semaphore::new(&manager, path, 3).unwrap();
    let lease = semaphore.acquire_many(2).await.unwrap();
    let mut ticket = semaphore.enqueue_many(2).await.unwrap();
    let mut behind = semaphore.enqueue().await.unwrap();
    assert!(ticket.wait_timeout(SHORTLY).await.unwrap_err().is_timeout());
    for polls in 0..6 {
        if let After::Done(done) = dropped_after(polls, ticket.wait()).await {
            panic!("granted a permit in use: {done:?}");
        }
    }
    assert_eq!(ticket.position(), Some(0));
    // A small request behind it is not granted first.
    assert!(behind.wait_timeout(SHORTLY).await.unwrap_err().is_timeout());
    assert_eq!(behind.refresh().await.unwrap(), 1);
    nodes_become(ensemble, &format!("{path}/locks"), 2).await;
    lease.release().await.unwrap();
    let lease = ticket.wait().await.unwrap();
    behind.wait().await.unwrap().release().await.unwrap();
    lease.release().await.unwrap();

    let error = semaphore.enqueue_many(4).await.unwrap_err();
    assert!(
        matches!(error.recipe(), Some(SemaphoreError::TooManyPermits { asked: 4, limit: 3, .. })),
        "{error}"
    );
    no_node_is_left(ensemble, &format!("{path}/locks")).await;
    no_node_is_left(ensemble, &format!("{path}/leases")).await;
}
