//! Which readers join a node, and what a writer waits for.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::time::Duration;

use futures::FutureExt;
use lockkeeper::config::HandOffPolicy;
use lockkeeper::{Owner, RwLock};

use super::fixture::{Reader, ReadingFixture, asked, bounds};
use crate::limit::within;
use crate::server_fixture::LOCK;

/// Less than the idle time.
const PROMPTLY: Duration = Duration::from_secs(10);

#[tokio::test]
async fn readers_of_a_process_hold_one_node_beside_each_other_without_a_request() {
    let fixture = ReadingFixture::lingering().await;
    let first = fixture.lock.read().await.unwrap();
    let second = fixture.lock.read().await.unwrap();
    fixture.wait_watched().await;
    let transcript = fixture.server_fixture.server.transcript();
    let mut guards = vec![first, second];
    for round in 0..100 {
        let guard = match round % 2 {
            0 => fixture.lock.read().now_or_never().expect("no request").unwrap(),
            _ => fixture.lock.try_read().await.unwrap().expect("a shared node"),
        };
        assert!(guard.is_valid() && guard.path() == guards[0].path());
        guards.push(guard);
        if round % 3 == 0 {
            guards.remove(0).release().await.unwrap();
        }
    }
    for guard in guards {
        guard.release().await.unwrap();
    }
    // The node is idle.
    let again = fixture.lock.read().now_or_never().expect("no request").unwrap();
    again.release().await.unwrap();
    assert_eq!(asked(transcript.passed(), fixture.session()), []);
    fixture.nodes_become(1).await;
    drop(fixture.lock);
    fixture.server_fixture.queue_length_becomes(0).await.unwrap();
}

#[tokio::test]
async fn readers_that_come_before_the_first_one_is_granted_wait_for_its_node() {
    let fixture = ReadingFixture::set(bounds()).await;
    let theirs = fixture.theirs().write().await.unwrap();
    let readers: Vec<Reader> = (0..3).map(|_| Reader::of(&fixture.lock)).collect();
    fixture.nodes_become(2).await;
    theirs.release().await.unwrap();
    let mut guards = Vec::new();
    for reader in readers {
        guards.push(reader.guard().await);
    }
    assert!(guards.iter().all(|guard| guard.path() == guards[0].path()));
    fixture.nodes_become(1).await;
    drop(guards);
    fixture.nodes_become(0).await;
}

#[tokio::test]
async fn no_reader_joins_once_a_writer_of_another_process_waits() {
    let fixture = ReadingFixture::lingering().await;
    let first = fixture.lock.read().await.unwrap();
    let second = fixture.lock.read().await.unwrap();
    fixture.wait_watched().await;
    let writer = fixture.rival_waits_to_write().await;
    let readers = [Reader::of(&fixture.lock), Reader::of(&fixture.lock)];
    assert!(fixture.lock.try_read().await.unwrap().is_none());
    fixture.nodes_become(3).await;
    first.release().await.unwrap();
    assert!(!writer.is_finished() && second.is_valid());
    second.release().await.unwrap();
    let write = within("a grant to the writer", writer).await.unwrap().unwrap();
    assert!(fixture.lock.try_read().await.unwrap().is_none());
    let token = write.fencing_token();
    write.release().await.unwrap();
    let [third, fourth] = readers;
    let (third, fourth) = (third.guard().await, fourth.guard().await);
    assert_eq!(third.path(), fourth.path());
    assert!(third.fencing_token() > token);
    drop((third, fourth, fixture.lock));
    fixture.server_fixture.queue_length_becomes(0).await.unwrap();
}

#[tokio::test]
async fn no_reader_joins_once_a_writer_of_the_same_lock_waits() {
    let fixture = ReadingFixture::lingering().await;
    let held = fixture.lock.read().await.unwrap();
    let lock = fixture.lock.clone();
    let writing = tokio::spawn(async move { lock.write().await.unwrap() });
    fixture.nodes_become(2).await;
    let reader = Reader::of(&fixture.lock);
    held.release().await.unwrap();
    let write = within("a grant to the writer", writing).await.unwrap().unwrap();
    write.release().await.unwrap();
    reader.guard().await.release().await.unwrap();
}

#[tokio::test]
async fn an_idle_node_of_readers_is_deleted_when_a_writer_waits() {
    let fixture = ReadingFixture::lingering().await;
    for is_seen_before in [false, true] {
        fixture.lock.read().await.unwrap().release().await.unwrap();
        if is_seen_before {
            fixture.wait_watched().await;
        }
        fixture.theirs().write_timeout(PROMPTLY).await.unwrap().release().await.unwrap();
    }
    fixture.lock.read().await.unwrap().release().await.unwrap();
    // The delete of the idle node is sent before.
    let write = fixture.lock.try_write().await.unwrap().expect("a free lock");
    write.release().await.unwrap();
    fixture.nodes_become(0).await;
}

#[tokio::test]
async fn readers_of_another_process_end_no_sharing() {
    let fixture = ReadingFixture::lingering().await;
    fixture.lock.read().await.unwrap().release().await.unwrap();
    fixture.wait_watched().await;
    let held = fixture.lock.read().await.unwrap();
    for _ in 0..5 {
        fixture.theirs().read().await.unwrap().release().await.unwrap();
    }
    let joined = fixture.lock.read().now_or_never().expect("no request").unwrap();
    assert_eq!(joined.path(), held.path());
}

/// A writer may wait already, unseen.
#[tokio::test]
async fn until_the_first_list_at_most_max_handoffs_readers_join() {
    let fixture = ReadingFixture::set(bounds()).await;
    let first = fixture.lock.read().await.unwrap();
    let mut joined = Vec::new();
    // No task runs in between, so the list is not sent yet.
    for _ in 0..3 {
        joined.push(fixture.lock.read().now_or_never().expect("no request").unwrap());
    }
    assert!(joined.iter().all(|guard| guard.path() == first.path()));
    let other = Reader::of(&fixture.lock).guard().await;
    assert_ne!(other.path(), first.path());
    drop((first, joined, other));
    fixture.nodes_become(0).await;
}

#[tokio::test]
async fn a_writer_is_never_beside_readers_and_is_granted_while_readers_follow_each_other() {
    let fixture = ReadingFixture::lingering().await;
    // Readers, or −1 for a writer.
    let inside = Arc::new(AtomicI32::new(0));
    let is_over = Arc::new(AtomicBool::new(false));
    let mut tasks = Vec::new();
    for number in 0..6 {
        let (lock, inside, is_over) = (fixture.lock.clone(), Arc::clone(&inside), Arc::clone(&is_over));
        tasks.push(tokio::spawn(async move {
            while !is_over.load(Ordering::Relaxed) {
                let guard = lock.read().await.unwrap();
                assert!(inside.fetch_add(1, Ordering::SeqCst) >= 0, "a reader beside a writer");
                for _ in 0..=number {
                    tokio::task::yield_now().await;
                }
                assert!(guard.is_valid());
                inside.fetch_sub(1, Ordering::SeqCst);
                match number % 2 {
                    0 => drop(guard),
                    _ => guard.release().await.unwrap(),
                }
                tokio::task::yield_now().await;
            }
        }));
    }
    let theirs = fixture.theirs().with_handoff(HandOffPolicy::default()).unwrap();
    for round in 0..20 {
        let lock = if round % 2 == 0 { &theirs } else { &fixture.lock };
        let guard = within("a grant to the writer", lock.write()).await.unwrap().unwrap();
        assert_eq!(inside.swap(-1, Ordering::SeqCst), 0, "a writer beside a reader");
        tokio::task::yield_now().await;
        assert!(guard.is_valid());
        assert_eq!(inside.swap(0, Ordering::SeqCst), -1, "a reader beside a writer");
        guard.release().await.unwrap();
    }
    is_over.store(true, Ordering::Relaxed);
    for task in tasks {
        within("the end of a task", task).await.unwrap().unwrap();
    }
    drop(fixture.lock);
    fixture.server_fixture.queue_length_becomes(0).await.unwrap();
}

#[tokio::test]
async fn a_read_of_an_owner_is_not_shared_and_stays_reentrant() {
    let fixture = ReadingFixture::lingering().await;
    let shared = fixture.lock.read().await.unwrap();
    let owner = Owner::new("one");
    let work = async {
        let own = fixture.lock.read().await.unwrap();
        assert_ne!(own.path(), shared.path());
        let again = fixture.lock.read().await.unwrap();
        assert_eq!(again.path(), own.path());
        assert_eq!(fixture.lock.read_hold_count(&owner), 2);
        assert!(fixture.lock.write().await.is_err(), "it would wait for itself");
    };
    owner.clone().scope(work).await;
    let named = fixture.lock.for_owner(&owner).read().await.unwrap();
    assert_ne!(named.path(), shared.path());
}

#[tokio::test]
async fn only_the_last_guard_of_a_shared_node_becomes_a_writer_and_no_reader_joins_then() {
    let fixture = ReadingFixture::lingering().await;
    let first = fixture.lock.read().await.unwrap();
    let second = fixture.lock.read().await.unwrap();
    let refused = first.try_upgrade().await.unwrap_err();
    assert!(refused.is_not_alone());
    let first = refused.into_guard();
    // The sharing has ended.
    let third = Reader::of(&fixture.lock).guard().await;
    assert_ne!(third.path(), first.path());
    third.release().await.unwrap();
    second.release().await.unwrap();
    assert!(fixture.lock.try_write().await.unwrap().is_none());
    let write = first.try_upgrade().await.unwrap();
    let reader = Reader::of(&fixture.lock);
    assert!(fixture.lock.try_read().await.unwrap().is_none());
    let read = write.downgrade().await.unwrap();
    let beside = reader.guard().await;
    assert!(beside.is_valid() && read.is_valid() && beside.path() != read.path());
    drop((beside, read));
    let plain = RwLock::new(&fixture.actor, LOCK).unwrap();
    plain.write_timeout(PROMPTLY).await.unwrap().release().await.unwrap();
}

#[tokio::test]
async fn dropped_readers_leave_no_node() {
    let fixture = ReadingFixture::set(bounds()).await;
    let theirs = fixture.theirs().write().await.unwrap();
    let mut readers: Vec<Reader> = (0..3).map(|_| Reader::of(&fixture.lock)).collect();
    fixture.nodes_become(2).await;
    drop(readers.remove(1));
    // It was in the queue for both.
    drop(readers.remove(0));
    theirs.release().await.unwrap();
    readers.remove(0).guard().await.release().await.unwrap();
    fixture.nodes_become(0).await;
}
