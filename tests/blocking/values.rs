//! Numbers, values and barriers, for threads.

use std::collections::BTreeSet;
use std::thread;
use std::time::Duration;

use lockkeeper::blocking::{Barrier, ConnectionManager, Counter, DoubleBarrier, IdBlocks, SharedCount};
use lockkeeper::{CompareAndSet, Error};
use lockkeeper_tests::{Timing, eventually};
use lockkeeper_testserver::{Fault, Op, When};

use crate::support::{aside, connect, contenders, is_refused, server, until};

const THREADS: usize = 4;
const ROUNDS: usize = 20;

/// Runs the work in several threads, every second one with the other manager, and returns the results.
fn in_threads<T: Send>(
    managers: &[ConnectionManager; 2],
    work: impl Fn(&ConnectionManager) -> Vec<T> + Sync,
) -> Vec<T> {
    thread::scope(|threads| {
        let work = &work;
        let begin = |number: usize| threads.spawn(move || work(&managers[number % 2]));
        let running: Vec<_> = (0..THREADS).map(begin).collect();
        running.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    })
}

#[test]
fn threads_add_to_a_counter_and_each_addition_counts_once() {
    let server = server();
    let managers = [connect(&server), connect(&server)];
    let sums = in_threads(&managers, |manager| {
        let visits = Counter::new(manager, "/visits").unwrap();
        (0..ROUNDS).map(|_| visits.increment().unwrap()).collect()
    });
    let all = i64::try_from(THREADS * ROUNDS).unwrap();
    assert_eq!(sums.into_iter().collect::<BTreeSet<_>>(), (1..=all).collect());
    let visits = Counter::new(&managers[0], "/visits").unwrap();
    assert_eq!((visits.add(-all).unwrap(), visits.path().as_str()), (0, "/visits"));
    visits.set(7).unwrap();
    assert_eq!(visits.compare_and_set(6, 1).unwrap(), CompareAndSet::Differs(7));
    assert_eq!(visits.compare_and_set(7, 1).unwrap(), CompareAndSet::Set(1));
    assert_eq!(visits.get().unwrap(), 1);
    aside(async { assert!(is_refused(&visits.get()) && is_refused(&visits.increment())) });
    assert_eq!(Counter::new_i32(&managers[1], "/small").unwrap().add(3).unwrap(), 3);
}

#[test]
fn threads_replace_a_value_and_a_view_follows_it() {
    let server = server();
    let managers = [connect(&server), connect(&server)];
    let workers = SharedCount::new(&managers[0], "/workers", 4).unwrap();
    let view = workers.watch().unwrap();
    assert!(view.ready().unwrap().root().is_none());
    in_threads(&managers, |manager| {
        let workers = SharedCount::new(manager, "/workers", 4).unwrap();
        for _ in 0..ROUNDS {
            loop {
                let seen = workers.get().unwrap();
                if workers.compare_and_set(seen.revision, seen.value + 1).unwrap().is_set() {
                    break;
                }
            }
        }
        Vec::<()>::new()
    });
    let sum = i32::try_from(4 + THREADS * ROUNDS).unwrap();
    assert_eq!(workers.get().unwrap().value, sum);
    view.sync().unwrap();
    assert_eq!(view.node().unwrap().value().unwrap(), &sum);
    workers.set(16).unwrap();
    view.sync().unwrap();
    assert_eq!(view.node().unwrap().value().unwrap(), &16);
    assert_eq!(workers.path(), view.path());
    aside(async {
        assert!(is_refused(&workers.get()) && is_refused(&workers.set(1)) && is_refused(&workers.watch()));
    });
}

#[test]
fn threads_take_ids_and_none_is_given_out_twice() {
    let server = server();
    let managers = [connect(&server), connect(&server)];
    let shared = managers.each_ref().map(|manager| IdBlocks::new(manager, "/ids", 7).unwrap());
    let ids = in_threads(&managers, |manager| {
        let is_first = manager.as_async().is_same_as(managers[0].as_async());
        let ids = &shared[usize::from(!is_first)];
        (0..ROUNDS).map(|_| ids.next().unwrap()).collect()
    });
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), THREADS * ROUNDS);
    assert_eq!(shared[0].path().as_str(), "/ids");
}

#[test]
fn a_try_to_take_an_id_waits_for_nothing_and_the_next_block_arrives() {
    let server = server();
    let ids = IdBlocks::new(&connect(&server), "/ids", 4).unwrap();
    assert_eq!(ids.next().unwrap(), 1);
    assert_eq!([(); 3].map(|()| ids.try_next()), [Some(2), Some(3), Some(4)]);
    // This thread has no runtime: the thread of the manager takes the block.
    let is_taken = |last: i64| {
        server.inspect(|machine| {
            let node = machine.tree().node("/ids").unwrap();
            node.data.as_deref() == Some(&last.to_be_bytes()[..])
        })
    };
    until("the next block", || is_taken(8));
    aside(async {
        assert!(is_refused(&ids.next()));
        let id = eventually("an id", Timing::event(), || std::future::ready(ids.try_next()));
        assert_eq!(id.await.unwrap(), 5);
    });
}

#[test]
fn a_thread_waits_until_another_one_removes_the_barrier() {
    let server = server();
    let (here, there) = (connect(&server), connect(&server));
    let (waiting, setting) = [&here, &there].map(|manager| Barrier::new(manager, "/barrier").unwrap()).into();
    waiting.wait().unwrap();
    assert!(setting.set().unwrap() && !setting.set().unwrap() && waiting.is_set().unwrap());
    assert!(waiting.inspect().unwrap().is_set());
    assert!(waiting.wait_timeout(Duration::from_millis(1)).unwrap_err().is_timeout());
    aside(async { assert!(is_refused(&waiting.wait()) && is_refused(&setting.remove())) });
    for is_removed in [true, false] {
        let watch = server.fault(When::op(Op::GetData).path("/barrier"), Fault::DelayReply(Duration::ZERO));
        thread::scope(|threads| {
            let waiter = threads.spawn(|| waiting.wait());
            aside(async { tokio::time::timeout(Timing::event(), watch.hit()).await }).unwrap();
            assert!(!waiter.is_finished());
            if is_removed {
                assert!(setting.remove().unwrap() && !setting.remove().unwrap());
                waiter.join().unwrap().unwrap();
                assert!(setting.set().unwrap());
            } else {
                here.shutdown().unwrap();
                assert!(waiter.join().unwrap().unwrap_err().is_closed());
            }
        });
    }
}

#[test]
fn threads_enter_a_double_barrier_together_and_leave_it_together() {
    let server = server();
    let managers = [connect(&server), connect(&server)];
    let two = |manager, id| DoubleBarrier::new(manager, "/step", 2).unwrap().with_id(id).unwrap();
    let (left, right) = (two(&managers[0], "left"), two(&managers[1], "right"));
    assert_eq!((left.count(), left.path().as_str()), (2, "/step"));
    let alone = left.enter_timeout(Duration::from_millis(1)).unwrap_err();
    assert!(alone.is_timeout(), "{alone}");
    until("no member", || contenders(&server, "/step") == 0);
    thread::scope(|threads| {
        let first = threads.spawn(|| left.enter());
        until("the first member", || contenders(&server, "/step") == 1);
        assert!(!first.is_finished());
        let waiting = left.inspect().unwrap();
        assert_eq!(waiting.waiting().collect::<Vec<_>>(), ["left"]);
        let second = right.enter_timeout(Timing::event()).unwrap();
        let first = first.join().unwrap().unwrap();
        assert!(first.is_valid() && second.is_valid());
        let leaving = threads.spawn(|| first.leave());
        second.leave_timeout(Timing::event()).unwrap();
        leaving.join().unwrap().unwrap();
    });
}

#[test]
fn a_shutdown_ends_the_wait_at_a_double_barrier_and_a_task_does_not_wait_there() {
    let server = server();
    let manager = connect(&server);
    let barrier = DoubleBarrier::new(&manager, "/step", 2).unwrap();
    aside(async { assert!(is_refused(&barrier.enter()) && is_refused(&barrier.inspect())) });
    thread::scope(|threads| {
        let waiter = threads.spawn(|| barrier.enter());
        until("the member", || contenders(&server, "/step") == 1);
        manager.shutdown().unwrap();
        assert!(matches!(waiter.join().unwrap().unwrap_err(), Error::Closed));
    });
    assert_eq!(contenders(&server, "/step"), 0);
}
