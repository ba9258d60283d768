use std::time::Duration;

use lockkeeper_core::{Error, WholePath};

use super::runtime_thread::RuntimeThread;

/// A state of an election that changes, followed by a thread: see the async [`Watch`](crate::Watch).
///
/// A clone follows on its own. A slow reader may miss states in between.
#[derive(Clone, Debug)]
pub struct Watch<T> {
    // Dropped in this order.
    inner: lockkeeper_core::Watch<T>,
    thread: RuntimeThread,
    /// What a call waits for, for its error.
    waiting: &'static str,
    path: WholePath,
}

impl<T> Watch<T> {
    pub(super) fn new(
        inner: lockkeeper_core::Watch<T>,
        thread: &RuntimeThread,
        waiting: &'static str,
        path: WholePath,
    ) -> Self {
        Self { inner, thread: thread.clone(), waiting, path }
    }

    /// The state now, as far as is known. Costs no request.
    #[must_use]
    pub fn state(&self) -> T {
        self.inner.state()
    }

    /// Waits for a state that this watch has not returned yet, without a limit of time, and returns it. The
    /// first call returns the present state.
    ///
    /// # Errors
    ///
    /// [`CannotBlock`](super::CannotBlock) within an async task. Otherwise the cause of the
    /// [`Closed`](crate::error::Closed) of the async watch: no other state follows.
    pub fn changed(&mut self) -> Result<T, Error> {
        Ok(self.thread.block_checked(self.inner.changed())??)
    }

    /// As [`changed`](Self::changed), for at most `timeout`.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`]: the state has not changed, and a change is returned next time. Otherwise as
    /// [`changed`](Self::changed).
    pub fn changed_timeout(&mut self, timeout: Duration) -> Result<T, Error> {
        Ok(self.thread.block_within(timeout, self.inner.changed(), self.waiting, &self.path)??)
    }
}
