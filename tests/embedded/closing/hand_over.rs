//! A holder that releases after the shutdown has begun hands off to no contender.

use futures::FutureExt;
use futures::future::join_all;
use lockkeeper::locks::ZooKeeperLock;
use lockkeeper::{MultiLockGuard, Mutex, Owner, ReentrantMutex, RwLock};

use super::fixture::{ClosingFixture, acquire, exclusive, is_closed};
use crate::limit::within;
use crate::server_fixture::LOCK;

/// The number of contender nodes while one contender holds and two wait.
fn nodes(lock: &str) -> usize {
    match lock {
        // All contenders share one node in the queue.
        "mutex that keeps its node" | "mutex that lingers" => 1,
        "several in order" => 4,
        "several at once" => 6,
        _ => 3,
    }
}

async fn release(guard: MultiLockGuard, by_drop: bool) {
    match by_drop {
        true => drop(guard),
        false => guard.release().await.unwrap(),
    }
}

/// The waiters are polled only after the release: a hand-off that reaches them first must not grant.
#[tokio::test]
async fn a_holder_that_releases_after_the_beginning_grants_no_waiter_of_its_process() {
    for by_drop in [true, false] {
        for number in 0.. {
            let fixture = ClosingFixture::set().await;
            let Some((name, lock)) = exclusive(&fixture.actor).into_iter().nth(number) else { break };
            let guard = lock.acquire().await.unwrap();
            let mut waiting = join_all([acquire(&*lock), acquire(&*lock)]);
            fixture.waits_with(&mut waiting, nodes(name)).await;
            let closing = fixture.begin().await;
            release(guard, by_drop).await;
            let results = within(&format!("an answer: {name}"), waiting).await.unwrap();
            assert!(results.iter().all(is_closed), "{name}, drop {by_drop}: {results:?}");
            assert!(is_closed(&acquire(&*lock).await), "{name}: a new acquire");
            assert!(is_closed(&lock.try_acquire().await), "{name}: a new try");
            closing.ends(name).await;
        }
    }
}

#[tokio::test]
async fn a_writer_that_releases_after_the_beginning_grants_no_reader() {
    let fixture = ClosingFixture::set().await;
    let lock = RwLock::new(&fixture.actor, LOCK).unwrap();
    let (reader, writer) = (lock.reader(), lock.writer());
    let guard = writer.acquire().await.unwrap();
    let mut waiting = join_all([acquire(&reader), acquire(&reader), acquire(&writer)]);
    fixture.waits_with(&mut waiting, 4).await;
    let closing = fixture.begin().await;
    drop(guard);
    let results = within("an answer", waiting).await.unwrap();
    assert!(results.iter().all(is_closed), "{results:?}");
    closing.ends("readers").await;
}

#[tokio::test]
async fn readers_that_release_after_the_beginning_grant_no_writer() {
    let fixture = ClosingFixture::set().await;
    let lock = RwLock::new(&fixture.actor, LOCK).unwrap();
    let (reader, writer) = (lock.reader(), lock.writer());
    let guards = [reader.acquire().await.unwrap(), reader.acquire().await.unwrap()];
    let mut waiting = join_all([acquire(&writer), acquire(&reader)]);
    fixture.waits_with(&mut waiting, 4).await;
    let closing = fixture.begin().await;
    drop(guards);
    let results = within("an answer", waiting).await.unwrap();
    assert!(results.iter().all(is_closed), "{results:?}");
    closing.ends("a writer").await;
}

#[tokio::test]
async fn a_holder_of_another_process_that_releases_after_the_beginning_grants_no_waiter_of_this_one() {
    for number in 0.. {
        let fixture = ClosingFixture::set().await;
        let Some((name, lock)) = exclusive(&fixture.actor).into_iter().nth(number) else { break };
        let (_, theirs) = exclusive(&fixture.server_fixture.rival).into_iter().nth(number).unwrap();
        let guard = theirs.acquire().await.unwrap();
        let mut waiting = acquire(&*lock);
        let nodes = match name {
            "several in order" => 3,
            "several at once" => 4,
            _ => 2,
        };
        fixture.waits_with(&mut waiting, nodes).await;
        let closing = fixture.begin().await;
        guard.release().await.unwrap();
        drop(theirs);
        closing.fixture().server_fixture.round_trip_of_rival().await.unwrap();
        let result = within(&format!("an answer: {name}"), waiting).await.unwrap();
        assert!(is_closed(&result), "{name}: {result:?}");
        closing.ends(name).await;
    }
}

/// The owner holds the lock, and its work under the lock may need the lock again.
#[tokio::test]
async fn an_owner_that_holds_acquires_again_after_the_beginning_and_no_other_owner_does() {
    let fixture = ClosingFixture::set().await;
    let mutex = ReentrantMutex::new(&fixture.actor, LOCK).unwrap();
    let (owner, other) = (Owner::new("one"), Owner::new("other"));
    let held = mutex.acquire(&owner).await.unwrap();
    let mut waiting = Box::pin(mutex.acquire(&other));
    fixture.waits_with(&mut waiting, 2).await;
    // Behind a task of the same owner.
    let mut second = Box::pin(mutex.acquire(&other));
    assert!((&mut second).now_or_never().is_none());
    let closing = fixture.begin().await;
    let again = mutex.acquire(&owner).await.unwrap();
    assert!(mutex.try_acquire(&owner).await.unwrap().is_some());
    again.release().await.unwrap();
    held.release().await.unwrap();
    assert!(is_closed(&mutex.acquire(&owner).await), "the owner holds nothing any more");
    assert!(is_closed(&within("an answer", waiting).await.unwrap()));
    assert!(is_closed(&within("an answer", second).await.unwrap()));
    closing.ends("an owner").await;
}

/// Neither operation acquires more than the owner holds.
#[tokio::test]
async fn a_writer_reads_and_becomes_a_reader_after_the_beginning() {
    let fixture = ClosingFixture::set().await;
    let lock = RwLock::new(&fixture.actor, LOCK).unwrap().for_owner(&Owner::new("one"));
    let writing = lock.write().await.unwrap();
    let closing = fixture.begin().await;
    lock.read().await.unwrap().release().await.unwrap();
    let reading = writing.downgrade().await.unwrap();
    lock.read().await.unwrap().release().await.unwrap();
    assert!(reading.try_upgrade().await.is_err());
    closing.ends("a writer").await;
}

#[tokio::test]
async fn an_immediate_shutdown_grants_no_waiter_either() {
    let fixture = ClosingFixture::set().await;
    let mutex = Mutex::new(&fixture.actor, LOCK).unwrap();
    let guard = mutex.acquire().await.unwrap();
    let mut waiting = Box::pin(mutex.acquire());
    fixture.waits_with(&mut waiting, 2).await;
    let mut ending = Box::pin(fixture.actor.shutdown());
    assert!((&mut ending).now_or_never().is_none());
    drop(guard);
    let result = waiting.now_or_never();
    assert!(result.as_ref().is_some_and(is_closed), "{result:?}");
    within("the end", ending).await.unwrap().unwrap();
}
