//! Every future, dropped at every await, with nothing wrong and with everything that can go wrong underneath.
//!
//! A future is polled once, twice, three times …, and dropped there, until it gets to its end or sleeps for good.

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use lockkeeper::{ConnectionManager, Mutex, Owner, ReentrantMutex, ZnodePath};
use lockkeeper_tests::Timing;
use lockkeeper_testserver::{ArmedFault, Fault, Op, When};

use crate::limit::within;
use crate::world::{LOCK, World, builder, in_line};

/// What became of a future that was given so many polls.
#[derive(Debug)]
enum After<T> {
    /// It got to its end.
    Done(T),
    /// It was dropped with its polls used up.
    Dropped,
    /// It was dropped while it slept and nothing woke it: further polls would be the same case.
    Asleep,
}

/// Polls `future` at most `polls` times, then drops it.
async fn dropped_after<F: Future>(polls: usize, future: F) -> After<F::Output> {
    let mut left = polls;
    let mut future = pin!(future);
    let limited = std::future::poll_fn(|context| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        match future.as_mut().poll(context) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            // Used up: dropped right where it waits.
            Poll::Pending if left == 0 => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    });
    // Not an assertion: only the end of the enumeration, for a future that waits for something that will not come.
    match tokio::time::timeout(Timing::scaled(Duration::from_millis(300)), limited).await {
        Ok(Some(output)) => After::Done(output),
        Ok(None) => After::Dropped,
        Err(_) => After::Asleep,
    }
}

/// What lies in wait while a future is dropped.
#[derive(Clone, Copy, Debug)]
struct Trap {
    name: &'static str,
    op: Option<Op>,
    fault: Fault,
}

/// Nothing, and each fault at each of these requests.
fn traps(ops: &[Op]) -> Vec<Trap> {
    let faults = [
        ("DropConnectionBefore", Fault::DropConnectionBefore),
        ("DropConnectionAfter", Fault::DropConnectionAfter),
        ("HoldRequest", Fault::HoldRequest),
        ("HoldReply", Fault::HoldReply),
        ("DelayReply", Fault::DelayReply(Duration::from_millis(10))),
    ];
    let nothing = Trap { name: "nothing", op: None, fault: Fault::DropReply };
    let each = |op: &Op| faults.map(|(name, fault)| Trap { name, op: Some(*op), fault });
    std::iter::once(nothing).chain(ops.iter().flat_map(each)).collect()
}

impl Trap {
    fn set(self, world: &World) -> Option<ArmedFault> {
        let session = world.sessions_of_actor().last().copied();
        Some(world.server.fault(When::op(self.op?).session(session?), self.fault))
    }
}

/// Nothing of the actor is left, and the lock works for everyone.
async fn nothing_is_left(world: &World, actor: &ConnectionManager, case: &str) {
    world.line_becomes(0).await.unwrap_or_else(|error| panic!("{case}: {error}"));
    for manager in [&world.rival, actor] {
        let mutex = Mutex::new(manager, LOCK).unwrap();
        let guard = within(case, mutex.acquire()).await.unwrap();
        let _ = guard.unwrap_or_else(|error| panic!("{case}: {error}")).release().await;
    }
    world.line_becomes(0).await.unwrap_or_else(|error| panic!("{case}: {error}"));
}

async fn start() -> (World, ConnectionManager) {
    let world = World::start().await.unwrap();
    let actor = world.actor().await.unwrap();
    Mutex::new(&world.rival, LOCK).unwrap().acquire().await.unwrap().release().await.unwrap();
    (world, actor)
}

/// Drops what `make` makes after every number of polls, under every trap at every one of `ops`.
async fn dropped_anywhere<M, F>(ops: &[Op], polls_least: usize, make: M)
where
    M: Fn(ConnectionManager) -> F,
    F: Future,
{
    let mut cases = 0;
    for trap in traps(ops) {
        let (world, actor) = start().await;
        for polls in 0.. {
            cases += 1;
            let case = format!("{} at {:?}, dropped after {polls} polls", trap.name, trap.op);
            within(&case, actor.connected(lockkeeper::Deadline::never())).await.unwrap().unwrap();
            let set = trap.set(&world);
            let after = dropped_after(polls, make(actor.clone())).await;
            let is_end = !matches!(after, After::Dropped);
            drop(after);
            // Lets go of what is held back.
            drop(set);
            nothing_is_left(&world, &actor, &case).await;
            if is_end {
                assert!(polls >= polls_least, "{case}: there are more awaits than that");
                break;
            }
        }
    }
    println!("{cases} cases");
}

#[tokio::test]
async fn an_acquire_dropped_anywhere_under_any_fault_leaves_nothing() {
    let acquire = |actor| async move { Mutex::new(&actor, LOCK).unwrap().acquire_owned().await };
    dropped_anywhere(&[Op::Create2, Op::GetChildren], 1, acquire).await;
}

#[tokio::test]
async fn a_timed_acquire_dropped_anywhere_under_any_fault_leaves_nothing() {
    let acquire = |actor| async move {
        Mutex::new(&actor, LOCK).unwrap().acquire_owned_timeout(Duration::from_secs(20)).await
    };
    dropped_anywhere(&[Op::Create2, Op::GetChildren], 1, acquire).await;
}

#[tokio::test]
async fn a_try_dropped_anywhere_under_any_fault_leaves_nothing() {
    let attempt = |actor| async move { Mutex::new(&actor, LOCK).unwrap().try_acquire_owned().await };
    dropped_anywhere(&[Op::Create2, Op::GetChildren], 1, attempt).await;
}

#[tokio::test]
async fn a_release_dropped_anywhere_under_any_fault_goes_on() {
    let hold_and_release = |actor| async move {
        let guard = Mutex::new(&actor, LOCK).unwrap().acquire_owned().await;
        guard.unwrap().release().await
    };
    dropped_anywhere(&[Op::Delete], 2, hold_and_release).await;
}

#[tokio::test]
async fn a_reentrant_hold_dropped_anywhere_under_any_fault_leaves_nothing() {
    let reenter = |actor: ConnectionManager| async move {
        let mutex = ReentrantMutex::new(&actor, LOCK).unwrap();
        let owner = Owner::new("one");
        let outer = mutex.acquire_owned(&owner).await.unwrap();
        let nested = mutex.acquire_owned(&owner).await.unwrap();
        let _ = nested.release().await;
        let _ = outer.release().await;
        assert_eq!(mutex.hold_count(&owner), 0);
    };
    dropped_anywhere(&[Op::Create2, Op::GetChildren, Op::Delete], 2, reenter).await;
}

#[tokio::test]
async fn a_commit_dropped_anywhere_under_any_fault_is_done_once_or_not_at_all() {
    let attempts = AtomicUsize::new(0);
    let commit = |actor: ConnectionManager| {
        let node = format!("/written-{}-", attempts.fetch_add(1, Ordering::Relaxed));
        let root: ZnodePath = "/".parse().unwrap();
        async move {
            let guard = Mutex::new(&actor, LOCK).unwrap().acquire_owned().await.unwrap();
            let _ = guard.txn().create_sequential(node.parse().unwrap(), Vec::new()).commit().await;
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
    dropped_anywhere(&[Op::Multi], 2, commit).await;
}

#[tokio::test]
async fn an_acquire_that_makes_its_directory_dropped_anywhere_leaves_nothing() {
    for trap in traps(&[Op::Exists, Op::CreateContainer, Op::Create2]) {
        let (world, actor) = start().await;
        for polls in 0.. {
            let case = format!("{} at {:?}, dropped after {polls} polls", trap.name, trap.op);
            within(&case, actor.connected(lockkeeper::Deadline::never())).await.unwrap().unwrap();
            let set = trap.set(&world);
            let mutex = Mutex::new(&actor, format!("/fresh/{polls}/lock")).unwrap();
            let after = dropped_after(polls, mutex.acquire()).await;
            let is_end = !matches!(after, After::Dropped);
            drop(after);
            drop(set);
            let gone = world.server.wait_until(|machine| machine.tree().ephemeral_count() == 0);
            within(&case, gone).await.unwrap();
            if is_end {
                break;
            }
        }
    }
}

#[tokio::test]
async fn a_wait_dropped_anywhere_under_any_fault_leaves_nothing_and_the_next_is_served() {
    for trap in traps(&[Op::Create2, Op::GetChildren, Op::GetData]) {
        let (world, actor) = start().await;
        let rivals = Mutex::new(&world.rival, LOCK).unwrap();
        for polls in 0.. {
            let case = format!("{} at {:?}, dropped after {polls} polls", trap.name, trap.op);
            within(&case, actor.connected(lockkeeper::Deadline::never())).await.unwrap().unwrap();
            let held = rivals.acquire().await.unwrap();
            let set = trap.set(&world);
            let after = dropped_after(polls, Mutex::new(&actor, LOCK).unwrap().acquire_owned()).await;
            assert!(!matches!(after, After::Done(_)), "{case}: two holders");
            let is_asleep = matches!(after, After::Asleep);
            drop(after);
            drop(set);
            world.line_becomes(1).await.unwrap_or_else(|error| panic!("{case}: {error}"));
            held.release().await.unwrap();
            nothing_is_left(&world, &actor, &case).await;
            if is_asleep {
                break;
            }
        }
    }
}

#[tokio::test]
async fn a_wait_dropped_at_its_grant_under_any_fault_passes_it_on() {
    // The event is on its way, or comes with its connection's end; then what the waiter asks next.
    for trap in traps(&[Op::GetChildren, Op::Exists, Op::Sync, Op::Multi]) {
        let (world, actor) = start().await;
        let rivals = Mutex::new(&world.rival, LOCK).unwrap();
        for polls in 0.. {
            let case = format!("{} at {:?}, dropped {polls} polls after the event", trap.name, trap.op);
            within(&case, actor.connected(lockkeeper::Deadline::never())).await.unwrap().unwrap();
            let held = rivals.acquire_owned().await.unwrap();
            let mutex = Mutex::new(&actor, LOCK).unwrap();
            let mut waiting = Box::pin(mutex.acquire_owned());
            let watches = async {
                tokio::select! {
                    _ = &mut waiting => panic!("{case}: two holders"),
                    () = world.server.wait_until(|machine| machine.watch_count(0) == 2) => {}
                }
            };
            within(&case, watches).await.unwrap();
            let set = trap.set(&world);
            held.release().await.unwrap();
            let after = dropped_after(polls, &mut waiting).await;
            let is_end = !matches!(after, After::Dropped);
            drop(after);
            drop(waiting);
            drop(set);
            nothing_is_left(&world, &actor, &case).await;
            if is_end {
                break;
            }
        }
    }
}

#[tokio::test]
async fn a_connect_dropped_anywhere_leaves_no_session() {
    for fault in [None, Some(Fault::HoldReply), Some(Fault::DropConnectionBefore), Some(Fault::DropReply)] {
        let (world, actor) = start().await;
        for polls in 0.. {
            let case = format!("{fault:?}, dropped after {polls} polls");
            let set = fault.map(|fault| world.server.fault(When::connect(), fault));
            let after = dropped_after(polls, builder(&world.server.connect_string()).connect()).await;
            let is_end = !matches!(after, After::Dropped);
            drop(after);
            drop(set);
            // The rival's and the actor's. What was just being opened ends with its time.
            let gone = world.server.wait_until(|machine| machine.sessions().len() == 2);
            within(&case, gone).await.unwrap();
            if is_end {
                break;
            }
        }
        actor.shutdown().await.unwrap();
    }
}

#[tokio::test]
async fn a_shutdown_dropped_anywhere_goes_on() {
    for fault in
        [None, Some(Fault::HoldReply), Some(Fault::DropConnectionBefore), Some(Fault::DropConnectionAfter)]
    {
        let (world, first) = start().await;
        first.shutdown().await.unwrap();
        for polls in 0.. {
            let case = format!("{fault:?}, dropped after {polls} polls");
            let actor = world.actor().await.unwrap();
            let guard = Mutex::new(&actor, LOCK).unwrap().acquire_owned().await.unwrap();
            let set = fault.map(|fault| world.server.fault(When::op(Op::CloseSession), fault));
            let after = dropped_after(polls, actor.shutdown()).await;
            let is_end = !matches!(after, After::Dropped);
            // Once asked for, a shutdown does not need its asker; nor, unasked, do the last handles.
            drop((after, actor, guard));
            drop(set);
            let gone = world.server.wait_until(|machine| machine.sessions().len() == 1);
            within(&case, gone).await.unwrap();
            assert_eq!(world.server.inspect(in_line), [""; 0], "{case}");
            if is_end {
                break;
            }
        }
    }
}
