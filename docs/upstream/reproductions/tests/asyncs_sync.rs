//! Each test fails with asyncs-sync 0.4.0, on which the client is built, and passes with the patches. They
//! need two processors, and some seconds until they fail.

use std::hint::black_box;
use std::pin::pin;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Waker};
use std::thread;
use std::time::{Duration, Instant};

use asyncs_sync::{Notify, watch};

/// How long the threads run while no fault shows.
const LONG: Duration = Duration::from_secs(60);

/// 1. A reader loads the slot of the latest value, and is interrupted before it retains the slot. Meanwhile
///    two values are published, and the slot is used again: the reader retains it for a value that is not
///    published yet. Its next read panics, because the latest value is older than that.
#[test]
fn a_reader_sees_no_value_before_it_is_published() {
    let (sender, receiver) = watch::channel(0_u64);
    let (begun, has_failed) = (Instant::now(), &AtomicBool::new(false));
    let is_over = || has_failed.load(Ordering::Relaxed) || begun.elapsed() > LONG;
    thread::scope(|scope| {
        for _ in 0..3 {
            let mut receiver = receiver.clone();
            let is_over = &is_over;
            scope.spawn(move || {
                let mut reads = || {
                    while !is_over() {
                        for _ in 0..10_000 {
                            black_box(*receiver.borrow_and_update());
                        }
                    }
                };
                if std::panic::catch_unwind(std::panic::AssertUnwindSafe(&mut reads)).is_err() {
                    has_failed.store(true, Ordering::Relaxed);
                }
            });
        }
        while !is_over() {
            for value in 0..10_000 {
                sender.send(value).unwrap();
            }
        }
    });
    assert!(!has_failed.load(Ordering::Relaxed), "after {:?}", begun.elapsed());
}

/// 2. A waiter that is dropped has not been notified, and waits for the lock of the list. Meanwhile
///    `notify_all` takes it out of a list whose head is on its own stack, and returns. The waiter is
///    unlinked none the less: its neighbours are memory that has been given back, and it writes there.
#[test]
fn a_waiter_that_is_dropped_while_it_is_notified_writes_to_no_other_memory() {
    let (notify, begun, has_failed) = (Notify::new(), Instant::now(), AtomicBool::new(false));
    let is_over = || has_failed.load(Ordering::Relaxed) || begun.elapsed() > LONG;
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !is_over() {
                    for _ in 0..1_000 {
                        let _ = pin!(notify.notified()).poll(&mut Context::from_waker(Waker::noop()));
                    }
                }
            });
        }
        while !is_over() {
            for _ in 0..100 {
                notify.notify_all();
                if is_stack_written() {
                    has_failed.store(true, Ordering::Relaxed);
                }
            }
        }
    });
    assert!(!has_failed.load(Ordering::Relaxed), "after {:?}", begun.elapsed());
}

/// Whether another thread writes to the memory where the frame of `notify_all` was.
#[inline(never)]
fn is_stack_written() -> bool {
    let frame = black_box([0_u64; 1_024]);
    (0..20).any(|_| frame.iter().any(|word| unsafe { ptr::read_volatile(word) } != 0))
}
