//! Acquires and work that a program abandons by `select!`, by a timeout or with its runtime: no node is left.

use std::task::Poll;
use std::time::Duration;

use futures::FutureExt;
use lockkeeper::znodes::TxnResult;
use lockkeeper::{Mutex, Semaphore};
use lockkeeper_tests::{After, Ensemble, Timing, dropped_after, eventually};

use crate::support::{builder, children, connect, no_node_is_left, nodes_become};

/// The times after which an acquire is dropped: from none to more than an acquire takes.
fn spans() -> impl Iterator<Item = Duration> {
    (0..12).map(|number| Duration::from_micros(300) * number * number)
}

#[tokio::test]
async fn an_acquire_dropped_by_select_or_by_a_timeout_leaves_no_node() {
    let ensemble = Ensemble::lend().await.unwrap();
    let (manager, other) =
        (connect(&ensemble.connect_string()).await, connect(&ensemble.connect_string()).await);
    let (mutex, others) = (Mutex::new(&manager, "/lock").unwrap(), Mutex::new(&other, "/lock").unwrap());
    let permits = Semaphore::new(&manager, "/permits", 2).unwrap();
    let mut taken = 0;
    for span in spans() {
        for is_free in [true, false] {
            let held = if is_free { None } else { Some(others.acquire().await.unwrap()) };
            tokio::select! {
                guard = mutex.acquire() => {
                    assert!(is_free, "two holders");
                    drop(guard.unwrap());
                    taken += 1;
                }
                // The passing of time is the subject: the acquire is dropped wherever it is then.
                () = tokio::time::sleep(span) => {}
            }
            let _ = tokio::time::timeout(span, mutex.acquire()).await;
            // The timeout of the library.
            let _ = mutex.acquire_timeout(span).await;
            let _ = tokio::time::timeout(span, permits.acquire_many(2)).await;
            nodes_become(&ensemble, "/lock", usize::from(!is_free)).await;
            if let Some(held) = held {
                held.release().await.unwrap();
            }
        }
        for path in ["/lock", "/permits/locks", "/permits/leases"] {
            no_node_is_left(&ensemble, path).await;
        }
    }
    let mut span = Duration::from_millis(50);
    while taken == 0 {
        assert!(span < Timing::event(), "no acquire was granted in time");
        let _dropped = tokio::time::timeout(span, mutex.acquire()).await.map(|_| taken += 1);
        span *= 2;
    }
}

#[test]
fn an_acquire_that_ends_with_its_runtime_leaves_no_node() {
    let ours = tokio::runtime::Runtime::new().unwrap();
    let (ensemble, manager) = ours.block_on(async {
        let ensemble = Ensemble::lend().await.unwrap();
        let manager = connect(&ensemble.connect_string()).await;
        (ensemble, manager)
    });
    let mutex = Mutex::new(&manager, "/lock").unwrap();
    let theirs = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let (holds, is_held) = tokio::sync::oneshot::channel();
    theirs.spawn({
        let mutex = mutex.clone();
        async move {
            let guard = mutex.acquire().await.unwrap();
            holds.send(()).unwrap();
            guard.run(std::future::pending::<()>()).await.unwrap_err();
        }
    });
    ours.block_on(is_held).unwrap();
    for _ in 0..3 {
        let mutex = mutex.clone();
        theirs.spawn(async move { mutex.acquire().await });
    }
    ours.block_on(nodes_become(&ensemble, "/lock", 4));
    // The manager lives on the other runtime, and continues.
    drop(theirs);
    ours.block_on(async {
        no_node_is_left(&ensemble, "/lock").await;
        mutex.acquire().await.unwrap().release().await.unwrap();
        manager.shutdown().await.unwrap();
    });
}

#[tokio::test]
async fn a_wait_dropped_outside_a_runtime_leaves_no_node() {
    let ensemble = Ensemble::lend().await.unwrap();
    let (manager, other) =
        (connect(&ensemble.connect_string()).await, connect(&ensemble.connect_string()).await);
    let held = Mutex::new(&other, "/lock").unwrap().acquire().await.unwrap();
    let mutex = Mutex::new(&manager, "/lock").unwrap();
    let mut waiting = Box::pin(async move { mutex.acquire().await });
    tokio::select! {
        _ = &mut waiting => panic!("two holders"),
        () = nodes_become(&ensemble, "/lock", 2) => {}
    }
    std::thread::spawn(move || drop(waiting)).join().unwrap();
    nodes_become(&ensemble, "/lock", 1).await;
    held.release().await.unwrap();
}

#[tokio::test]
async fn a_panic_in_the_work_releases_the_lock_and_dropping_the_work_does_not() {
    let ensemble = Ensemble::lend().await.unwrap();
    let manager = connect(&ensemble.connect_string()).await;
    let mutex = Mutex::new(&manager, "/lock").unwrap();
    for polls in 0..3 {
        let mutex = mutex.clone();
        let task = tokio::spawn(async move {
            let guard = mutex.acquire().await.unwrap();
            let mut polled = 0;
            let work = std::future::poll_fn(|context| {
                assert!(polled < polls, "as a bug in the work would");
                polled += 1;
                context.waker().wake_by_ref();
                Poll::<()>::Pending
            });
            guard.run(work).await
        });
        assert!(task.await.unwrap_err().is_panic());
        no_node_is_left(&ensemble, "/lock").await;
    }
    let guard = mutex.acquire().await.unwrap();
    assert!(guard.run(std::future::pending::<()>()).now_or_never().is_none());
    assert!(guard.lost().now_or_never().is_none());
    assert!(guard.is_valid());
    assert_eq!(children(&ensemble, "/lock").await.len(), 1);
    guard.release().await.unwrap();
}

#[tokio::test]
async fn a_commit_dropped_at_any_await_is_applied_at_most_once_and_keeps_the_hold() {
    let ensemble = Ensemble::lend().await.unwrap();
    let manager = connect(&ensemble.connect_string()).await;
    let guard = Mutex::new(&manager, "/lock").unwrap().acquire().await.unwrap();
    ensemble
        .raw()
        .await
        .unwrap()
        .create("/register", b"", lockkeeper_tests::CreateMode::Persistent)
        .await
        .unwrap();
    for polls in 0.. {
        let write = || guard.txn().set("/register", Vec::new(), -1).commit();
        let version = async || ensemble.raw().await.unwrap().data("/register").await.unwrap().1.version;
        let before = version().await;
        let is_done = matches!(dropped_after(polls, write()).await, After::Done(_));
        // Answers arrive in order: after this answer no request of the commit is in flight.
        let results = write().await.unwrap();
        let Some(TxnResult::Written { version: after, .. }) = results.first() else { panic!("{results:?}") };
        assert!((before + 1..=before + 2).contains(after), "{before} became {after}");
        assert!(guard.is_valid());
        if is_done {
            break;
        }
    }
    guard.release().await.unwrap();
    no_node_is_left(&ensemble, "/lock").await;
}

#[tokio::test]
async fn a_connect_or_a_shutdown_dropped_at_any_await_leaves_no_session() {
    let ensemble = Ensemble::lend().await.unwrap();
    let no_session = async || {
        eventually("no session", Timing::settle(), async || {
            let connections = ensemble.server(0).connections().await.unwrap();
            connections.iter().all(|connection| connection.session.is_none()).then_some(())
        })
        .await
        .unwrap();
    };
    for polls in 0.. {
        let after = dropped_after(polls, builder(&ensemble.connect_string()).connect()).await;
        let is_end = after.is_end();
        drop(after);
        no_session().await;
        if is_end {
            break;
        }
    }
    for polls in 0.. {
        let manager = connect(&ensemble.connect_string()).await;
        let guard = Mutex::new(&manager, "/lock").unwrap().acquire().await.unwrap();
        let after = dropped_after(polls, manager.shutdown()).await;
        let is_end = after.is_end();
        drop((after, manager, guard));
        no_node_is_left(&ensemble, "/lock").await;
        no_session().await;
        if is_end {
            break;
        }
    }
}
