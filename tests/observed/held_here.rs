//! A wait for a lock that the same manager holds: the log, the error and the inspection say so, and where.

use std::cell::Cell;
use std::fmt::Display;
use std::ops::ControlFlow;
use std::time::Duration;

use futures::FutureExt;
use futures::future::{Either, select};
use lockkeeper::config::HandOffPolicy;
use lockkeeper::{Election, MultiLock, Mutex, Owner, ReentrantMutex, RwLock, Semaphore};

use crate::seen::Seen;
use crate::{builder, connected};

/// The text for a guard that was acquired in this line of this file.
fn held_at(line: u32) -> String {
    format!("held by this manager, acquired at {}:{line}:", file!())
}

/// Gives a call more and more time, until it waits for another contender when it gives up.
async fn gives_up<E: Display>(call: impl AsyncFn(Duration) -> E) -> String {
    let mut timeout = Duration::from_millis(20);
    loop {
        let error = call(timeout).await.to_string();
        if !error.contains("waiting for a connection") && !error.contains("answer") {
            return error;
        }
        timeout *= 2;
    }
}

async fn says<E: Display>(line: u32, call: impl AsyncFn(Duration) -> E) {
    let error = gives_up(call).await;
    assert!(error.contains(&held_at(line)), "{error}");
}

#[tokio::test]
async fn a_task_that_waits_for_its_own_guard_learns_where_that_was_acquired() {
    let (server, manager) = connected().await;
    let mutex = Mutex::new(&manager, "/locks/own").unwrap();
    let again = async |timeout| mutex.acquire_timeout(timeout).await.unwrap_err();
    let (guard, line) = (mutex.acquire().await.unwrap(), line!());
    says(line, again).await;
    says(line, async |_| again(Duration::ZERO).await).await;
    let mut ticket = mutex.enqueue().await.unwrap();
    let error = ticket.wait_timeout(Duration::from_millis(1)).await.unwrap_err().to_string();
    assert!(error.contains(&held_at(line)), "{error}");
    guard.release().await.unwrap();

    let (guard, line) = (ticket.wait().await.unwrap(), line!());
    says(line, again).await;
    guard.release().await.unwrap();

    let (guard, line) = (mutex.try_acquire().await.unwrap().unwrap(), line!());
    says(line, again).await;
    let other = builder(&server).connect().await.unwrap();
    let elsewhere = Mutex::new(&other, "/locks/own").unwrap();
    let error = gives_up(async |timeout| elsewhere.acquire_timeout(timeout).await.unwrap_err()).await;
    assert!(error.contains("waiting in the queue") && !error.contains("held by this manager"), "{error}");
    guard.release().await.unwrap();
    manager.shutdown().await.unwrap();
}

#[tokio::test]
async fn each_kind_of_lock_says_where_its_guard_was_acquired() {
    let (_server, manager) = connected().await;
    let mutex = ReentrantMutex::new(&manager, "/locks/reentrant").unwrap();
    let (first, second) = (Owner::new("first"), Owner::new("second"));
    let (guard, line) = (mutex.acquire(&first).await.unwrap(), line!());
    let again = mutex.acquire(&first).await.unwrap();
    says(line, async |timeout| mutex.acquire_timeout(&second, timeout).await.unwrap_err()).await;
    drop((guard, again));

    let lock = RwLock::new(&manager, "/locks/sides").unwrap();
    let (reader, line) = (lock.read().await.unwrap(), line!());
    says(line, async |timeout| lock.write_timeout(timeout).await.unwrap_err()).await;
    reader.release().await.unwrap();

    let semaphore = Semaphore::new(&manager, "/permits", 1).unwrap();
    let (lease, line) = (semaphore.acquire().await.unwrap(), line!());
    says(line, async |timeout| semaphore.acquire_timeout(timeout).await.unwrap_err()).await;
    lease.release().await.unwrap();

    let kept = Mutex::new(&manager, "/locks/kept").unwrap().with_handoff(HandOffPolicy::default()).unwrap();
    let (guard, line) = (kept.acquire().await.unwrap(), line!());
    says(line, async |timeout| kept.acquire_timeout(timeout).await.unwrap_err()).await;
    guard.release().await.unwrap();

    let election = Election::new(&manager, "/leader", "a").unwrap();
    let (leadership, line) = (election.campaign().await.unwrap(), line!());
    says(line, async |timeout| election.campaign_timeout(timeout).await.unwrap_err()).await;
    leadership.release().await.unwrap();

    let members = ["a", "b"].map(|name| Mutex::new(&manager, format!("/locks/{name}")).unwrap());
    let both = members.iter().fold(MultiLock::builder(), |all, member| all.lock(member)).build().unwrap();
    let (guard, line) = (both.acquire().await.unwrap(), line!());
    says(line, async |timeout| both.acquire_timeout(timeout).await.unwrap_err()).await;
    drop(guard);
    manager.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_guard_that_is_turned_into_another_one_and_one_of_a_term_have_the_place_of_that_call() {
    let (_server, manager) = connected().await;
    let lock = RwLock::new(&manager, "/locks/sides").unwrap();
    let write = async |timeout| lock.write_timeout(timeout).await.unwrap_err();
    let reader = lock.read().await.unwrap();
    let (writer, line) = (reader.try_upgrade().await.unwrap(), line!());
    says(line, write).await;
    let (reader, line) = (writer.downgrade().await.unwrap(), line!());
    says(line, write).await;
    reader.release().await.unwrap();

    let election = Election::new(&manager, "/leader", "a").unwrap();
    let line = Cell::new(0);
    let term = async |_| {
        says(line.get(), async |timeout| election.campaign_timeout(timeout).await.unwrap_err()).await;
        ControlFlow::Break(())
    };
    let (leading, ()) = (election.lead(term), line.set(line!()));
    leading.await.unwrap();
    manager.shutdown().await.unwrap();
}

#[tokio::test]
async fn the_turn_of_another_acquire_is_no_hold() {
    let (server, manager) = connected().await;
    let other = builder(&server).connect().await.unwrap();
    let lease = Semaphore::new(&other, "/permits", 1).unwrap().acquire().await.unwrap();
    let semaphore = Semaphore::new(&manager, "/permits", 1).unwrap();
    let mut head = semaphore.acquire().boxed_local();
    let behind =
        gives_up(async |timeout| semaphore.acquire_timeout(timeout).await.unwrap_err()).boxed_local();
    let Either::Right((error, _)) = select(&mut head, behind).await else { panic!("no permit is free") };
    assert!(!error.contains("held by this manager"), "{error}");
    drop((head, lease));
    manager.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_long_wait_for_the_own_manager_is_logged_with_the_place() {
    let (seen, _listening) = Seen::begin();
    let (_server, manager) = connected().await;
    let mutex = Mutex::new(&manager, "/locks/own").unwrap();
    let (guard, line) = (mutex.acquire().await.unwrap(), line!());
    let mut waiter = mutex.acquire().boxed_local();
    let (znodes, logged) = (manager.znodes(), || seen.events("still waiting in the queue"));
    while logged().is_empty() {
        // The waiter gets its answers, and then waits for longer than it would without a word.
        let answered = znodes.read("/locks").boxed_local();
        assert!(matches!(select(&mut waiter, answered).await, Either::Right(_)));
        tokio::time::pause();
        tokio::time::advance(Duration::from_secs(31)).await;
        assert!((&mut waiter).now_or_never().is_none());
        tokio::time::resume();
    }
    let held_here = logged()[0].field("held_here").to_owned();
    assert!(held_here.contains(&held_at(line)), "{held_here}");
    drop((waiter, guard));
    manager.shutdown().await.unwrap();
}

#[tokio::test]
async fn an_inspection_says_which_holds_are_of_the_own_manager() {
    let (server, manager) = connected().await;
    let mutex = Mutex::new(&manager, "/locks/own").unwrap();
    let (guard, line) = (mutex.acquire().await.unwrap(), line!());
    let waiting = mutex.enqueue().await.unwrap();
    let seen = mutex.inspect().await.unwrap();
    let holder = seen.holders().next().unwrap();
    assert_eq!(holder.held_here().unwrap().place().map(|place| place.line()), Some(line));
    assert_eq!(seen.waiters().next().unwrap().held_here(), None);
    assert!(seen.to_string().contains(&held_at(line)), "{seen}");
    let other = builder(&server).connect().await.unwrap();
    let elsewhere = Mutex::new(&other, "/locks/own").unwrap().inspect().await.unwrap();
    assert_eq!(elsewhere.holders().next().unwrap().held_here(), None);
    drop((guard, waiting));
    manager.shutdown().await.unwrap();
}
