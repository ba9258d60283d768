use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

/// A future that is dropped after some polls; `None` then.
pub(super) struct Cancelled<F> {
    future: Pin<Box<F>>,
    polls: u64,
}

impl<F> Cancelled<F> {
    pub(super) fn after(polls: u64, future: F) -> Self {
        Self { future: Box::pin(future), polls }
    }
}

impl<F: Future> Future for Cancelled<F> {
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if self.polls == 0 {
            return Poll::Ready(None);
        }
        self.polls -= 1;
        let polled = self.future.as_mut().poll(context);
        if self.polls == 0 && polled.is_pending() {
            return Poll::Ready(None);
        }
        polled.map(Some)
    }
}
