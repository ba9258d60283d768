use std::future::Future;

use lockkeeper_core::Error;

use super::guard::Guard;
use super::manager::ConnectionManager;
use super::runtime_thread::RuntimeThread;

/// A recipe of the async API, for threads: [`Mutex`](super::Mutex), [`RwLock`](super::RwLock),
/// [`Counter`](super::Counter) and all others are this type.
///
/// A clone is cheap.
#[derive(Clone, Debug)]
pub struct Blocking<L> {
    // Dropped in this order.
    pub(super) inner: L,
    pub(super) thread: RuntimeThread,
}

impl<L> Blocking<L> {
    /// The async recipe, which shares everything with this one, for calls without a blocking counterpart.
    /// Wait for its futures by [`ConnectionManager::block_on`], or in any runtime.
    ///
    /// # Examples
    ///
    /// ```
    /// # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    /// # let server = runtime.block_on(lockkeeper_testserver::TestServer::start())?;
    /// # let manager = lockkeeper::blocking::ConnectionManager::connect(&server.connect_string())?;
    /// use lockkeeper::blocking::Mutex;
    ///
    /// let mutex = Mutex::new(&manager, "/locks/train-7")?;
    /// let held = mutex.acquire()?;
    /// let waiting = manager.block_on(mutex.as_async().enqueue())??; // a place in the queue
    /// assert_eq!(waiting.position(), Some(1));
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn as_async(&self) -> &L {
        &self.inner
    }

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
