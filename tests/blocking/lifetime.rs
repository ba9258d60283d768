//! The thread behind a manager, and its end.

use std::fs;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use lockkeeper::Error;
use lockkeeper::blocking::{ConnectionManager, ConnectionPool, Mutex, with_manager};
use lockkeeper::config::{HandOffPolicy, RetryPolicy};
use lockkeeper::error::ConnectError;
use lockkeeper_tests::Timing;

use crate::support::{aside, builder, connect, contenders, server, until};

/// Where the system shows the manager's thread for as long as it runs.
pub(crate) fn thread_of(manager: &ConnectionManager) -> PathBuf {
    let spawned = async || tokio::spawn(async { fs::read_link("/proc/thread-self") }).await;
    let thread = manager.call(async |_| Ok(spawned().await)).unwrap().unwrap().unwrap();
    let thread = Path::new("/proc").join(thread);
    assert_eq!(fs::read_to_string(thread.join("comm")).unwrap().trim(), "lockkeeper");
    thread
}

#[test]
fn a_guard_outlives_its_manager_and_lock_and_the_thread_ends_with_it() {
    let server = server();
    let manager = connect(&server);
    let thread = thread_of(&manager);
    let mutex = Mutex::new(&manager, "/lock").unwrap();
    let guard = mutex.acquire().unwrap();
    drop((manager, mutex));
    guard.txn().create("/written", Vec::new()).commit().unwrap();
    assert!(guard.is_valid() && thread.exists());
    drop(guard);
    until("the session is closed", || server.sessions().is_empty());
    until("the thread has ended", || !thread.exists());
    assert_eq!(contenders(&server, "/lock"), 0);
}

#[test]
fn the_managers_of_a_pool_share_a_thread_which_ends_with_the_last_of_what_they_made() {
    let server = server();
    let pool = ConnectionPool::connect_with(builder(&server), 3).unwrap();
    let paths: Vec<String> = (0..20).map(|number| format!("/locks/{number}")).collect();
    for path in &paths {
        let manager = pool.for_path(path);
        assert!(manager.as_async().is_same_as(pool.as_async().for_path(path)));
        Mutex::new(manager, path.as_str()).unwrap().acquire().unwrap().release().unwrap();
    }
    let taken = pool.managers().filter(|manager| {
        paths.iter().any(|path| pool.for_path(path).as_async().is_same_as(manager.as_async()))
    });
    assert_eq!((taken.count(), server.sessions().len()), (3, 3));

    let last = pool.managers().last().unwrap();
    let thread = thread_of(last);
    assert!(pool.managers().all(|manager| thread_of(manager) == thread));
    let guard = Mutex::new(last, "/lock").unwrap().acquire().unwrap();
    drop(pool);
    until("the other sessions are closed", || server.sessions().len() == 1);
    guard.txn().create("/written", Vec::new()).commit().unwrap();
    assert!(guard.is_valid() && thread.exists());
    drop(guard);
    until("the thread has ended", || !thread.exists());
    until("the session is closed", || server.sessions().is_empty());
}

#[test]
fn a_pool_that_is_shut_down_closes_every_session() {
    let server = server();
    let pool = ConnectionPool::connect_with(builder(&server), 2).unwrap();
    let mutex = Mutex::new(pool.for_path("/lock"), "/lock").unwrap();
    let guard = mutex.acquire().unwrap();
    assert!(pool.health().iter().all(lockkeeper::manager::Health::is_ready));
    pool.shutdown().unwrap();
    assert!(!guard.is_valid() && server.sessions().is_empty());
    assert!(mutex.acquire().unwrap_err().is_closed());
    assert!(ConnectionPool::connect_with(builder(&server), 0).is_err());
}

#[test]
fn holders_of_a_pool_that_ends_may_finish_and_who_does_not_is_cut_off() {
    let server = server();
    let pool = ConnectionPool::connect_with(builder(&server), 2).unwrap();
    let mutexes: Vec<_> = pool.managers().map(|manager| Mutex::new(manager, "/lock").unwrap()).collect();
    // One on each session: the second one waits.
    let held = mutexes[0].acquire().unwrap();
    thread::scope(|threads| {
        let waiting = threads.spawn(|| mutexes[1].acquire());
        until("it waits", || contenders(&server, "/lock") == 2);
        let ending = threads.spawn(|| pool.shutdown_within(Timing::event()));
        assert!(waiting.join().unwrap().unwrap_err().is_closed());
        assert!(held.is_valid());
        held.release().unwrap();
        assert_eq!(ending.join().unwrap().unwrap(), 0);
    });
    let pool = ConnectionPool::connect_with(builder(&server), 2).unwrap();
    let held = Mutex::new(pool.for_path("/lock"), "/lock").unwrap().acquire().unwrap();
    assert_eq!(pool.shutdown_within(Duration::from_secs(1)).unwrap(), 1);
    assert!(!held.is_valid() && server.sessions().is_empty());
}

/// The runtime's thread hands off in memory, and wakes the waiters' threads.
#[test]
fn a_guard_dropped_after_a_shutdown_has_begun_lets_no_thread_in() {
    let server = server();
    for keep in [None, Some(HandOffPolicy::default())] {
        let manager = connect(&server);
        let busy = Mutex::new(&manager, "/busy").unwrap().acquire().unwrap();
        let mutex = Mutex::new(&manager, "/lock").unwrap();
        let mutex = match keep {
            Some(keep) => mutex.with_handoff(keep).unwrap(),
            None => mutex,
        };
        let held = mutex.acquire().unwrap();
        thread::scope(|threads| {
            let waiting = [threads.spawn(|| mutex.acquire()), threads.spawn(|| mutex.acquire())];
            if keep.is_none() {
                until("they wait", || contenders(&server, "/lock") == 3);
            }
            let ending = threads.spawn(|| manager.shutdown_within(Timing::event()));
            until("it has begun", || manager.as_async().health().is_closing);
            drop(held);
            for waiting in waiting {
                assert!(waiting.join().unwrap().unwrap_err().is_closed());
            }
            assert!(mutex.acquire().unwrap_err().is_closed() && busy.is_valid());
            busy.release().unwrap();
            assert_eq!(ending.join().unwrap().unwrap(), 0);
        });
    }
}

#[test]
fn the_thread_ends_when_the_last_handle_is_dropped_within_a_runtime() {
    let server = server();
    let manager = connect(&server);
    let thread = thread_of(&manager);
    aside(async move { drop(manager) });
    until("the thread has ended", || !thread.exists());
}

#[test]
fn what_is_kept_of_the_async_face_keeps_the_thread() {
    let server = server();
    let manager = connect(&server);
    let thread = thread_of(&manager);
    let inner = manager.as_async().clone();
    drop(manager);
    let mutex = lockkeeper::Mutex::new(&inner, "/lock").unwrap();
    aside(async { mutex.acquire().await.unwrap().release().await.unwrap() });
    assert!(thread.exists());
    drop((inner, mutex));
    until("the thread has ended", || !thread.exists());
}

#[test]
fn a_shutdown_ends_waits_in_other_threads_and_later_calls_do_no_harm() {
    let server = server();
    let manager = connect(&server);
    let own_thread = thread_of(&manager);
    let mutex = Mutex::new(&manager, "/lock").unwrap();
    let guard = mutex.acquire().unwrap();
    thread::scope(|threads| {
        let waiting = threads.spawn(|| mutex.acquire());
        until("the other thread waits", || contenders(&server, "/lock") == 2);
        manager.shutdown().unwrap();
        assert!(waiting.join().unwrap().unwrap_err().is_closed());
    });
    assert!(server.sessions().is_empty());
    assert!(guard.wait_lost(Timing::event()).is_some());
    assert!(mutex.acquire_timeout(Timing::event()).unwrap_err().is_closed());
    assert!(guard.release().unwrap_err().is_lost());
    manager.shutdown().unwrap();
    drop((manager, mutex));
    until("the thread has ended", || !own_thread.exists());
}

#[test]
fn a_thread_that_ends_is_refused_and_does_not_panic() {
    struct AtTheEnd(std::cell::RefCell<Option<(Mutex, std::sync::mpsc::Sender<bool>)>>);
    impl Drop for AtTheEnd {
        fn drop(&mut self) {
            if let Some((mutex, reported)) = self.0.borrow_mut().take() {
                let taken = mutex.try_acquire();
                let _ = reported
                    .send(taken.as_ref().is_ok_and(Option::is_some) || crate::support::is_refused(&taken));
            }
        }
    }
    thread_local! {
        static AT_THE_END: AtTheEnd = const { AtTheEnd(std::cell::RefCell::new(None)) };
    }
    let server = server();
    let mutex = Mutex::new(&connect(&server), "/lock").unwrap();
    let (reported, hear) = std::sync::mpsc::channel();
    thread::spawn(move || {
        AT_THE_END.with(|at_the_end| *at_the_end.0.borrow_mut() = Some((mutex.clone(), reported)));
        // Registered later, and so destroyed earlier: the thread locals that a wait needs.
        mutex.try_acquire().unwrap().unwrap().release().unwrap();
    })
    .join()
    .unwrap();
    assert!(hear.recv_timeout(Timing::event()).unwrap());
}

#[test]
fn unreachable_servers_end_a_connect_with_a_timeout() {
    let server = server();
    let nobody = builder(&server).connect_deadline(Duration::from_millis(50));
    drop(server);
    let refused = ConnectionManager::connect_with(nobody.retry(RetryPolicy::default()));
    assert!(matches!(refused, Err(Error::Connect(ConnectError::Timeout { .. }))), "{refused:?}");
}

#[test]
fn with_manager_shuts_down_after_a_value_an_error_and_a_panic() {
    type WorkResult<T> = Result<T, Box<dyn std::error::Error>>;

    let server = server();
    let settings = || builder(&server).session_timeout(Duration::from_secs(60));
    let take = |manager: &ConnectionManager| -> WorkResult<()> {
        // Only the end of the session deletes its node.
        std::mem::forget(Mutex::new(manager, "/lock")?.acquire()?);
        Ok(())
    };
    let value: WorkResult<u32> = with_manager(settings(), |manager| take(&manager).map(|()| 7));
    assert_eq!((value.unwrap(), server.sessions().len()), (7, 0));
    let failed: WorkResult<()> = with_manager(settings(), |manager| {
        take(&manager)?;
        Err("a fault of the work".into())
    });
    assert_eq!(
        (failed.unwrap_err().to_string().as_str(), server.sessions().len()),
        ("a fault of the work", 0)
    );
    let panicking = || -> WorkResult<()> {
        with_manager(settings(), |manager| {
            take(&manager)?;
            panic!("a fault of the work")
        })
    };
    let panic = std::panic::catch_unwind(AssertUnwindSafe(panicking)).unwrap_err();
    assert_eq!(panic.downcast_ref::<&str>(), Some(&"a fault of the work"));
    assert_eq!((contenders(&server, "/lock"), server.sessions().len()), (0, 0));
}
