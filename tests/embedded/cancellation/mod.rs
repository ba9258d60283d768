//! Every future, dropped at every await, with nothing wrong and with everything that can go wrong underneath.
//!
//! A future is polled once, twice, three times …, and dropped there, until it gets to its end or sleeps for
//! good.

mod trap;

use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use lockkeeper::{ConnectionManager, Mutex, Owner, RateLimiter, ReentrantMutex, RwLock, ZnodePath};
use lockkeeper_test_recipes::mutex::Plain;
use lockkeeper_test_recipes::reentrant_mutex::Reentrant;
use lockkeeper_test_recipes::rw_lock::{Reading, Writing};
use lockkeeper_test_recipes::{AnyAdapter, for_each_lock};
use lockkeeper_tests::{After, Timing, dropped_after};
use lockkeeper_testserver::{Fault, Op, When};

use self::trap::{ops_of, traps};
use crate::limit::within;
use crate::oracle::nodes;
use crate::server_fixture::{LOCK, SESSION, ServerFixture, builder, queue_nodes, target};

/// No node of the actor is left, and both clients get the lock.
async fn nothing_is_left(
    adapter: AnyAdapter,
    server_fixture: &ServerFixture,
    actor: &ConnectionManager,
    case: &str,
) {
    server_fixture.queue_length_becomes(0).await.unwrap_or_else(|error| panic!("{case}: {error}"));
    for manager in [&server_fixture.rival, actor] {
        let guard = within(case, adapter.exclude(target(manager))).await.unwrap();
        let _ = guard.unwrap_or_else(|error| panic!("{case}: {error}")).release().await;
    }
    server_fixture.queue_length_becomes(0).await.unwrap_or_else(|error| panic!("{case}: {error}"));
}

async fn assert_connected(actor: &ConnectionManager, case: &str) {
    within(case, actor.connected()).await.unwrap().unwrap();
}

/// A client whose session outlasts what a fault holds back, with every scale of the waits: a server applies
/// no request later than a session timeout after its connection has broken (docs/failure-model.md).
async fn patient_actor(server_fixture: &ServerFixture) -> ConnectionManager {
    let client = builder(&server_fixture.server.connect_string()).session_timeout(Timing::scaled(SESSION));
    client.connect().await.unwrap()
}

async fn start(adapter: AnyAdapter) -> (ServerFixture, ConnectionManager) {
    let server_fixture = ServerFixture::start().await.unwrap();
    adapter.prepare(target(&server_fixture.rival)).await.unwrap();
    let actor = patient_actor(&server_fixture).await;
    adapter.exclude(target(&server_fixture.rival)).await.unwrap().release().await.unwrap();
    (server_fixture, actor)
}

/// Drops what `make` makes after every number of polls, under every fault at everything that it sends.
pub(crate) async fn dropped_anywhere<F: Future>(adapter: AnyAdapter, make: impl Fn(ConnectionManager) -> F) {
    let (server_fixture, actor) = start(adapter).await;
    let ops = ops_of(&server_fixture, make(actor)).await;
    assert!(!ops.is_empty());
    let mut cases = 0;
    for trap in traps(&ops) {
        let (server_fixture, actor) = start(adapter).await;
        for polls in 0.. {
            cases += 1;
            let case = format!("{} at {:?}, dropped after {polls} polls", trap.name, trap.op);
            assert_connected(&actor, &case).await;
            let set = trap.set(&server_fixture);
            let after = dropped_after(polls, make(actor.clone())).await;
            let is_end = after.is_end();
            drop(after);
            // Lets pass what is held back.
            drop(set);
            nothing_is_left(adapter, &server_fixture, &actor, &case).await;
            if is_end {
                assert!(polls > 0, "{case}: there are more awaits than that");
                break;
            }
        }
    }
    println!("{cases} cases at {ops:?}");
}

async fn acquire_makes_its_directory(adapter: AnyAdapter) {
    let begin = || async {
        let server_fixture = ServerFixture::start().await.unwrap();
        adapter.prepare(target(&server_fixture.rival)).await.unwrap();
        let actor = patient_actor(&server_fixture).await;
        (server_fixture, actor)
    };
    let (server_fixture, actor) = begin().await;
    for trap in traps(&ops_of(&server_fixture, adapter.acquire(target(&actor))).await) {
        for polls in 0.. {
            let case = format!("{} at {:?}, dropped after {polls} polls", trap.name, trap.op);
            let (server_fixture, actor) = begin().await;
            let set = trap.set(&server_fixture);
            let after = dropped_after(polls, adapter.acquire(target(&actor))).await;
            let (is_end, is_done) = (after.is_end(), matches!(after, After::Done(_)));
            drop(after);
            drop(set);
            nothing_is_left(adapter, &server_fixture, &actor, &case).await;
            if is_end {
                let has_few = adapter.waits_for_task() || !is_done;
                assert!(polls > 4 || has_few, "{case}: making a directory takes more awaits");
                break;
            }
        }
    }
}

async fn wait(adapter: AnyAdapter) {
    let (server_fixture, actor) = start(adapter).await;
    let held = adapter.exclude(target(&server_fixture.rival)).await.unwrap();
    let ops = ops_of(&server_fixture, adapter.acquire(target(&actor))).await;
    drop(held);
    for trap in traps(&ops) {
        let (server_fixture, actor) = start(adapter).await;
        for polls in 0.. {
            let case = format!("{} at {:?}, dropped after {polls} polls", trap.name, trap.op);
            assert_connected(&actor, &case).await;
            let held = adapter.exclude(target(&server_fixture.rival)).await.unwrap();
            let nodes = nodes(&held);
            let set = trap.set(&server_fixture);
            let after = dropped_after(polls, adapter.acquire(target(&actor))).await;
            assert!(!matches!(after, After::Done(_)), "{case}: two holders");
            let is_end = after.is_end();
            drop(after);
            drop(set);
            server_fixture
                .queue_length_becomes(nodes)
                .await
                .unwrap_or_else(|error| panic!("{case}: {error}"));
            held.release().await.unwrap();
            nothing_is_left(adapter, &server_fixture, &actor, &case).await;
            if is_end {
                break;
            }
        }
    }
}

async fn wait_at_its_grant(adapter: AnyAdapter) {
    // The event is in flight, or lost with its connection; then the next requests of the waiter.
    for trap in traps(&[Op::GetChildren, Op::Exists, Op::Multi]) {
        let (server_fixture, actor) = start(adapter).await;
        for polls in 0.. {
            let case = format!("{} at {:?}, dropped {polls} polls after the event", trap.name, trap.op);
            assert_connected(&actor, &case).await;
            let held = adapter.exclude(target(&server_fixture.rival)).await.unwrap();
            let mut waiting = Box::pin(adapter.acquire(target(&actor)));
            let watches = async {
                tokio::select! {
                    _ = &mut waiting => panic!("{case}: two holders"),
                    () = server_fixture.server.wait_until(|machine| {
                        machine.watch_count(0) == adapter.watches()
                    }) => {}
                }
            };
            within(&case, watches).await.unwrap();
            let set = trap.set(&server_fixture);
            held.release().await.unwrap();
            let after = dropped_after(polls, &mut waiting).await;
            let is_end = after.is_end();
            drop(after);
            drop(waiting);
            drop(set);
            nothing_is_left(adapter, &server_fixture, &actor, &case).await;
            if is_end {
                break;
            }
        }
    }
}

/// Every public future of a recipe.
macro_rules! recipes {
    ($($name:ident: $adapter:expr,)*) => {
        $(
            mod $name {
                use super::*;

                const ADAPTER: AnyAdapter = $adapter;

                #[tokio::test]
                async fn an_acquire_dropped_anywhere_under_any_fault_leaves_nothing() {
                    dropped_anywhere(ADAPTER, |actor| ADAPTER.acquire(target(&actor))).await;
                }

                #[tokio::test]
                async fn a_timed_acquire_dropped_anywhere_under_any_fault_leaves_nothing() {
                    let timeout = Duration::from_secs(20);
                    dropped_anywhere(ADAPTER, |actor| ADAPTER.acquire_timeout(target(&actor), timeout)).await;
                }

                #[tokio::test]
                async fn a_try_dropped_anywhere_under_any_fault_leaves_nothing() {
                    dropped_anywhere(ADAPTER, |actor| ADAPTER.try_acquire(target(&actor))).await;
                }

                #[tokio::test]
                async fn a_release_dropped_anywhere_under_any_fault_is_completed() {
                    let hold_and_release =
                        |actor| async move { ADAPTER.acquire(target(&actor)).await.unwrap().release().await };
                    dropped_anywhere(ADAPTER, hold_and_release).await;
                }

                #[tokio::test]
                async fn an_acquire_that_makes_its_directory_dropped_anywhere_leaves_nothing() {
                    acquire_makes_its_directory(ADAPTER).await;
                }

                #[tokio::test]
                async fn a_wait_dropped_anywhere_under_any_fault_leaves_nothing_and_the_next_is_served() {
                    wait(ADAPTER).await;
                }

                #[tokio::test]
                async fn a_wait_dropped_at_its_grant_under_any_fault_passes_it_on() {
                    wait_at_its_grant(ADAPTER).await;
                }
            }
        )*
    };
}

for_each_lock!(recipes);

#[tokio::test]
async fn an_admission_dropped_anywhere_under_any_fault_leaves_no_contender_in_the_queue() {
    let admit = |actor: ConnectionManager| async move {
        RateLimiter::new(&actor, format!("{LOCK}/calls"), 1_000, Duration::from_secs(60))
            .unwrap()
            .admit()
            .await
    };
    dropped_anywhere(&Plain, admit).await;
}

#[tokio::test]
async fn a_nested_hold_dropped_anywhere_under_any_fault_leaves_nothing() {
    let reenter = |actor: ConnectionManager| async move {
        let mutex = ReentrantMutex::new(&actor, LOCK).unwrap();
        let owner = Owner::new("one");
        let outer = mutex.acquire(&owner).await.unwrap();
        // The hold may be lost by now.
        if let Ok(nested) = mutex.acquire(&owner).await {
            let _ = nested.release().await;
        }
        let _ = outer.release().await;
        assert_eq!(mutex.hold_count(&owner), 0);
    };
    dropped_anywhere(&Reentrant, reenter).await;
}

#[tokio::test]
async fn a_downgrade_dropped_anywhere_under_any_fault_leaves_nothing() {
    let downgrade = |actor: ConnectionManager| async move {
        // Either may be lost by now.
        if let Ok(write) = RwLock::new(&actor, LOCK).unwrap().write().await {
            let _ = write.downgrade().await;
        }
    };
    dropped_anywhere(&Writing, downgrade).await;
}

#[tokio::test]
async fn a_read_under_a_write_dropped_anywhere_under_any_fault_leaves_nothing() {
    let read_under_write = |actor: ConnectionManager| async move {
        let owner = Owner::new("one");
        let lock = RwLock::new(&actor, LOCK).unwrap().for_owner(&owner);
        if let Ok(write) = lock.write().await {
            let read = lock.read().await;
            let _ = write.downgrade().await;
            drop(read);
        }
        assert_eq!((lock.read_hold_count(&owner), lock.write_hold_count(&owner)), (0, 0));
    };
    dropped_anywhere(&Writing, read_under_write).await;
}

#[tokio::test]
async fn a_try_to_upgrade_dropped_anywhere_under_any_fault_leaves_nothing() {
    let upgrade = |actor: ConnectionManager| async move {
        if let Ok(read) = RwLock::new(&actor, LOCK).unwrap().read().await {
            let _ = read.try_upgrade().await;
        }
    };
    dropped_anywhere(&Reading, upgrade).await;
}

#[tokio::test]
async fn a_commit_dropped_anywhere_under_any_fault_is_done_once_or_not_at_all() {
    let attempts = AtomicUsize::new(0);
    let commit = |actor: ConnectionManager| {
        let node = format!("/written-{}-", attempts.fetch_add(1, Ordering::Relaxed));
        let root: ZnodePath = "/".parse().unwrap();
        async move {
            let guard = Mutex::new(&actor, LOCK).unwrap().acquire().await.unwrap();
            let _ = guard.txn().create_sequential(node, "").commit().await;
            // However late, each was written once at most.
            let written = actor.znodes().children(&root).await;
            let mut written: Vec<String> = written.ok().flatten().unwrap_or_default();
            written.retain_mut(|node| {
                node.starts_with("written-") && !node.split_off(node.len() - 10).is_empty()
            });
            let count = written.len();
            written.dedup();
            assert_eq!(written.len(), count, "a transaction was done twice");
        }
    };
    dropped_anywhere(&Plain, commit).await;
}

#[tokio::test]
async fn a_connect_dropped_anywhere_leaves_no_session() {
    for fault in [None, Some(Fault::HoldReply), Some(Fault::DropConnectionBefore), Some(Fault::DropReply)] {
        let server_fixture = ServerFixture::start().await.unwrap();
        for polls in 0.. {
            let case = format!("{fault:?}, dropped after {polls} polls");
            let set = fault.map(|fault| server_fixture.server.fault(When::connect(), fault));
            let after =
                dropped_after(polls, builder(&server_fixture.server.connect_string()).connect()).await;
            let is_end = after.is_end();
            drop(after);
            drop(set);
            // The rival's is left. What was just being opened ends with its time.
            let gone = server_fixture.server.wait_until(|machine| machine.sessions().len() == 1);
            within(&case, gone).await.unwrap();
            if is_end {
                break;
            }
        }
    }
}

#[tokio::test]
async fn a_shutdown_dropped_anywhere_is_completed() {
    for fault in
        [None, Some(Fault::HoldReply), Some(Fault::DropConnectionBefore), Some(Fault::DropConnectionAfter)]
    {
        let (server_fixture, first) = start(&Plain).await;
        first.shutdown().await.unwrap();
        for polls in 0.. {
            let case = format!("{fault:?}, dropped after {polls} polls");
            let actor = server_fixture.brief_actor().await.unwrap();
            let guard = Mutex::new(&actor, LOCK).unwrap().acquire().await.unwrap();
            let set = fault.map(|fault| server_fixture.server.fault(When::op(Op::CloseSession), fault));
            let after = dropped_after(polls, actor.shutdown()).await;
            let is_end = after.is_end();
            // A shutdown continues without its future. So does that of the last handles.
            drop((after, actor, guard));
            drop(set);
            let gone = server_fixture.server.wait_until(|machine| machine.sessions().len() == 1);
            within(&case, gone).await.unwrap();
            assert_eq!(server_fixture.server.inspect(queue_nodes), [""; 0], "{case}");
            if is_end {
                break;
            }
        }
    }
}
