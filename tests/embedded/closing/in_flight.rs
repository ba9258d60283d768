//! What was asked of the server before the beginning is not granted by an answer after it.

use futures::FutureExt;
use futures::future::BoxFuture;
use lockkeeper::{ConnectionManager, Error, Lock, Mutex, RateLimiter, RwLock};
use lockkeeper_testserver::{Fault, Op, When};

use super::scene::{Scene, acquire, exclusive, is_closed};
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
    let calls = RateLimiter::new(&manager, LOCK, 1, std::time::Duration::from_secs(600)).unwrap();
    match number {
        0 => Some(("admit", Box::pin(async move { calls.admit().await.map(drop) }))),
        1 => Some(("try to be admitted", Box::pin(async move { calls.try_admit().await.map(drop) }))),
        _ => None,
    }
}

fn locks(manager: &ConnectionManager) -> Vec<(&'static str, Box<dyn Lock>)> {
    let mut locks = exclusive(manager);
    locks.push(("reader", Box::new(RwLock::new(manager, LOCK).unwrap().reader())));
    locks
}

/// Each of them with its `nth` write without an answer when the shutdown begins: yields whom that has met.
async fn all_with_held(nth: u64, acquire: Acquire) -> Vec<&'static str> {
    let mut met = Vec::new();
    for is_answered in [true, false] {
        for number in 0.. {
            let scene = Scene::set().await;
            let Some((name, mut acquiring)) = acquire(scene.actor.clone(), number) else { break };
            // The directories are there.
            acquire(scene.server_fixture.rival.clone(), number).unwrap().1.await.unwrap();
            scene.waits_for_nobody().await;
            let writes = When::ops([Op::Create, Op::Create2, Op::Multi]).path("/locks/**");
            let held =
                scene.server_fixture.server.fault(writes.session(scene.session()).nth(nth), Fault::HoldReply);
            let is_done = tokio::select! {
                biased;
                done = &mut acquiring => { done.unwrap(); true }
                () = held.hit() => false,
            };
            if is_done {
                continue;
            }
            met.push(name);
            let closing = scene.begin().await;
            if is_answered {
                held.release();
                closing.scene().server_fixture.round_trip_of_rival().await.unwrap();
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
async fn a_place_that_was_asked_for_before_the_beginning_is_not_granted_after_it() {
    for acquire in [waits as Acquire, tries, admits] {
        assert!(!all_with_held(1, acquire).await.is_empty());
    }
}

#[tokio::test]
async fn permits_starts_and_second_locks_that_were_asked_for_before_the_beginning_are_not_granted_after_it() {
    for acquire in [waits as Acquire, tries, admits] {
        assert!(!all_with_held(2, acquire).await.is_empty());
    }
}

/// So often that its number alone would tell that the lock is free.
#[tokio::test]
async fn a_number_that_tells_after_the_beginning_grants_nothing() {
    let scene = Scene::set().await;
    let mutex = Mutex::new(&scene.actor, LOCK).unwrap();
    for _ in 0..8 {
        mutex.acquire().await.unwrap().release().await.unwrap();
    }
    scene.server_fixture.round_trip_of_rival().await.unwrap();
    let create = When::create().path("/locks/**").session(scene.session());
    let held = scene.server_fixture.server.fault(create, Fault::HoldReply);
    let mut acquiring = Box::pin(mutex.acquire());
    assert!((&mut acquiring).now_or_never().is_none());
    within("the create", held.hit()).await.unwrap();
    let closing = scene.begin().await;
    held.release();
    closing.scene().server_fixture.round_trip_of_rival().await.unwrap();
    let result = within("an answer", acquiring).await.unwrap();
    assert!(is_closed(&result), "{result:?}");
    closing.ends("by its number").await;
}
