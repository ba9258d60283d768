use std::future::Future;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use crate::Timing;

/// The result of a future after a limited number of polls.
#[derive(Debug, PartialEq, Eq)]
pub enum After<T> {
    /// It got to its end.
    Done(T),
    /// It was dropped with its polls used up.
    Dropped,
    /// It was dropped while it slept and nothing woke it: further polls would be the same case.
    Asleep,
}

impl<T> After<T> {
    /// Whether more polls make no other case.
    #[must_use]
    pub fn is_end(&self) -> bool {
        !matches!(self, Self::Dropped)
    }
}

/// Polls `future` at most `polls` times, then drops it right where it waits.
///
/// With one poll, two, three …, until [`After::is_end`], every await of it has been dropped once.
///
/// # Examples
///
/// ```
/// # use lockkeeper_tests::{After, dropped_after};
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// let two_polls = async {
///     tokio::task::yield_now().await;
///     7
/// };
/// assert_eq!(dropped_after(1, two_polls).await, After::Dropped);
/// assert_eq!(dropped_after(1, async { 7 }).await, After::Done(7));
/// # });
/// ```
pub async fn dropped_after<F: Future>(polls: usize, future: F) -> After<F::Output> {
    let mut left = polls;
    let mut future = pin!(future);
    let limited = std::future::poll_fn(|context| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        match future.as_mut().poll(context) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending if left == 0 => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    });
    // Not an assertion: only the end of the enumeration, for a future that waits for something that will not
    // come.
    match tokio::time::timeout(Timing::scaled(Duration::from_millis(400)), limited).await {
        Ok(Some(output)) => After::Done(output),
        Ok(None) => After::Dropped,
        Err(_) => After::Asleep,
    }
}
