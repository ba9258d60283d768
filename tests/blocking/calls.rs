//! Everything that is neither a lock nor an election: calls of the async API by threads.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::future::pending;
use std::thread;
use std::time::Duration;

use lockkeeper::blocking::{Blocking, ConnectionManager, Mutex};
use lockkeeper::error::{InitError, Outcome, Phase};
use lockkeeper::partition::ReleaseReason;
use lockkeeper::presence::PresenceState;
use lockkeeper::view::ViewState;
use lockkeeper::{
    Counter, DoubleBarrier, Error, NodeView, OnceCell, Partition, Registration, Schedule, SharedCount,
};
use lockkeeper_tests::Timing;
use tokio::time::timeout;

use crate::support::{connect, contenders, server, until};

const THREADS: usize = 4;
const ROUNDS: usize = 20;

fn counter(manager: &ConnectionManager) -> Blocking<Counter> {
    manager.wrap(async |manager| Counter::new(manager, "/visits")).unwrap()
}

#[test]
fn threads_call_a_recipe_and_each_addition_counts_once() {
    let server = server();
    let managers = [connect(&server), connect(&server)];
    let add = |number: usize| -> Vec<i64> {
        let visits = counter(&managers[number % 2]);
        (0..ROUNDS).map(|_| visits.call(async |visits| visits.increment().await).unwrap()).collect()
    };
    let sums: BTreeSet<i64> = thread::scope(|threads| {
        let add = &add;
        let begin = |number| threads.spawn(move || add(number));
        let running: Vec<_> = (0..THREADS).map(begin).collect();
        running.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(sums, (1..=i64::try_from(THREADS * ROUNDS).unwrap()).collect());
}

#[test]
fn a_closure_has_several_steps_and_the_timers_and_tasks_of_the_managers_thread() {
    let server = server();
    let visits = counter(&connect(&server));
    let sum = visits.call(async |visits| {
        visits.set(3).await?;
        let late = timeout(Duration::from_millis(1), pending::<()>()).await;
        assert!(late.is_err());
        let visits = visits.clone();
        tokio::spawn(async move { visits.add(4).await }).await.expect("no panic")
    });
    assert_eq!(sum.unwrap(), 7);
}

#[test]
fn an_error_of_another_type_comes_out_of_a_call_within_its_result() {
    let server = server();
    let cell = connect(&server).wrap(async |manager| OnceCell::new(manager, "/cell")).unwrap();
    let init = || std::future::ready(Err::<Vec<u8>, _>("no disk"));
    let failed = cell.call(async |cell| Ok(cell.get_or_try_init(init).await)).unwrap();
    assert!(matches!(failed, Err(InitError::Failed("no disk"))), "{failed:?}");
    assert_eq!(cell.call(async |cell| cell.get().await).unwrap(), None);
}

#[test]
fn a_thread_waits_for_a_view_and_for_its_changes() {
    let server = server();
    let manager = connect(&server);
    let workers = manager.wrap(async |manager| SharedCount::new(manager, "/workers", 4)).unwrap();
    let view: Blocking<NodeView<i32>> = workers.wrap(async |workers| workers.view()).unwrap();
    assert!(view.call(async |view| view.ready().await).unwrap().root().is_none());
    let mut changes = view.wrap(async |view| Ok(view.changes())).unwrap();
    workers.call(async |workers| workers.set(16).await).unwrap();
    let next = changes.call_mut_timeout(Timing::event(), async |changes| Ok(changes.next().await));
    assert_eq!(next.unwrap().unwrap().changes().len(), 1);
    assert_eq!(view.as_async().node().unwrap().value().unwrap(), &16);
    let quiet = changes
        .call_mut_timeout(Duration::from_millis(1), async |changes| Ok(changes.next().await.is_some()));
    assert!(quiet.unwrap_err().is_timeout());
    manager.shutdown().unwrap();
    while changes.call_mut(async |changes| Ok(changes.next().await)).unwrap().is_some() {}
    assert_eq!(view.as_async().state(), ViewState::Closed);
    assert!(view.call(async |view| view.ready().await).unwrap_err().is_closed());
}

#[test]
fn a_thread_follows_a_watch_that_a_call_returned() {
    let server = server();
    let manager = connect(&server);
    let worker =
        manager.wrap(async |manager| Registration::register(manager, "/workers/7", "10.0.0.7")).unwrap();
    let mut states = worker.wrap(async |worker| Ok(worker.watch())).unwrap();
    let czxid = worker.call(async |worker| worker.registered().await).unwrap();
    let mut next = || states.call_mut(async |states| Ok(states.changed().await?));
    assert_eq!(next().unwrap(), PresenceState::Registered { czxid });
    worker.call_once(async |worker| worker.release().await).unwrap();
    assert_eq!(next().unwrap(), PresenceState::Closed);
    assert!(next().unwrap_err().is_closed());
}

#[test]
fn a_member_of_a_partition_receives_an_item_and_gives_it_up() {
    let server = server();
    let manager = connect(&server);
    let partition = manager.wrap(async |manager| Partition::new(manager, "/shards")).unwrap();
    partition.call(async |partition| partition.add(["x"]).await).unwrap();
    let mut member = partition.wrap(async |partition| partition.join("a")).unwrap();
    let item = member.call_mut(async |member| Ok(member.next().await)).unwrap().unwrap();
    let none = member.call_mut_timeout(Duration::from_millis(1), async |member| Ok(member.next().await));
    assert!(none.unwrap_err().is_timeout());
    partition.call(async |partition| partition.remove(["x"]).await).unwrap();
    // A closure takes what a call returned, by reference or by value.
    let reason = partition.call(async |_| Ok(item.release_requested().await)).unwrap();
    assert_eq!(reason, ReleaseReason::Removed);
    partition.call(async |_| Ok(item.release().await?)).unwrap();
    let share = member.call(async |member| member.settled(Timing::event()).await).unwrap();
    assert_eq!(share.held().count(), 0);
    member.call_once(async |member| member.leave().await).unwrap();
}

#[test]
fn a_guard_of_a_call_that_a_plain_thread_drops_releases_and_lets_the_managers_thread_end() {
    let server = server();
    let manager = connect(&server);
    let thread = crate::lifetime::thread_of(&manager);
    let schedule =
        manager.wrap(async |manager| Schedule::new(manager, "/slots", Duration::from_millis(10))).unwrap();
    let slot = schedule.wrap(async |schedule| schedule.due().await).unwrap();
    let mutex = Mutex::new(&manager, "/lock").unwrap();
    let held = mutex.call(async |mutex| mutex.acquire().await).unwrap();
    drop((manager, schedule, mutex));
    assert!(slot.as_async().is_valid() && held.is_valid() && thread.exists());
    let written = slot.call(async |slot| Ok(slot.txn().create("/written", "").commit().await?));
    assert_eq!(written.unwrap().len(), 1);
    let exists = |path: &str| server.inspect(|machine| machine.tree().node(path).is_some());
    for (path, guard) in [
        (slot.as_async().path().to_owned(), Box::new(slot) as Box<dyn Send>),
        (held.path().to_owned(), Box::new(held)),
    ] {
        assert!(exists(&path), "{path}");
        thread::spawn(move || drop(guard)).join().unwrap();
        until("the end of the node", || !exists(&path));
    }
    until("the thread has ended", || !thread.exists());
    // The thread sends the close of the session, and does not wait for the answer.
    until("the end of the session", || server.sessions().is_empty());
}

#[test]
fn a_call_that_gives_up_drops_its_future_and_says_where() {
    let server = server();
    let manager = connect(&server);
    let mutex = Mutex::new(&manager, "/lock").unwrap();
    let guard = mutex.acquire().unwrap();
    let limit = Duration::from_millis(500);
    let late = mutex.call_timeout(limit, async |mutex| mutex.acquire().await).unwrap_err();
    let Error::Timeout { phase: Phase::Call(place), waited, .. } = &late else { panic!("{late:?}") };
    assert!(place.file().ends_with("calls.rs") && *waited == limit, "{late}");
    assert!(late.to_string().contains(&place.to_string()), "{late}");
    until("only the holder has a node", || contenders(&server, "/lock") == 1);
    assert!(guard.is_valid());
}

#[test]
fn a_call_that_gives_up_may_have_written_and_its_error_says_so() {
    let server = server();
    let manager = connect(&server);
    let visits = counter(&manager);
    let mut limit = Duration::from_millis(100);
    let late = loop {
        let is_added = Cell::new(false);
        let late = visits.call_timeout(limit, async |visits| {
            visits.set(1).await?;
            is_added.set(true);
            pending::<Result<(), Error>>().await
        });
        if is_added.get() {
            break late.unwrap_err();
        }
        limit *= 2;
    };
    assert_eq!(visits.call(async |visits| visits.get().await).unwrap(), 1);
    assert!(late.is_timeout() && !late.is_transient(), "{late:?}");
    assert_eq!(late.outcome(), Outcome::Unknown);
}

#[test]
fn a_shutdown_ends_a_call_in_another_thread() {
    let server = server();
    let manager = connect(&server);
    let barrier = manager.wrap(async |manager| DoubleBarrier::new(manager, "/step", 2)).unwrap();
    thread::scope(|threads| {
        let waiting = threads.spawn(|| barrier.call(async |barrier| barrier.enter().await));
        until("the member", || contenders(&server, "/step") == 1);
        manager.shutdown().unwrap();
        assert!(waiting.join().unwrap().unwrap_err().is_closed());
    });
    assert_eq!(contenders(&server, "/step"), 0);
}
