//! The models. Each panics if a promise can be broken.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use loom::future::{AtomicWaker, block_on};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use loom::thread;

use crate::loss_notice::LossNotice;
use crate::node_flags::NodeFlags;
use crate::node_register::NodeRegister;
use crate::parker::Parker;
use crate::shared_future::SharedFuture;
use crate::sync::Mutex;
use crate::watch_budget::WatchBudget;

/// In one run a thread that could continue is interrupted at most three times: without this bound some models
/// take minutes.
fn every_interleaving(model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

/// A task parks before it looks for work, and a task that has work is not woken for more. Another thread
/// makes work twice, and notifies each time.
pub fn work_that_is_notified_of_is_found() {
    every_interleaving(|| {
        let shared = Arc::new((Parker::default(), AtomicUsize::new(0)));
        let maker = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                for _ in 0..2 {
                    // The parker alone orders this before the look.
                    shared.1.fetch_add(1, Ordering::Relaxed);
                    shared.0.notify();
                }
            })
        };
        let (parker, made) = (&shared.0, &shared.1);
        let mut found = 0;
        while found < 2 {
            parker.park();
            let seen = made.load(Ordering::Relaxed);
            if seen > found {
                parker.unpark();
                found = seen;
            } else {
                // Loom reports a wait that nothing ends.
                block_on(parker.woken());
            }
        }
        maker.join().unwrap_or_default();
    });
}

/// The same with a task that looks before it parks.
pub fn work_that_is_looked_for_before_parking_is_missed() {
    every_interleaving(|| {
        let shared = Arc::new((Parker::default(), AtomicBool::new(false)));
        let maker = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                shared.1.store(true, Ordering::Relaxed);
                shared.0.notify();
            })
        };
        let seen = shared.1.load(Ordering::Relaxed);
        if !seen {
            shared.0.park();
        }
        maker.join().unwrap_or_default();
        let mut context = Context::from_waker(Waker::noop());
        let is_woken = pin!(shared.0.woken()).poll(&mut context).is_ready();
        assert!(seen || is_woken, "asleep although there is work");
    });
}

/// Two threads reserve room of which there is enough for one, and give it back.
pub fn watches_stay_within_their_budget() {
    const MORE_THAN_HALF: usize = 60 * 1024;
    every_interleaving(|| {
        let (budget, inside) = (WatchBudget::default(), Arc::new(AtomicUsize::new(0)));
        let path: &'static str = Box::leak("x".repeat(MORE_THAN_HALF).into_boxed_str());
        let reserve = move |budget: &WatchBudget, inside: &AtomicUsize| {
            if let Some(room) = budget.reserve(path) {
                assert_eq!(inside.fetch_add(1, Ordering::AcqRel), 0, "there is room for one");
                inside.fetch_sub(1, Ordering::AcqRel);
                drop(room);
            }
        };
        let other = {
            let (budget, inside) = (budget.clone(), Arc::clone(&inside));
            thread::spawn(move || reserve(&budget, &inside))
        };
        reserve(&budget, &inside);
        other.join().unwrap_or_default();
        assert!(budget.reserve(path).is_some(), "all room was given back");
    });
}

/// Two threads see two reasons of a loss, while a third one registers the listener.
pub fn a_loss_is_reported_once() {
    every_interleaving(|| {
        let (notice, reported) = (Arc::new(LossNotice::<u8, u8>::new()), Arc::new(AtomicUsize::new(0)));
        let losing: Vec<_> = [1, 2]
            .into_iter()
            .map(|reason| {
                let notice = Arc::clone(&notice);
                thread::spawn(move || {
                    if notice.record(reason) {
                        notice.tell_holder(|| reason);
                    }
                })
            })
            .collect();
        let heard = Arc::clone(&reported);
        notice.listen(
            Box::new(move |reason| assert_eq!(heard.swap(usize::from(reason), Ordering::AcqRel), 0, "twice")),
            |reason| *reason,
        );
        for thread in losing {
            thread.join().unwrap_or_default();
        }
        let first = notice.get().copied().map_or(0, usize::from);
        assert_eq!(reported.load(Ordering::Acquire), first, "the first reason is reported");
    });
}

/// A holder gives its node up, and learns that it was deleted before, while another thread sees a loss.
pub fn a_holder_that_gives_up_hears_of_a_loss_at_most_once() {
    every_interleaving(|| {
        let (notice, reported) = (Arc::new(LossNotice::<u8, u8>::new()), Arc::new(AtomicUsize::new(0)));
        let heard = Arc::clone(&reported);
        let count = move |_| {
            heard.fetch_add(1, Ordering::AcqRel);
        };
        notice.listen(Box::new(count), |reason| *reason);
        let losing = {
            let notice = Arc::clone(&notice);
            thread::spawn(move || {
                if notice.record(1) {
                    notice.tell_holder(|| 1);
                }
            })
        };
        notice.set_given_up();
        // The answer of the delete: no such node.
        notice.record(2);
        let is_first = notice.tell(2);
        losing.join().unwrap_or_default();
        assert_eq!(reported.load(Ordering::Acquire), 1, "one of both reports the loss to the holder");
        assert!(is_first || notice.get() == Some(&1), "a loss that was reported before was recorded before");
    });
}

/// A holder is granted anew, while another thread reads whether the node is held.
pub fn a_held_node_has_the_expirations_and_the_instant_of_a_grant() {
    every_interleaving(|| {
        let flags = Arc::new(NodeFlags::<u8>::new());
        let granting = {
            let flags = Arc::clone(&flags);
            thread::spawn(move || {
                flags.mark_held(7, 1);
                flags.mark_held(8, 2);
            })
        };
        if flags.is_held() {
            assert!(!flags.has_lapsed(|| 7) || !flags.has_lapsed(|| 8), "held by neither grant");
            assert!(flags.is_held_since(&1), "held, and never granted");
        }
        granting.join().unwrap_or_default();
        assert!(flags.has_lapsed(|| 9) && !flags.has_lapsed(|| 8));
    });
}

/// Two transactions rest on a node, and other threads read their answers, while the holder releases the node.
pub fn a_node_is_handed_off_only_behind_the_answers_to_its_transactions() {
    every_interleaving(|| {
        let shared = Arc::new((NodeFlags::<u8>::new(), AtomicUsize::new(0)));
        shared.0.begin_txn();
        shared.0.begin_txn();
        let answered: Vec<_> = (0..2)
            .map(|_| {
                let shared = Arc::clone(&shared);
                thread::spawn(move || {
                    // The flags alone order the answers before the hand-off.
                    shared.1.fetch_add(1, Ordering::Relaxed);
                    shared.0.settle_txn();
                })
            })
            .collect();
        if shared.0.is_settled() {
            assert_eq!(shared.1.load(Ordering::Relaxed), 2, "handed off under an open transaction");
        }
        for thread in answered {
            thread.join().unwrap_or_default();
        }
        assert!(shared.0.is_settled());
    });
}

/// A transaction that replaces a node ends in doubt, while another thread finds that the node does not exist.
pub fn a_node_that_a_transaction_may_have_replaced_never_reads_as_deleted_by_another_client() {
    every_interleaving(|| {
        let flags = Arc::new(NodeFlags::<u8>::new());
        flags.set_replacing(true);
        let replacing = {
            let flags = Arc::clone(&flags);
            thread::spawn(move || {
                flags.set_replaced_in_doubt();
                flags.set_replacing(false);
            })
        };
        assert!(flags.is_replacing() || flags.is_replaced_in_doubt());
        replacing.join().unwrap_or_default();
        assert!(!flags.is_replacing() && flags.is_replaced_in_doubt());
    });
}

/// One thread registers a node, while two others end the session.
pub fn a_node_that_is_registered_while_the_session_ends_hears_of_it_once() {
    every_interleaving(|| {
        let register = Arc::new(NodeRegister::<LossNotice<u8, u8>, u8>::new());
        let reported = Arc::new(AtomicUsize::new(0));
        let lose = |node: &LossNotice<u8, u8>, reason: u8| {
            if node.record(reason) {
                node.tell_holder(|| reason);
            }
        };
        let ending: Vec<_> = [1, 2]
            .into_iter()
            .map(|reason| {
                let register = Arc::clone(&register);
                thread::spawn(move || {
                    for node in register.end(reason).into_iter().flatten() {
                        lose(&node, reason);
                    }
                })
            })
            .collect();
        let (node, heard) = (Arc::new(LossNotice::new()), Arc::clone(&reported));
        let count = move |_| {
            heard.fetch_add(1, Ordering::AcqRel);
        };
        node.listen(Box::new(count), |reason| *reason);
        if let Err(reason) = register.insert(1, Arc::clone(&node)) {
            lose(&node, *reason);
            assert!(node.get().is_some(), "registered in a session that is over");
        }
        for thread in ending {
            thread.join().unwrap_or_default();
        }
        assert_eq!(reported.load(Ordering::Acquire), 1, "the holder hears of it once");
        assert_eq!(node.get(), register.loss(), "the reason of the session");
        assert!(register.read(BTreeMap::is_empty), "nothing is registered in a session that is over");
    });
}

/// An event that one waker is told of: that of the last poll.
struct Event {
    has_fired: AtomicBool,
    waker: AtomicWaker,
}

impl Event {
    fn new() -> Arc<Self> {
        Arc::new(Self { has_fired: AtomicBool::new(false), waker: AtomicWaker::new() })
    }

    fn fire(&self) {
        self.has_fired.store(true, Ordering::Release);
        self.waker.wake();
    }

    fn poll(&self, context: &Context<'_>) -> Poll<()> {
        self.waker.register_by_ref(context.waker());
        if self.has_fired.load(Ordering::Acquire) { Poll::Ready(()) } else { Poll::Pending }
    }
}

/// An event fires, while one task waits for it and another one reads the watch.
pub fn a_watch_that_others_read_wakes_its_waiter() {
    every_interleaving(|| {
        let event = Event::new();
        let watched = Arc::clone(&event);
        let waiter = SharedFuture::new(Box::pin(poll_fn(move |context| watched.poll(context))));
        let (read, before) = (waiter.clone(), Arc::clone(&event));
        let reader = thread::spawn(move || {
            let has_fired = before.has_fired.load(Ordering::Acquire);
            let seen = read.now();
            assert!(seen.is_some() || !has_fired, "the event was before the question");
        });
        let firing = thread::spawn(move || event.fire());
        // Loom reports a wait that nothing ends.
        block_on(waiter);
        for thread in [reader, firing] {
            thread.join().unwrap_or_default();
        }
    });
}

/// An event fires, while two tasks wait for it, and one of them stops after its first poll.
pub fn a_watch_of_which_a_clone_is_dropped_wakes_its_waiter() {
    every_interleaving(|| {
        let event = Event::new();
        let watched = Arc::clone(&event);
        let waiter = SharedFuture::new(Box::pin(poll_fn(move |context| watched.poll(context))));
        let mut dropped = waiter.clone();
        let stopping = thread::spawn(move || {
            let _ = pin!(&mut dropped).poll(&mut Context::from_waker(Waker::noop()));
            drop(dropped);
        });
        let firing = thread::spawn(move || event.fire());
        block_on(waiter);
        for thread in [stopping, firing] {
            thread.join().unwrap_or_default();
        }
    });
}

/// The same with a reader that polls with a waker of its own.
pub fn a_watch_that_is_read_with_another_waker_is_missed() {
    every_interleaving(|| {
        let event = Event::new();
        let watch = Arc::new(Mutex::new(Arc::clone(&event)));
        let read = Arc::clone(&watch);
        let reader = thread::spawn(move || {
            let _ = read.lock().poll(&Context::from_waker(Waker::noop()));
        });
        let firing = thread::spawn(move || event.fire());
        block_on(poll_fn(|context| watch.lock().poll(context)));
        for thread in [reader, firing] {
            thread.join().unwrap_or_default();
        }
    });
}
