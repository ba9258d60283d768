use std::panic::Location;
use std::time::Duration;

use lockkeeper_core::{ConnectionManagerBuilder, Error, Health, State};

use super::error::CannotBlock;
use super::events::{Events, Transitions};
use super::generic::Blocking;
use super::runtime_thread::RuntimeThread;

/// The connection to an ensemble, for threads: see the async [`ConnectionManager`](crate::ConnectionManager),
/// and the [module](super) for the threads that may use it.
///
/// A clone is cheap. Clones share one session and one background thread.
///
/// # Examples
///
/// ```
/// # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
/// # let server = runtime.block_on(lockkeeper_testserver::TestServer::start())?;
/// # let servers = server.connect_string();
/// use std::time::Duration;
/// use lockkeeper::blocking::ConnectionManager;
///
/// let builder = ConnectionManager::builder(&servers).session_timeout(Duration::from_secs(20));
/// let manager = ConnectionManager::connect_with(builder)?;
///
/// // What has no method here is a call of the async manager:
/// let nodes = manager.call(async |manager| manager.znodes().children("/").await)?;
/// println!("{nodes:?}");
/// manager.shutdown()?;
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct ConnectionManager {
    // Dropped in this order.
    inner: lockkeeper_core::ConnectionManager,
    thread: RuntimeThread,
}

impl ConnectionManager {
    /// Connects to `servers` with the default settings.
    ///
    /// # Errors
    ///
    /// As [`connect_with`](Self::connect_with).
    pub fn connect(servers: &str) -> Result<Self, Error> {
        Self::connect_with(Self::builder(servers))
    }

    /// The settings of a connection to `servers`, for [`connect_with`](Self::connect_with).
    pub fn builder(servers: &str) -> ConnectionManagerBuilder {
        lockkeeper_core::ConnectionManager::builder(servers)
    }

    /// Connects with these settings.
    ///
    /// # Errors
    ///
    /// [`CannotBlock`] within an async task.
    /// [`NoThread`](super::NoThread) if the system refuses a thread. Otherwise as
    /// [`ConnectionManagerBuilder::connect`].
    pub fn connect_with(builder: ConnectionManagerBuilder) -> Result<Self, Error> {
        let (thread, client) = RuntimeThread::start()?;
        let inner = thread.block_checked(builder.connect())??;
        // If the thread has ended, the manager's task has ended, too.
        let _ = client.send(vec![inner.transitions()]);
        Ok(Self { inner, thread })
    }

    /// The async manager, for what never waits, and for an async part of the program. It keeps the thread
    /// running.
    #[must_use]
    pub fn as_async(&self) -> &lockkeeper_core::ConnectionManager {
        &self.inner
    }

    /// Calls an async closure with the async manager, and waits for it, without a limit of time: see
    /// [`Blocking`]. Tasks that the closure spawns with tokio run on the manager's thread, where they must
    /// not block.
    ///
    /// # Errors
    ///
    /// [`CannotBlock`] within an async task. Otherwise the error of the closure.
    pub fn call<R>(
        &self,
        work: impl AsyncFnOnce(&lockkeeper_core::ConnectionManager) -> Result<R, Error>,
    ) -> Result<R, Error> {
        self.thread.block_checked(async { work(&self.inner).await })?
    }

    /// As [`call`](Self::call), for at most `timeout`: see [`Blocking::call_timeout`].
    ///
    /// # Errors
    ///
    /// As that method.
    #[track_caller]
    pub fn call_timeout<R>(
        &self,
        timeout: Duration,
        work: impl AsyncFnOnce(&lockkeeper_core::ConnectionManager) -> Result<R, Error>,
    ) -> Result<R, Error> {
        self.thread.call_within(timeout, async { work(&self.inner).await }, Location::caller())
    }

    /// As [`call`](Self::call), for a closure that makes a recipe, a view or a member: [`Blocking`] calls its
    /// methods.
    ///
    /// # Errors
    ///
    /// As [`call`](Self::call).
    pub fn wrap<U>(
        &self,
        work: impl AsyncFnOnce(&lockkeeper_core::ConnectionManager) -> Result<U, Error>,
    ) -> Result<Blocking<U>, Error> {
        Ok(self.beside(self.call(work)?))
    }

    /// The same manager, with another operation timeout for everything that is made with this handle: see
    /// [`ConnectionManager::with_operation_timeout`](crate::ConnectionManager::with_operation_timeout).
    ///
    /// # Errors
    ///
    /// As there.
    pub fn with_operation_timeout(&self, limit: Duration) -> Result<Self, Error> {
        Ok(Self { inner: self.inner.with_operation_timeout(limit)?, thread: self.thread.clone() })
    }

    /// The present state of the connection.
    #[must_use]
    pub fn state(&self) -> State {
        self.inner.state()
    }

    /// Every change of state from now on, without a gap.
    #[must_use]
    pub fn transitions(&self) -> Transitions {
        let waiting = "waiting for another state of the connection";
        Events::new(self.inner.transitions(), &self.thread, waiting, "/".into())
    }

    /// Waits until a session is connected, without a limit of time.
    ///
    /// # Errors
    ///
    /// [`CannotBlock`](super::CannotBlock) within an async task. Otherwise as
    /// [`ConnectionManager::connected`](crate::ConnectionManager::connected).
    pub fn connected(&self) -> Result<(), Error> {
        self.thread.block_checked(self.inner.connected())?
    }

    /// As [`connected`](Self::connected), for at most `timeout`.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`]. Otherwise as [`connected`](Self::connected).
    pub fn connected_timeout(&self, timeout: Duration) -> Result<(), Error> {
        self.thread.block_checked(self.inner.connected_timeout(timeout))?
    }

    /// The health of the manager: its state, its session and its holds. Costs no request.
    #[must_use]
    pub fn health(&self) -> Health {
        self.inner.health()
    }

    /// Closes the session, and waits until the server has closed it. Waits in other threads end with
    /// [`Error::Closed`].
    ///
    /// It works also within an async task.
    ///
    /// # Errors
    ///
    /// As [`ConnectionManager::shutdown`](crate::ConnectionManager::shutdown), and
    /// [`CannotBlock`] on the manager's own thread.
    pub fn shutdown(&self) -> Result<(), Error> {
        self.thread.block_always(self.inner.shutdown()).ok_or(CannotBlock)?
    }

    /// Shuts down within `limit`: no new acquire is admitted, and holders in other threads may finish.
    /// Returns the number of holds that were cut off.
    ///
    /// # Errors
    ///
    /// [`CannotBlock`] within an async task. Otherwise as
    /// [`ConnectionManager::shutdown_within`](crate::ConnectionManager::shutdown_within).
    pub fn shutdown_within(&self, limit: Duration) -> Result<u32, Error> {
        self.thread.block_checked(self.inner.shutdown_within(limit))?
    }

    /// A value on the thread of this manager.
    pub(super) fn beside<U>(&self, inner: U) -> Blocking<U> {
        Blocking::of(inner, &self.thread)
    }

    pub(super) fn on(inner: lockkeeper_core::ConnectionManager, thread: &RuntimeThread) -> Self {
        Self { inner, thread: thread.clone() }
    }

    pub(super) fn thread(&self) -> &RuntimeThread {
        &self.thread
    }
}
