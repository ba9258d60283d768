use std::future::Future;

use lockkeeper_core::Error;

use super::guard::Guard;
use super::manager::ConnectionManager;
use super::runtime_thread::RuntimeThread;

/// A recipe of the async API, for threads. [`Mutex`](super::Mutex),
/// [`ReentrantMutex`](super::ReentrantMutex), [`RwLock`](super::RwLock), [`Semaphore`](super::Semaphore),
/// [`MultiLock`](super::MultiLock), [`Election`](super::Election), [`Schedule`](super::Schedule),
/// [`OnceCell`](super::OnceCell) and [`RateLimiter`](super::RateLimiter) are recipes.
///
/// A clone is cheap.
#[derive(Clone, Debug)]
pub struct Blocking<L> {
    // Dropped in this order.
    pub(super) inner: L,
    pub(super) thread: RuntimeThread,
}

impl<L> Blocking<L> {
    pub(super) fn on(manager: &ConnectionManager, inner: L) -> Self {
        Self { inner, thread: manager.thread().clone() }
    }

    /// Another recipe on the same thread.
    pub(super) fn beside<M>(&self, inner: M) -> Blocking<M> {
        Blocking { inner, thread: self.thread.clone() }
    }

    /// Waits for a call that may take long.
    pub(super) fn block<T>(&self, call: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        self.thread.block_checked(call)?
    }

    /// As [`block`](Self::block), for an acquire.
    pub(super) fn guard<H, B>(
        &self,
        acquire: impl Future<Output = Result<crate::Guard<H>, Error>>,
    ) -> Result<Guard<H, B>, Error> {
        Ok(Guard::new(self.block(acquire)?, &self.thread))
    }

    /// As [`block`](Self::block), for a try.
    pub(super) fn try_guard<H, B>(
        &self,
        acquire: impl Future<Output = Result<Option<crate::Guard<H>>, Error>>,
    ) -> Result<Option<Guard<H, B>>, Error> {
        Ok(self.block(acquire)?.map(|guard| Guard::new(guard, &self.thread)))
    }
}
