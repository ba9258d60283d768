use lockkeeper_core::{Error, IntoPath, ZnodePath};

use super::generic::Blocking;
use super::manager::ConnectionManager;
use crate::{CompareAndSet, CounterNumber, RegisterInfo};

/// A number that many processes count, for threads. Everything is as for the async
/// [`Counter`](crate::Counter).
///
/// # Examples
///
/// ```
/// # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
/// # let server = runtime.block_on(lockkeeper_testserver::TestServer::start())?;
/// # let manager = lockkeeper::blocking::ConnectionManager::connect(&server.connect_string())?;
/// use lockkeeper::blocking::Counter;
///
/// let visits = Counter::new(&manager, "/counters/visits")?;
/// assert_eq!(visits.increment()?, 1);
/// assert_eq!(visits.add(41)?, 42);
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
pub type Counter<N = i64> = Blocking<crate::Counter<N>>;

impl Counter {
    /// Makes the counter of an `i64` at `path`, below the manager's chroot. Sends nothing.
    ///
    /// # Errors
    ///
    /// As [`Counter::new`](crate::Counter::new).
    pub fn new(manager: &ConnectionManager, path: impl IntoPath) -> Result<Self, Error> {
        Ok(Self::on(manager, crate::Counter::new(manager.as_async(), path)?))
    }
}

impl Counter<i32> {
    /// Makes the counter of an `i32` at `path`, below the manager's chroot. Sends nothing.
    ///
    /// # Errors
    ///
    /// As [`Counter::new_i32`](crate::Counter::new_i32).
    pub fn new_i32(manager: &ConnectionManager, path: impl IntoPath) -> Result<Self, Error> {
        Ok(Self::on(manager, crate::Counter::new_i32(manager.as_async(), path)?))
    }
}

impl<N: CounterNumber> Counter<N> {
    /// The path of the counter, below the manager's chroot.
    #[must_use]
    pub fn path(&self) -> &ZnodePath {
        self.inner.path()
    }

    /// The number. It has every addition that ended before the call.
    ///
    /// # Errors
    ///
    /// [`CannotBlock`](super::CannotBlock) within an async task. Otherwise as
    /// [`Counter::get`](crate::Counter::get).
    pub fn get(&self) -> Result<N, Error> {
        self.block(self.inner.get())
    }

    /// Adds one. Returns the number after it.
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add).
    pub fn increment(&self) -> Result<N, Error> {
        self.block(self.inner.increment())
    }

    /// Adds a number, which may be negative. Returns the number after it.
    ///
    /// # Errors
    ///
    /// [`CannotBlock`](super::CannotBlock) within an async task. Otherwise as
    /// [`Counter::add`](crate::Counter::add).
    pub fn add(&self, number: N) -> Result<N, Error> {
        self.block(self.inner.add(number))
    }

    /// Sets the number to `new` if it is `expected`.
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add).
    pub fn compare_and_set(&self, expected: N, new: N) -> Result<CompareAndSet<N>, Error> {
        self.block(self.inner.compare_and_set(expected, new))
    }

    /// Sets the number, whatever the node has before.
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add).
    pub fn set(&self, number: N) -> Result<(), Error> {
        self.block(self.inner.set(number))
    }

    /// Reads the node and the sessions that add to it: a snapshot, no older than the call.
    ///
    /// # Errors
    ///
    /// [`CannotBlock`](super::CannotBlock) within an async task. Otherwise as
    /// [`Counter::inspect`](crate::Counter::inspect).
    pub fn inspect(&self) -> Result<RegisterInfo, Error> {
        self.block(self.inner.inspect())
    }
}
