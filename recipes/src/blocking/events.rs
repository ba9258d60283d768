use std::time::Duration;

use futures::{Stream, StreamExt};
use lockkeeper_core::{Error, WholePath};

use super::runtime_thread::RuntimeThread;

/// A stream of the async API, for threads. [`HoldEvents`] and [`Transitions`] are streams.
#[derive(Debug)]
pub struct Events<S> {
    // Dropped in this order.
    pub(super) inner: S,
    thread: RuntimeThread,
    /// What a call waits for, for its error.
    waiting: &'static str,
    path: WholePath,
}

/// The events of holds, one by one: see the async [`HoldEvents`](lockkeeper_core::HoldEvents).
///
/// # Methods
///
/// Those of every [`Events`].
pub type HoldEvents = Events<lockkeeper_core::HoldEvents>;

/// Every change of state of a manager: see the async [`Transitions`](lockkeeper_core::Transitions).
///
/// # Methods
///
/// Those of every [`Events`].
pub type Transitions = Events<lockkeeper_core::Transitions>;

impl<S> Events<S> {
    pub(super) fn new(inner: S, thread: &RuntimeThread, waiting: &'static str, path: WholePath) -> Self {
        Self { inner, thread: thread.clone(), waiting, path }
    }
}

impl<S: Stream + Unpin> Events<S> {
    /// Waits for the next element, without a limit of time. `None` after the end of the stream.
    ///
    /// # Errors
    ///
    /// [`CannotBlock`](super::CannotBlock) within an async task.
    #[expect(clippy::should_implement_trait, reason = "an iterator would repeat a refusal without end")]
    pub fn next(&mut self) -> Result<Option<S::Item>, Error> {
        Ok(self.thread.block_checked(self.inner.next())?)
    }

    /// As [`next`](Self::next), for at most `timeout`.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`]: the element is returned next time. Otherwise as [`next`](Self::next).
    pub fn next_timeout(&mut self, timeout: Duration) -> Result<Option<S::Item>, Error> {
        self.thread.block_within(timeout, self.inner.next(), self.waiting, &self.path)
    }
}
