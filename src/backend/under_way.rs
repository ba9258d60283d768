use std::future::{Future, ready};
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::Mutex;

/// Polls a future once, so that the request inside it is sent before this returns.
pub(super) fn send_now<T: Send + 'static>(
    future: impl Future<Output = T> + Send + 'static,
) -> BoxFuture<'static, T> {
    let mut future = Box::pin(future);
    match future.as_mut().now_or_never() {
        Some(output) => Box::pin(ready(output)),
        None => future,
    }
}

/// The replies under way that would keep a session alive, to be given up together with it.
///
/// A caller may hold a future without polling it, as `select!` does with the branch that lost: what is inside must
/// not outlive the session.
#[derive(Default)]
pub(super) struct UnderWay {
    registered: Mutex<Vec<Weak<dyn GiveUp>>>,
}

/// How many entries of finished replies are kept before they are swept out.
const ENTRIES_MIN: usize = 64;

impl UnderWay {
    /// Sends the request in `future` now; its reply is `abandoned()` once the session is given up.
    pub(super) fn send<T: Send + 'static>(
        &self,
        future: impl Future<Output = T> + Send + 'static,
        abandoned: fn() -> T,
    ) -> BoxFuture<'static, T> {
        let inner = Arc::new(Mutex::new(Some(send_now(future))));
        let weak: Weak<dyn GiveUp> = Arc::downgrade(&inner) as Weak<dyn GiveUp>;
        let mut registered = self.registered.lock();
        if registered.len() >= ENTRIES_MIN && registered.len() == registered.capacity() {
            registered.retain(|entry| entry.strong_count() > 0);
            let room = registered.len();
            registered.reserve(room.max(ENTRIES_MIN));
        }
        registered.push(weak);
        drop(registered);
        Box::pin(Revocable { inner, abandoned })
    }

    /// Drops what is inside every reply still under way.
    pub(super) fn abandon(&self) {
        let registered = std::mem::take(&mut *self.registered.lock());
        for entry in registered.iter().filter_map(Weak::upgrade) {
            entry.give_up();
        }
    }
}

trait GiveUp: Send + Sync {
    fn give_up(&self);
}

impl<T: Send> GiveUp for Mutex<Option<BoxFuture<'static, T>>> {
    fn give_up(&self) {
        let inner = self.lock().take();
        // Dropped with the lock released: a client's end may run code of its own.
        drop(inner);
    }
}

struct Revocable<T> {
    inner: Arc<Mutex<Option<BoxFuture<'static, T>>>>,
    abandoned: fn() -> T,
}

impl<T> Future for Revocable<T> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let mut inner = self.inner.lock();
        match inner.as_mut() {
            None => Poll::Ready((self.abandoned)()),
            Some(future) => future.as_mut().poll(context),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use super::*;

    #[test]
    fn what_is_abandoned_drops_its_inside_and_answers() {
        let alive = Arc::new(());
        let held = Arc::clone(&alive);
        let under_way = UnderWay::default();
        let reply = under_way.send(
            async move {
                let _held = held;
                pending::<u32>().await
            },
            || 7,
        );
        assert_eq!(Arc::strong_count(&alive), 2);
        under_way.abandon();
        assert_eq!(Arc::strong_count(&alive), 1);
        assert_eq!(reply.now_or_never(), Some(7));
    }

    #[test]
    fn finished_replies_do_not_pile_up() {
        let under_way = UnderWay::default();
        for number in 0..10_000 {
            assert_eq!(under_way.send(ready(number), || 0).now_or_never(), Some(number));
        }
        assert!(under_way.registered.lock().len() < 1_000);
    }
}
