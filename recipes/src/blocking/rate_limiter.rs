use std::time::Duration;

use lockkeeper_core::{Error, PathError, ZnodePath};

use super::manager::ConnectionManager;
use super::runtime_thread::RuntimeThread;
use crate::Admission;

/// At most so many starts in any window of time, for threads. Everything is as for the async
/// [`RateLimiter`](crate::RateLimiter).
///
/// # Examples
///
/// ```
/// # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
/// # let server = runtime.block_on(lockkeeper_testserver::TestServer::start())?;
/// # let manager = lockkeeper::blocking::ConnectionManager::connect(&server.connect_string())?;
/// use std::time::Duration;
/// use lockkeeper::blocking::RateLimiter;
///
/// let calls = RateLimiter::new(&manager, "/limits/partner-api", 100, Duration::from_secs(60))?;
/// let admission = calls.admit()?;
/// if admission.is_fresh() {
///     // start now
/// }
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct RateLimiter {
    // Dropped in this order.
    inner: crate::RateLimiter,
    thread: RuntimeThread,
}

impl RateLimiter {
    /// The limiter at `path`, below the manager's chroot: at most `starts` in any `window`. Nothing is sent.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] when the path is not one, or is the root, or for no starts or no window at all.
    pub fn new<P>(
        manager: &ConnectionManager,
        path: P,
        starts: usize,
        window: Duration,
    ) -> Result<Self, Error>
    where
        P: TryInto<ZnodePath>,
        PathError: From<P::Error>,
    {
        let inner = crate::RateLimiter::new(manager.as_async(), path, starts, window)?;
        Ok(Self { inner, thread: manager.thread().clone() })
    }

    /// How long after its request an [`Admission`] is fresh. Default: a tenth of the window, and at least 50 ms. See
    /// [`RateLimiter::grace`](crate::RateLimiter::grace).
    #[must_use]
    pub fn grace(self, grace: Duration) -> Self {
        Self { inner: self.inner.grace(grace), ..self }
    }

    /// What is written into its nodes, for people who look. Default: the manager's node data, which is host and process id.
    #[must_use]
    pub fn node_data(self, data: impl Into<Vec<u8>>) -> Self {
        Self { inner: self.inner.node_data(data), ..self }
    }

    /// The whole path of the limiter, chroot included.
    #[must_use]
    pub fn path(&self) -> &ZnodePath {
        self.inner.path()
    }

    /// Waits until one may start, for as long as it takes.
    ///
    /// # Errors
    ///
    /// [`ConfigError::CannotBlock`](crate::ConfigError::CannotBlock) within an async task; else as
    /// [`RateLimiter::admit`](crate::RateLimiter::admit).
    pub fn admit(&self) -> Result<Admission, Error> {
        self.thread.block_checked(self.inner.admit())?
    }

    /// Waits until `starts` may be made at once.
    ///
    /// # Errors
    ///
    /// [`Error::TooManyPermits`] when no window has room for so many; else as [`admit`](Self::admit).
    pub fn admit_many(&self, starts: usize) -> Result<Admission, Error> {
        self.thread.block_checked(self.inner.admit_many(starts))?
    }

    /// Waits until one may start, for at most `timeout`.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`], which names who was in front, or how many starts were free; else as [`admit`](Self::admit).
    pub fn admit_timeout(&self, timeout: Duration) -> Result<Admission, Error> {
        self.thread.block_checked(self.inner.admit_timeout(timeout))?
    }

    /// Starts one now, if that may be; `None` if it may not.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`] when there was no connection or no answer within the manager's operation timeout; else as
    /// [`admit`](Self::admit).
    pub fn try_admit(&self) -> Result<Option<Admission>, Error> {
        self.thread.block_checked(self.inner.try_admit())?
    }
}
