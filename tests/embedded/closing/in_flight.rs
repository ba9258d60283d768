//! The answer to a request from before the beginning of a shutdown grants nothing after it.

use futures::FutureExt;
use futures::future::BoxFuture;
use lockkeeper::locks::ZooKeeperLock;
use lockkeeper::{ConnectionManager, Error, Mutex, RateLimiter, RwLock};
use lockkeeper_testserver::{Fault, Op, When};

use super::fixture::{ClosingFixture, acquire, exclusive, is_closed};
use crate::limit::within;
use crate::server_fixture::LOCK;

type Acquire = fn(ConnectionManager, usize) -> Option<(&'static str, BoxFuture<'static, Result<(), Error>>)>;

fn waits(
    manager: ConnectionManager,
    number: usize,
) -> Option<(&'static str, BoxFuture<'static, Result<(), Error>>)> {
    let (name, lock) = locks(&manager).into_iter().nth(number)?;
    Some((name, Box::pin(async move { acquire(&*lock).await })))
}

fn tries(
    manager: ConnectionManager,
    number: usize,
) -> Option<(&'static str, BoxFuture<'static, Result<(), Error>>)> {
    let (name, lock) = locks(&manager).into_iter().nth(number)?;
    Some((name, Box::pin(async move { lock.try_acquire().await.map(drop) })))
}

fn admits(
    manager: ConnectionManager,
    number: usize,
) -> Option<(&'static str, BoxFuture<'static, Result<(), Error>>)> {
    let calls =
        RateLimiter::new(&manager, format!("{LOCK}/calls"), 1, std::time::Duration::from_secs(600)).unwrap();
    match number {
        0 => Some(("admit", Box::pin(async move { calls.admit().await.map(drop) }))),
        1 => Some(("try to be admitted", Box::pin(async move { calls.try_admit().await.map(drop) }))),
        _ => None,
    }
}

fn locks(manager: &ConnectionManager) -> Vec<(&'static str, Box<dyn ZooKeeperLock>)> {
    let mut locks = exclusive(manager);
    locks.push(("reader", Box::new(RwLock::new(manager, LOCK).unwrap().reader())));
    locks
}

/// Holds the answer to the `nth` write of each lock while the shutdown begins. Returns the names of the locks
/// that send so many writes.
async fn all_with_held(nth: u64, acquire: Acquire) -> Vec<&'static str> {
    let mut met = Vec::new();
    for is_answered in [true, false] {
        for number in 0.. {
            let fixture = ClosingFixture::set().await;
            let Some((name, mut acquiring)) = acquire(fixture.actor.clone(), number) else { break };
            // This acquire creates the directories.
            acquire(fixture.server_fixture.rival.clone(), number).unwrap().1.await.unwrap();
            fixture.queue_is_empty().await;
            let writes = When::ops([Op::Create, Op::Create2, Op::Multi]).path("/locks/**");
            let held = fixture
                .server_fixture
                .server
                .fault(writes.session(fixture.session()).nth(nth), Fault::HoldReply);
            let is_done = tokio::select! {
                biased;
                done = &mut acquiring => { done.unwrap(); true }
                () = held.hit() => false,
            };
            if is_done {
                continue;
            }
            met.push(name);
            let closing = fixture.begin().await;
            if is_answered {
                held.release();
                closing.fixture().server_fixture.round_trip_of_rival().await.unwrap();
            }
            let result = within(&format!("an answer: {name}"), acquiring).await.unwrap();
            assert!(is_closed(&result), "{name}, write {nth}, answered {is_answered}: {result:?}");
            held.release();
            closing.ends(name).await;
        }
    }
    met
}

#[tokio::test]
async fn a_node_whose_create_was_sent_before_the_beginning_grants_nothing_after_it() {
    for acquire in [waits as Acquire, tries, admits] {
        assert!(!all_with_held(1, acquire).await.is_empty());
    }
}

#[tokio::test]
async fn permits_starts_and_second_locks_requested_before_the_beginning_are_not_granted_after_it() {
    for acquire in [waits as Acquire, tries, admits] {
        assert!(!all_with_held(2, acquire).await.is_empty());
    }
}

/// After so many acquires the sequence number alone would show that the lock is free.
#[tokio::test]
async fn a_sequence_number_that_arrives_after_the_beginning_grants_nothing() {
    let fixture = ClosingFixture::set().await;
    let mutex = Mutex::new(&fixture.actor, LOCK).unwrap();
    for _ in 0..8 {
        mutex.acquire().await.unwrap().release().await.unwrap();
    }
    fixture.server_fixture.round_trip_of_rival().await.unwrap();
    let create = When::create().path("/locks/**").session(fixture.session());
    let held = fixture.server_fixture.server.fault(create, Fault::HoldReply);
    let mut acquiring = Box::pin(mutex.acquire());
    assert!((&mut acquiring).now_or_never().is_none());
    within("the create", held.hit()).await.unwrap();
    let closing = fixture.begin().await;
    held.release();
    closing.fixture().server_fixture.round_trip_of_rival().await.unwrap();
    let result = within("an answer", acquiring).await.unwrap();
    assert!(is_closed(&result), "{result:?}");
    closing.ends("by its sequence number").await;
}
