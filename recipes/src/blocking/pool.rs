use std::sync::Arc;
use std::time::Duration;

use lockkeeper_core::{ConnectionManagerBuilder, Error, Health};

use super::error::CannotBlock;
use super::manager::ConnectionManager;
use super::runtime_thread::RuntimeThread;

/// Several connection managers with the same settings, for threads: each path always uses the same one. The
/// cost, the session loss and the rule for paths that are taken together are those of the async
/// [`ConnectionPool`](crate::ConnectionPool).
///
/// A clone is cheap. Clones share the sessions and one background thread.
///
/// # Examples
///
/// ```
/// # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
/// # let server = runtime.block_on(lockkeeper_testserver::TestServer::start())?;
/// # let servers = server.connect_string();
/// use lockkeeper::blocking::{ConnectionManager, ConnectionPool, Mutex};
///
/// let pool = ConnectionPool::connect_with(ConnectionManager::builder(&servers), 4)?;
/// let mutex = Mutex::new(pool.for_path("/trains/7"), "/trains/7")?;
/// mutex.acquire()?.release()?;
/// pool.shutdown()?;
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct ConnectionPool {
    // Dropped in this order.
    inner: lockkeeper_core::ConnectionPool,
    managers: Arc<[ConnectionManager]>,
    /// One of the managers.
    any: ConnectionManager,
}

impl ConnectionPool {
    /// Opens a pool of `sessions` sessions, 1 to 64, each with these settings.
    ///
    /// # Errors
    ///
    /// [`CannotBlock`] within an async task.
    /// [`NoThread`](super::NoThread) if the system refuses a thread. Otherwise as
    /// [`ConnectionManagerBuilder::connect_pool`].
    pub fn connect_with(builder: ConnectionManagerBuilder, sessions: u32) -> Result<Self, Error> {
        let (thread, client) = RuntimeThread::start()?;
        let inner = thread.block_checked(builder.connect_pool(sessions))??;
        // If the thread has ended, the managers' tasks have ended, too.
        let _ = client.send(inner.managers().map(lockkeeper_core::ConnectionManager::transitions).collect());
        let on_thread =
            |manager: &lockkeeper_core::ConnectionManager| ConnectionManager::on(manager.clone(), &thread);
        let managers = inner.managers().map(on_thread).collect();
        let any = on_thread(inner.for_path(""));
        Ok(Self { inner, managers, any })
    }

    /// The manager of all contenders for `path`: see
    /// [`ConnectionPool::for_path`](crate::ConnectionPool::for_path).
    #[must_use]
    pub fn for_path(&self, path: impl AsRef<str>) -> &ConnectionManager {
        let manager = self.inner.for_path(path);
        self.managers.iter().find(|member| member.as_async().is_same_as(manager)).unwrap_or(&self.any)
    }

    /// All managers, in the order of [`health`](Self::health).
    pub fn managers(&self) -> impl Iterator<Item = &ConnectionManager> {
        self.managers.iter()
    }

    /// The health of each manager. Costs no request.
    #[must_use]
    pub fn health(&self) -> Vec<Health> {
        self.inner.health()
    }

    /// The async pool. It keeps the thread running.
    #[must_use]
    pub fn as_async(&self) -> &lockkeeper_core::ConnectionPool {
        &self.inner
    }

    /// Closes all sessions at the same time, and waits until the server has closed them. Waits in other
    /// threads end with [`Error::Closed`].
    ///
    /// It works also within an async task.
    ///
    /// # Errors
    ///
    /// As [`ConnectionPool::shutdown`](crate::ConnectionPool::shutdown), and
    /// [`CannotBlock`] on the pool's own thread.
    pub fn shutdown(&self) -> Result<(), Error> {
        let done = self.any.thread().block_always(self.inner.shutdown());
        done.ok_or(CannotBlock)?
    }

    /// Shuts down within `limit`: no new acquire is admitted, and holders in other threads may finish.
    /// Returns the number of holds that were cut off.
    ///
    /// # Errors
    ///
    /// [`CannotBlock`] within an async task. Otherwise as
    /// [`ConnectionPool::shutdown_within`](crate::ConnectionPool::shutdown_within).
    pub fn shutdown_within(&self, limit: Duration) -> Result<u32, Error> {
        self.any.thread().block_checked(self.inner.shutdown_within(limit))?
    }
}
