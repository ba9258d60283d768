use std::future::{Future, ready};
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::Mutex;

/// Polls a future once, so that it sends its request before this function returns.
pub(super) fn send_now<T: Send + 'static>(
    future: impl Future<Output = T> + Send + 'static,
) -> BoxFuture<'static, T> {
    let mut future = Box::pin(future);
    match future.as_mut().now_or_never() {
        Some(output) => Box::pin(ready(output)),
        None => future,
    }
}

/// The replies in flight that keep a client alive. They are aborted together with the session.
///
/// A caller may hold a future without polling it, as `select!` does with the branch that lost. The client
/// inside must not outlive the session.
#[derive(Default)]
pub(super) struct RepliesInFlight(Mutex<Registered>);

#[derive(Default)]
struct Registered {
    replies: Vec<Weak<dyn Abort>>,
    is_abandoned: bool,
}

/// The number of entries before those of finished replies are removed.
const ENTRIES_MIN: usize = 64;

impl RepliesInFlight {
    /// Sends the request in `future` now. After the session is abandoned, the reply is `abandoned()`.
    pub(super) fn send<T: Send + 'static>(
        &self,
        future: impl Future<Output = T> + Send + 'static,
        abandoned: fn() -> T,
    ) -> BoxFuture<'static, T> {
        let inner = Arc::new(Mutex::new(Some(send_now(future))));
        let weak: Weak<dyn Abort> = Arc::downgrade(&inner) as Weak<dyn Abort>;
        let mut registered = self.0.lock();
        if registered.is_abandoned {
            drop(registered);
            // The caller got the session just before it ended.
            inner.abort();
            return Box::pin(ready(abandoned()));
        }
        let replies = &mut registered.replies;
        if replies.len() >= ENTRIES_MIN && replies.len() == replies.capacity() {
            replies.retain(|entry| entry.strong_count() > 0);
            let room = replies.len();
            replies.reserve(room.max(ENTRIES_MIN));
        }
        replies.push(weak);
        drop(registered);
        Box::pin(Revocable { inner, abandoned })
    }

    /// Aborts every reply in flight, and every later one.
    pub(super) fn abandon(&self) {
        let replies = {
            let mut registered = self.0.lock();
            registered.is_abandoned = true;
            std::mem::take(&mut registered.replies)
        };
        for entry in replies.iter().filter_map(Weak::upgrade) {
            entry.abort();
        }
    }
}

trait Abort: Send + Sync {
    fn abort(&self);
}

impl<T: Send> Abort for Mutex<Option<BoxFuture<'static, T>>> {
    fn abort(&self) {
        let inner = self.lock().take();
        // Dropped after the lock is released, because the drop of a client may run other code.
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
    fn an_abandoned_reply_drops_its_client_and_resolves() {
        let alive = Arc::new(());
        let held = Arc::clone(&alive);
        let in_flight = RepliesInFlight::default();
        let reply = in_flight.send(
            async move {
                let _held = held;
                pending::<u32>().await
            },
            || 7,
        );
        assert_eq!(Arc::strong_count(&alive), 2);
        in_flight.abandon();
        assert_eq!(Arc::strong_count(&alive), 1);
        assert_eq!(reply.now_or_never(), Some(7));
        let held = Arc::clone(&alive);
        let late = in_flight.send(
            async move {
                let _held = held;
                pending::<u32>().await
            },
            || 8,
        );
        assert_eq!((Arc::strong_count(&alive), late.now_or_never()), (1, Some(8)));
    }

    #[test]
    fn finished_replies_do_not_pile_up() {
        let in_flight = RepliesInFlight::default();
        for number in 0..10_000 {
            assert_eq!(in_flight.send(ready(number), || 0).now_or_never(), Some(number));
        }
        assert!(in_flight.0.lock().replies.len() < 1_000);
    }
}
