//! Plain threads.

use std::sync::Mutex as Plain;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use lockkeeper::Error;
use lockkeeper::blocking::{MultiLock, Mutex, ReentrantMutex, RwLock, Semaphore, ZooKeeperLock};
use lockkeeper::error::{LossReason, Phase, TxnError};
use lockkeeper_tests::Timing;

use crate::support::{connect, contenders, server, until};

const THREADS: usize = 4;
const ROUNDS: usize = 10;

#[test]
fn threads_exclude_each_other_and_their_tokens_grow() {
    let server = server();
    // Every second thread uses another session.
    let managers = [connect(&server), connect(&server)];
    let (inside, tokens) = (AtomicUsize::new(0), Plain::new(Vec::new()));
    thread::scope(|threads| {
        for number in 0..THREADS {
            let mutex = Mutex::new(&managers[number % 2], "/lock").unwrap();
            let (inside, tokens) = (&inside, &tokens);
            threads.spawn(move || {
                for _ in 0..ROUNDS {
                    let guard = mutex.acquire_timeout(Timing::event()).unwrap();
                    assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two are inside");
                    assert!(guard.is_valid());
                    tokens.lock().unwrap().push(guard.fencing_token());
                    thread::yield_now();
                    inside.fetch_sub(1, Ordering::SeqCst);
                    guard.release().unwrap();
                }
            });
        }
    });
    let tokens = tokens.into_inner().unwrap();
    assert_eq!(tokens.len(), THREADS * ROUNDS);
    assert!(tokens.is_sorted_by(|earlier, later| earlier < later));
    assert_eq!(contenders(&server, "/lock"), 0);
}

#[test]
fn the_owner_of_a_reentrant_hold_is_the_thread() {
    let server = server();
    let manager = connect(&server);
    let mutex = ReentrantMutex::new(&manager, "/lock").unwrap();
    let outer = mutex.acquire().unwrap();
    let inner = mutex.acquire_timeout(Duration::ZERO).unwrap();
    assert_eq!(inner.fencing_token(), outer.fencing_token());
    assert_eq!((mutex.hold_count(), contenders(&server, "/lock")), (2, 1));
    thread::scope(|threads| {
        let other = threads.spawn(|| {
            assert_eq!(mutex.hold_count(), 0);
            assert!(mutex.try_acquire().unwrap().is_none());
            mutex.acquire_timeout(Timing::event()).unwrap().fencing_token()
        });
        until("the other thread waits", || contenders(&server, "/lock") == 2);
        outer.release().unwrap();
        assert!(inner.is_valid());
        assert!(!other.is_finished());
        let mine = inner.fencing_token();
        inner.release().unwrap();
        assert!(other.join().unwrap() > mine);
    });
}

#[test]
fn a_guard_may_be_given_back_by_another_thread() {
    let server = server();
    let manager = connect(&server);
    let mutex = Mutex::new(&manager, "/lock").unwrap();
    let guard = mutex.acquire().unwrap();
    thread::spawn(move || guard.release()).join().unwrap().unwrap();
    assert!(mutex.try_acquire().unwrap().is_some());
}

#[test]
fn a_timeout_says_behind_whom_and_leaves_no_node() {
    let server = server();
    let manager = connect(&server);
    let mutex = Mutex::new(&manager, "/lock").unwrap();
    let guard = mutex.acquire().unwrap();
    let refused = thread::scope(|threads| {
        threads.spawn(|| mutex.acquire_timeout(Duration::from_secs(1))).join().unwrap()
    });
    let Err(Error::Timeout { phase: Phase::Queued { predecessor, .. }, .. }) = refused else {
        panic!("{refused:?}");
    };
    assert!(guard.path().ends_with(&predecessor));
    until("the end of the waiter's node", || contenders(&server, "/lock") == 1);
    assert!(guard.wait_lost(Duration::from_millis(1)).is_none());
}

#[test]
fn a_thread_that_waits_for_a_loss_wakes_up_and_nothing_is_committed() {
    let server = server();
    let manager = connect(&server);
    let guard = Mutex::new(&manager, "/lock").unwrap().acquire().unwrap();
    guard.txn().create("/written", b"1".to_vec()).commit().unwrap();
    thread::scope(|threads| {
        let reported = threads.spawn(|| guard.wait_lost(Timing::event()));
        assert!(server.delete_node(guard.path()));
        let late = guard.txn().delete("/written", -1).commit();
        assert!(matches!(late, Err(TxnError::Lost(_))), "{late:?}");
        assert_eq!(reported.join().unwrap().unwrap().reason, LossReason::NodeDeleted);
    });
    assert!(guard.check().is_err());
    assert!(server.inspect(|machine| machine.tree().node("/written").is_some()));
    assert!(guard.release().unwrap_err().is_lost());
}

#[test]
fn several_are_held_by_one_guard_or_not_at_all() {
    let server = server();
    let manager = connect(&server);
    let mutex = Mutex::new(&manager, "/mutex").unwrap();
    let prices = RwLock::new(&manager, "/prices").unwrap();
    let licences = Semaphore::new(&manager, "/licences", 2).unwrap();
    let (reader, permits) = (prices.reader(), licences.permits(2));
    let members: [&dyn ZooKeeperLock; 3] = [&mutex, &reader, &permits];
    let all = MultiLock::builder().locks(members).build().unwrap();

    let held = all.acquire_timeout(Timing::event()).unwrap();
    assert!(held.is_valid());
    assert_eq!(held.fencing_tokens().count(), 3);
    assert!(mutex.try_acquire().unwrap().is_none());
    assert!(prices.try_write().unwrap().is_none());
    assert_eq!(licences.available().unwrap(), 0);
    held.txn().create("/written", Vec::new()).commit().unwrap();
    held.release().unwrap();

    let write = prices.write().unwrap();
    assert!(all.try_acquire().unwrap().is_none());
    assert!(mutex.try_acquire().unwrap().is_some(), "the others were left");
    let read = write.downgrade().unwrap();
    let other = prices.read().unwrap();
    let refused = read.try_upgrade().unwrap_err();
    assert!(refused.is_not_alone());
    other.release().unwrap();
    refused.into_guard().try_upgrade().unwrap().release().unwrap();
}
