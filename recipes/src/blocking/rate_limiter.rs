use std::time::Duration;

use lockkeeper_core::{Error, IntoPath, ZnodePath};

use super::generic::Blocking;
use super::manager::ConnectionManager;
use crate::{Admission, Inspection, TryAdmit};

/// At most a given number of starts in any window of time, for threads. Everything is as for the async
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
/// let admission = calls.admit_fresh()?; // start now
/// # drop(admission);
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
pub type RateLimiter = Blocking<crate::RateLimiter>;

impl RateLimiter {
    /// Makes the limiter at `path`, below the manager's chroot: at most `starts` in any `window`. Sends
    /// nothing.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] if the path is malformed, or is the root, or if `starts` or `window` is zero.
    pub fn new(
        manager: &ConnectionManager,
        path: impl IntoPath,
        starts: u32,
        window: Duration,
    ) -> Result<Self, Error> {
        let inner = crate::RateLimiter::new(manager.as_async(), path, starts, window)?;
        Ok(Self::on(manager, inner))
    }

    /// Sets the time for which an [`Admission`] is fresh after its request was sent. Default: a tenth of the
    /// window, and at least 50 ms. See [`RateLimiter::grace`](crate::RateLimiter::grace).
    #[must_use]
    pub fn grace(self, grace: Duration) -> Self {
        Self { inner: self.inner.grace(grace), ..self }
    }

    /// Sets the data of the limiter's nodes, for people who inspect it. Default: the manager's node data,
    /// which has the host and the process id.
    #[must_use]
    pub fn node_data(self, data: impl Into<Vec<u8>>) -> Self {
        Self { inner: self.inner.node_data(data), ..self }
    }

    /// The path of the limiter, below the manager's chroot.
    #[must_use]
    pub fn path(&self) -> &ZnodePath {
        self.inner.path()
    }

    /// Waits until one start is admitted, without a limit of time.
    ///
    /// # Errors
    ///
    /// [`CannotBlock`](super::CannotBlock) within an async task. Otherwise as
    /// [`RateLimiter::admit`](crate::RateLimiter::admit).
    pub fn admit(&self) -> Result<Admission, Error> {
        self.block(self.inner.admit())
    }

    /// Waits until `starts` starts are admitted at once, without a limit of time.
    ///
    /// # Errors
    ///
    /// [`RateLimiterError::TooManyStarts`](crate::RateLimiterError::TooManyStarts) if `starts` is above the
    /// limit. Otherwise as [`admit`](Self::admit).
    pub fn admit_many(&self, starts: u32) -> Result<Admission, Error> {
        self.block(self.inner.admit_many(starts))
    }

    /// Waits until one start is admitted, for at most `timeout`.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`], which names the predecessor, or the number of free starts. Otherwise as
    /// [`admit`](Self::admit).
    pub fn admit_timeout(&self, timeout: Duration) -> Result<Admission, Error> {
        self.block(self.inner.admit_timeout(timeout))
    }

    /// Waits for an admission that is [fresh](Admission::is_fresh), without a limit of time. Start directly
    /// after it.
    ///
    /// # Errors
    ///
    /// As [`RateLimiter::admit_fresh`](crate::RateLimiter::admit_fresh), and as [`admit`](Self::admit).
    pub fn admit_fresh(&self) -> Result<Admission, Error> {
        self.block(self.inner.admit_fresh())
    }

    /// As [`admit_fresh`](Self::admit_fresh), for at most `timeout`.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`]. Otherwise as [`admit_fresh`](Self::admit_fresh).
    pub fn admit_fresh_timeout(&self, timeout: Duration) -> Result<Admission, Error> {
        self.block(self.inner.admit_fresh_timeout(timeout))
    }

    /// Admits one start if there is room now, and no contender is ahead. Otherwise says [when to try
    /// again](TryAdmit::retry_after).
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`] if there was no connection or no answer within the manager's operation timeout.
    /// Otherwise as [`admit`](Self::admit).
    pub fn try_admit(&self) -> Result<TryAdmit, Error> {
        self.block(self.inner.try_admit())
    }

    /// Returns the starts that count, and the contenders that wait: a snapshot.
    ///
    /// # Errors
    ///
    /// [`CannotBlock`](super::CannotBlock) within an async task. Otherwise as
    /// [`RateLimiter::inspect`](crate::RateLimiter::inspect).
    pub fn inspect(&self) -> Result<Inspection, Error> {
        self.block(self.inner.inspect())
    }

    /// Deletes the recorded starts that are over, and returns their number.
    ///
    /// # Errors
    ///
    /// As [`RateLimiter::sweep`](crate::RateLimiter::sweep), and as [`admit`](Self::admit).
    pub fn sweep(&self) -> Result<u32, Error> {
        self.block(self.inner.sweep())
    }
}

/// Rate limiters with the same numbers, one for each key, for threads. Everything is as for the async
/// [`KeyedRateLimiter`](crate::KeyedRateLimiter).
pub type KeyedRateLimiter = Blocking<crate::KeyedRateLimiter>;

impl KeyedRateLimiter {
    /// Makes the limiters below `path`, below the manager's chroot: at most `starts` of a key in any
    /// `window`. Sends nothing.
    ///
    /// # Errors
    ///
    /// As [`KeyedRateLimiter::new`](crate::KeyedRateLimiter::new).
    pub fn new(
        manager: &ConnectionManager,
        path: impl IntoPath,
        starts: u32,
        window: Duration,
    ) -> Result<Self, Error> {
        let inner = crate::KeyedRateLimiter::new(manager.as_async(), path, starts, window)?;
        Ok(Self::on(manager, inner))
    }

    /// Sets the time for which an admission is fresh: see
    /// [`KeyedRateLimiter::grace`](crate::KeyedRateLimiter::grace).
    #[must_use]
    pub fn grace(self, grace: Duration) -> Self {
        Self { inner: self.inner.grace(grace), ..self }
    }

    /// The path above the limiters, below the manager's chroot.
    #[must_use]
    pub fn path(&self) -> &ZnodePath {
        self.inner.path()
    }

    /// The limiter of a key. Sends nothing.
    ///
    /// # Errors
    ///
    /// As [`KeyedRateLimiter::of`](crate::KeyedRateLimiter::of).
    pub fn of(&self, key: &str) -> Result<RateLimiter, Error> {
        Ok(self.beside(self.inner.of(key)?))
    }

    /// Deletes the starts of all keys that are over, and returns their number.
    ///
    /// # Errors
    ///
    /// As [`RateLimiter::sweep`].
    pub fn sweep(&self) -> Result<u32, Error> {
        self.block(self.inner.sweep())
    }
}
