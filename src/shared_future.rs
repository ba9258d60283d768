//! A future that several tasks await, and whose result others read without waiting.

use std::collections::BTreeMap;
use std::fmt::{self, Debug, Formatter};
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Wake, Waker};

use crate::sync::Mutex;

/// A future with one result. Each clone awaits it, and [`now`](Self::now) reads the result at once.
///
/// Every poll of the inner future has the same waker, which wakes all clones that wait. So a poll by a task
/// that does not wait, or that stops waiting, takes no wake-up from the others: each that waits has
/// registered before its poll. The `Shared` of `futures` relies on the task that polled last to poll again.
pub(crate) struct SharedFuture<T> {
    shared: Arc<SharedInner<T>>,
    /// This clone among those that wait; 0 before its first poll.
    key: u64,
}

/// A [`SharedFuture`] that is dropped with its last clone.
pub(crate) struct WeakSharedFuture<T>(Weak<SharedInner<T>>);

struct SharedInner<T> {
    /// Locked during a poll: a question waits for a poll that began before it, and polls again.
    state: Mutex<PolledFuture<T>>,
    waiting: Arc<Waiting>,
    /// Wakes all that wait.
    waker: Waker,
}

enum PolledFuture<T> {
    Pending(Pin<Box<dyn Future<Output = T> + Send>>),
    Ready(T),
}

impl<T: Clone> SharedFuture<T> {
    pub(crate) fn new(future: Pin<Box<dyn Future<Output = T> + Send>>) -> Self {
        let waiting = Arc::new(Waiting(Mutex::new(Wakers { last_key: 0, registered: BTreeMap::new() })));
        let waker = Waker::from(Arc::clone(&waiting));
        Self {
            shared: Arc::new(SharedInner {
                state: Mutex::new(PolledFuture::Pending(future)),
                waiting,
                waker,
            }),
            key: 0,
        }
    }

    /// The result, if there is one by now.
    pub(crate) fn now(&self) -> Option<T> {
        let mut state = self.shared.state.lock();
        let future = match &mut *state {
            PolledFuture::Ready(result) => return Some(result.clone()),
            PolledFuture::Pending(future) => future,
        };
        let Poll::Ready(result) = future.as_mut().poll(&mut Context::from_waker(&self.shared.waker)) else {
            return None;
        };
        let finished = std::mem::replace(&mut *state, PolledFuture::Ready(result.clone()));
        drop(state);
        // Without the lock, as the wake-ups: other code may run.
        drop(finished);
        self.shared.waiting.remove(self.key);
        self.shared.waiting.wake_all();
        Some(result)
    }

    pub(crate) fn downgrade(&self) -> WeakSharedFuture<T> {
        WeakSharedFuture(Arc::downgrade(&self.shared))
    }
}

impl<T> WeakSharedFuture<T> {
    pub(crate) fn upgrade(&self) -> Option<SharedFuture<T>> {
        Some(SharedFuture { shared: self.0.upgrade()?, key: 0 })
    }
}

impl<T: Clone> Future for SharedFuture<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        // Before the poll: a wake-up that comes after it finds this waker.
        let this = &mut *self;
        this.shared.waiting.register(&mut this.key, context.waker());
        this.now().map_or(Poll::Pending, Poll::Ready)
    }
}

impl<T> Clone for SharedFuture<T> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), key: 0 }
    }
}

impl<T> Drop for SharedFuture<T> {
    fn drop(&mut self) {
        self.shared.waiting.remove(self.key);
    }
}

impl<T> Debug for SharedFuture<T> {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("SharedFuture").finish_non_exhaustive()
    }
}

/// The wakers of the clones that wait.
struct Waiting(Mutex<Wakers>);

struct Wakers {
    last_key: u64,
    registered: BTreeMap<u64, Waker>,
}

impl Waiting {
    fn register(&self, key: &mut u64, waker: &Waker) {
        let mut wakers = self.0.lock();
        if *key == 0 {
            wakers.last_key += 1;
            *key = wakers.last_key;
        }
        let replaced = wakers.registered.insert(*key, waker.clone());
        drop(wakers);
        // Without the lock: a waker may be the last that keeps a task.
        drop(replaced);
    }

    fn remove(&self, key: u64) {
        if key != 0 {
            let removed = self.0.lock().registered.remove(&key);
            drop(removed);
        }
    }

    fn wake_all(&self) {
        let woken = std::mem::take(&mut self.0.lock().registered);
        woken.into_values().for_each(Waker::wake);
    }
}

impl Wake for Waiting {
    fn wake(self: Arc<Self>) {
        self.wake_all();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.wake_all();
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures::FutureExt;
    use futures::channel::oneshot;

    use super::*;

    /// Counts its wake-ups.
    #[derive(Default)]
    struct Task(AtomicUsize);

    impl Wake for Task {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::AcqRel);
        }
    }

    impl Task {
        fn poll<T: Clone>(self: &Arc<Self>, future: &mut SharedFuture<T>) -> Poll<T> {
            let waker = Waker::from(Arc::clone(self));
            Pin::new(future).poll(&mut Context::from_waker(&waker))
        }

        fn wake_ups(&self) -> usize {
            self.0.load(Ordering::Acquire)
        }
    }

    fn oneshot() -> (oneshot::Sender<u32>, SharedFuture<u32>) {
        let (sender, receiver) = oneshot::channel();
        (sender, SharedFuture::new(Box::pin(async { receiver.await.unwrap() })))
    }

    #[test]
    fn a_result_is_read_without_a_wait_and_wakes_all_that_wait() {
        let (sender, shared) = oneshot();
        let (mut one, mut other) = (shared.clone(), shared.clone());
        let (first, second) = (Arc::<Task>::default(), Arc::<Task>::default());
        assert!(first.poll(&mut one).is_pending() && second.poll(&mut other).is_pending());
        assert_eq!(shared.now(), None);
        sender.send(7).unwrap();
        assert_eq!((first.wake_ups(), second.wake_ups()), (1, 1), "both tasks are woken");
        assert_eq!(shared.now(), Some(7));
        assert_eq!((first.poll(&mut one), second.poll(&mut other)), (Poll::Ready(7), Poll::Ready(7)));
    }

    #[test]
    fn a_clone_that_is_dropped_after_its_poll_takes_no_wake_up_from_the_others() {
        let (sender, shared) = oneshot();
        let (mut kept, mut dropped) = (shared.clone(), shared);
        let (waiter, gone) = (Arc::<Task>::default(), Arc::<Task>::default());
        assert!(waiter.poll(&mut kept).is_pending() && gone.poll(&mut dropped).is_pending());
        drop(dropped);
        sender.send(7).unwrap();
        assert_eq!((waiter.wake_ups(), gone.wake_ups()), (1, 0));
        assert_eq!(waiter.poll(&mut kept), Poll::Ready(7));
    }

    #[test]
    fn the_future_is_dropped_when_it_is_ready_or_with_its_last_clone() {
        let alive = Arc::new(());
        let held = Arc::clone(&alive);
        let shared = SharedFuture::new(Box::pin(ready(()).inspect(move |()| drop(held))));
        assert_eq!((shared.now(), Arc::strong_count(&alive)), (Some(()), 1));

        let held = Arc::clone(&alive);
        let shared = SharedFuture::new(Box::pin(pending::<()>().inspect(move |()| drop(held))));
        let (weak, clone) = (shared.downgrade(), shared.clone());
        drop(shared);
        assert!(weak.upgrade().is_some());
        drop(clone);
        assert!(weak.upgrade().is_none());
        assert_eq!(Arc::strong_count(&alive), 1);
    }
}
