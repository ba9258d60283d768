//! A thread that waits for a future.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use parking_lot::{Condvar, Mutex};
use tokio::task::coop;

/// Polls `work` on this thread until it is done, and sleeps in between.
///
/// Not tokio's own `block_on`, which panics within a runtime.
pub(super) fn wait_for<F: Future>(work: F) -> F::Output {
    let parker = Arc::new(ThreadParker::default());
    let waker = Waker::from(Arc::clone(&parker));
    // An async task around this call may have used up its budget. Then no future would be ready any more:
    // only a return to the runtime renews the budget.
    let mut work = pin!(coop::unconstrained(work));
    loop {
        if let Poll::Ready(output) = work.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        parker.park();
    }
}

/// Whether this thread is polling a task of tokio.
///
/// Tokio polls tasks with a budget, and removes it in `spawn_blocking` and `block_in_place`, where blocking
/// is right. A current runtime does not show the difference: there is one in those, too.
pub(super) fn is_in_task() -> bool {
    let mut context = Context::from_waker(Waker::noop());
    // Dropped without progress, it restores the budget.
    let Poll::Ready(_restore) = coop::poll_proceed(&mut context) else {
        return true;
    };
    // The budget is counted in a byte.
    for _ in 0..u8::MAX {
        if !coop::has_budget_remaining() {
            return true;
        }
        if let Poll::Ready(step) = coop::poll_proceed(&mut context) {
            step.made_progress();
        }
    }
    !coop::has_budget_remaining()
}

/// Not the thread's own park token: code around this call may wait for that one.
#[derive(Debug, Default)]
struct ThreadParker {
    is_notified: Mutex<bool>,
    notified: Condvar,
}

impl ThreadParker {
    fn park(&self) {
        let mut is_notified = self.is_notified.lock();
        while !*is_notified {
            self.notified.wait(&mut is_notified);
        }
        *is_notified = false;
    }
}

impl Wake for ThreadParker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        *self.is_notified.lock() = true;
        self.notified.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use tokio::task::{consume_budget, spawn_blocking, yield_now};

    use super::*;

    #[test]
    fn a_plain_thread_is_in_no_task_and_neither_is_one_that_may_block() {
        assert!(!is_in_task());
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let _entered = runtime.enter();
        assert!(!is_in_task());
        assert!(!runtime.block_on(async { spawn_blocking(is_in_task).await.unwrap() }));
    }

    #[tokio::test]
    async fn a_task_is_seen_and_keeps_its_budget() {
        assert!(is_in_task());
        assert!(tokio::spawn(async { is_in_task() }).await.unwrap());
        yield_now().await;
        // More checks than a budget has units, and the budget is still there.
        for _ in 0..1_000 {
            assert!(is_in_task());
        }
        assert!(coop::has_budget_remaining());
        while coop::has_budget_remaining() {
            consume_budget().await;
        }
        assert!(is_in_task());
    }

    #[tokio::test]
    async fn a_task_without_budget_waits_to_the_end() {
        let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
        while coop::has_budget_remaining() {
            consume_budget().await;
        }
        let sending = std::thread::spawn(move || sender.send(1));
        assert_eq!(wait_for(receiver.recv()), Some(1));
        sending.join().unwrap().unwrap();
    }
}
