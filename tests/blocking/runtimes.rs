//! Within runtimes of tokio.

use std::sync::Arc;
use std::time::Duration;

use lockkeeper::blocking::{Blocking, ConnectionManager, ConnectionPool, MultiLock, Mutex, ReentrantMutex};
use lockkeeper::{Barrier, Error, ReleaseError};
use lockkeeper_tests::Timing;
use lockkeeper_testserver::TestServer;
use tokio::runtime::{Builder, Runtime};
use tokio::task::{block_in_place, consume_budget, coop, spawn_blocking, unconstrained, yield_now};
use tokio::time::timeout;

use crate::support::{builder, children, connect, contenders, is_refused, server, until};

/// One thread each: a task that blocks it blocks all tasks.
fn runtimes() -> [Runtime; 2] {
    let many = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    [Builder::new_current_thread().enable_all().build().unwrap(), many]
}

fn assert_all_is_refused(server: &TestServer, manager: &ConnectionManager) {
    let mutex = Mutex::new(manager, "/lock").unwrap();
    assert!(is_refused(&ConnectionManager::connect_with(builder(server))));
    assert!(is_refused(&ConnectionPool::connect_with(builder(server), 2)));
    assert!(is_refused(&mutex.acquire()));
    assert!(is_refused(&mutex.acquire_timeout(Duration::ZERO)));
    assert!(is_refused(&mutex.try_acquire()));
    assert!(is_refused(&ReentrantMutex::new(manager, "/lock").unwrap().acquire()));
    let several = MultiLock::builder().lock(&mutex).build().unwrap();
    assert!(is_refused(&several.acquire().map_err(Into::into)));
}

#[test]
fn in_an_async_task_waiting_is_refused_before_anything_is_sent() {
    let server = Arc::new(server());
    let manager = connect(&server);
    for runtime in runtimes() {
        runtime.block_on(async { assert_all_is_refused(&server, &manager) });
        let (server, manager) = (Arc::clone(&server), manager.clone());
        let task = runtime.spawn(async move { assert_all_is_refused(&server, &manager) });
        runtime.block_on(task).unwrap();
    }
    assert!(server.inspect(|machine| machine.tree().node("/lock").is_none()));
    assert_eq!(server.sessions().len(), 1);
}

fn assert_all_calls_are_refused(manager: &ConnectionManager, mut barrier: Blocking<Barrier>) {
    let set = async |barrier: &Barrier| -> Result<bool, Error> { panic!("{barrier:?} is called") };
    let make = async |manager: &_| -> Result<Barrier, Error> { panic!("{manager:?} is called") };
    assert!(is_refused(&manager.call(make)) && is_refused(&manager.wrap(make)));
    assert!(is_refused(&manager.call_timeout(Timing::event(), make)));
    assert!(is_refused(&barrier.call(set)) && is_refused(&barrier.wrap(set)));
    assert!(is_refused(&barrier.call_timeout(Timing::event(), set)));
    assert!(is_refused(&barrier.call_mut(async |barrier| set(barrier).await)));
    assert!(is_refused(&barrier.call_mut_timeout(Timing::event(), async |barrier| set(barrier).await)));
    assert!(is_refused(&barrier.call_once(async |barrier| set(&barrier).await)));
}

#[test]
fn in_an_async_task_a_call_is_refused_and_its_closure_is_not_called() {
    let server = server();
    let manager = connect(&server);
    let barrier = manager.wrap(async |manager| Barrier::new(manager, "/barrier")).unwrap();
    for runtime in runtimes() {
        let (manager, barrier) = (manager.clone(), barrier.clone());
        runtime.block_on(async { assert_all_calls_are_refused(&manager, barrier.clone()) });
        let task = runtime.spawn(async move { assert_all_calls_are_refused(&manager, barrier) });
        runtime.block_on(task).unwrap();
    }
}

#[test]
fn where_a_runtime_lets_block_a_wait_ends_though_a_task_of_the_same_runtime_holds() {
    let server = server();
    let manager = connect(&server);
    for runtime in runtimes() {
        let mutex = Mutex::new(&manager, "/lock").unwrap();
        let guard = mutex.acquire().unwrap();
        let server = &server;
        let waited = runtime.block_on(async {
            let waiting = spawn_blocking(move || mutex.acquire_timeout(Timing::event()));
            server.wait_until(|machine| children(machine, "/lock") == 2).await;
            drop(guard);
            waiting.await.unwrap()
        });
        waited.unwrap().release().unwrap();
    }
}

#[test]
fn in_block_in_place_other_tasks_of_the_thread_continue_and_release() {
    let server = Arc::new(server());
    let mutex = Mutex::new(&connect(&server), "/lock").unwrap();
    let guard = mutex.acquire().unwrap();
    let [_, runtime] = runtimes();
    let holder = Arc::clone(&server);
    let holding = runtime.spawn(async move {
        holder.wait_until(|machine| children(machine, "/lock") == 2).await;
        drop(guard);
    });
    let waiting = runtime.spawn(async move { block_in_place(|| mutex.acquire_timeout(Timing::event())) });
    runtime.block_on(async {
        waiting.await.unwrap().unwrap().release().unwrap();
        holding.await.unwrap();
    });
}

#[test]
fn what_cannot_be_seen_as_a_task_blocks_and_is_served_all_the_same() {
    let server = server();
    let mutex = Mutex::new(&connect(&server), "/lock").unwrap();
    for runtime in runtimes() {
        // The runtime has no thread left, and is not needed.
        let acquired = runtime.block_on(unconstrained(async { mutex.acquire_timeout(Timing::event()) }));
        acquired.unwrap().release().unwrap();
    }
    // `block_in_place` gives no budget back to a future of `block_on`: its next await does.
    let [_, runtime] = runtimes();
    runtime.block_on(async {
        block_in_place(|| ());
        mutex.acquire_timeout(Timing::event()).unwrap().release().unwrap();
        yield_now().await;
        assert!(is_refused(&mutex.try_acquire()));
    });
    runtime
        .block_on(runtime.spawn(async move {
            block_in_place(|| ());
            assert!(is_refused(&mutex.try_acquire()));
        }))
        .unwrap();
}

#[test]
fn giving_back_works_in_an_async_task_though_it_has_used_up_its_budget() {
    let server = server();
    for runtime in runtimes() {
        let manager = connect(&server);
        let mutex = Mutex::new(&manager, "/lock").unwrap();
        let guard = mutex.acquire().unwrap();
        let task = runtime.spawn(async move {
            while coop::has_budget_remaining() {
                consume_budget().await;
            }
            guard.release().unwrap();
            manager.shutdown().unwrap();
        });
        let running = std::thread::spawn(move || runtime.block_on(task));
        until("the task ends", || running.is_finished());
        running.join().unwrap().unwrap();
        assert_eq!(contenders(&server, "/lock"), 0);
        assert!(mutex.try_acquire().unwrap_err().is_closed());
    }
}

#[test]
fn a_pool_is_shut_down_in_an_async_task_but_waits_for_no_holder_there() {
    let server = server();
    for runtime in runtimes() {
        let pool = ConnectionPool::connect_with(builder(&server), 2).unwrap();
        let guard = Mutex::new(pool.for_path("/lock"), "/lock").unwrap().acquire().unwrap();
        runtime.block_on(async {
            assert!(is_refused(&pool.shutdown_within(Timing::event())));
            assert!(guard.is_valid());
            pool.shutdown().unwrap();
        });
        assert!(!guard.is_valid() && server.sessions().is_empty());
    }
}

#[test]
fn on_the_managers_own_thread_nothing_is_waited_for() {
    let server = server();
    let manager = connect(&server);
    let mutex = Mutex::new(&manager, "/lock").unwrap();
    let guard = mutex.acquire().unwrap();
    let (own, again) = (manager.clone(), mutex.clone());
    let spawned = async {
        // Not seen as a task there, but as the thread that would have to do the work.
        tokio::spawn(unconstrained(async move {
            assert!(is_refused(&again.try_acquire()));
            assert!(is_refused(&own.shutdown()) && is_refused(&own.call(async |_| Ok(()))));
            assert!(guard.wait_lost(Timing::event()).is_none());
            guard.release()
        }))
        .await
        .unwrap()
    };
    let released = manager.call(async |_| Ok(timeout(Timing::event(), spawned).await)).unwrap();
    let released = released.expect("it ends");
    assert!(matches!(released, Err(ReleaseError::Unconfirmed { .. })), "{released:?}");
    // It was given back in the background.
    until("the lock is free", || contenders(&server, "/lock") == 0);
}
