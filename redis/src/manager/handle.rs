use std::any::Any;
use std::fmt::{self, Debug, Formatter};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use lockkeeper_lock::Deadline;

use super::shared::{ManagerPhase, Shared};
use crate::error::{ConnectError, Error, Phase};

/// The state of a manager's connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum State {
    /// There is a connection.
    Connected,
    /// The connection broke, and another one is being made. Holds stay valid until their leases end.
    Suspended,
    /// The manager was shut down.
    Closed,
}

/// A connection to a Redis server, for all locks of the process.
///
/// A clone is cheap, and is the same manager. All requests go over one connection, which is made again
/// whenever it breaks. When the last clone, lock and guard are dropped, the connection is closed.
///
/// # Examples
///
/// ```no_run
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), lockkeeper_redis::Error> {
/// use std::time::Duration;
/// use lockkeeper_redis::{ConnectionManager, Mutex};
///
/// let manager = ConnectionManager::builder("redis://127.0.0.1/")
///     .lease(Duration::from_secs(10))
///     .connect()
///     .await?;
/// let guard = Mutex::new(&manager, "locks:stock")?.acquire().await?;
/// guard.release().await?;
/// manager.shutdown().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct ConnectionManager {
    handle: Arc<Handle>,
    operation_timeout: Duration,
}

/// The end of the last clone ends the tasks.
struct Handle {
    shared: Arc<Shared>,
    /// What the modules above keep for each manager.
    shared_table: OnceLock<Arc<dyn Any + Send + Sync>>,
}

impl ConnectionManager {
    /// Connects to the server at `url`: `redis://[user:password@]host[:port][/database]`, or `rediss://` with
    /// the feature `tls`. Needs Redis 6 or later.
    ///
    /// # Errors
    ///
    /// [`ConnectError::Config`] if the URL is malformed, [`ConnectError::Refused`] if the server does not
    /// accept the credentials, [`ConnectError::Timeout`] if no server answered within 15 s.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the connection is closed.
    pub async fn connect(url: &str) -> Result<Self, ConnectError> {
        Self::builder(url).connect().await
    }

    pub(super) fn new(shared: Arc<Shared>) -> Self {
        let operation_timeout = shared.settings.operation_timeout;
        Self { handle: Arc::new(Handle { shared, shared_table: OnceLock::new() }), operation_timeout }
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.handle.shared
    }

    /// What one module above keeps for each manager: one value, of one type.
    pub(crate) fn shared_table<T: Default + Send + Sync + 'static>(&self) -> Arc<T> {
        let table = self.handle.shared_table.get_or_init(|| Arc::new(T::default()));
        Arc::clone(table).downcast().unwrap_or_default()
    }

    /// The current state of the connection.
    #[must_use]
    pub fn state(&self) -> State {
        if *self.shared().phase.borrow() >= ManagerPhase::Closed {
            State::Closed
        } else if self.shared().link.is_connected() {
            State::Connected
        } else {
            State::Suspended
        }
    }

    /// The time limit of a call that does not wait for other contenders.
    #[must_use]
    pub fn operation_timeout(&self) -> Duration {
        self.operation_timeout
    }

    /// The same manager, with another [operation timeout](Self::operation_timeout) for everything that is
    /// made with this handle: locks, and their guards.
    ///
    /// A release that is not confirmed in time continues in the background.
    #[must_use]
    pub fn with_operation_timeout(&self, limit: Duration) -> Self {
        Self { handle: Arc::clone(&self.handle), operation_timeout: limit }
    }

    /// Resolves as soon as there is a connection.
    ///
    /// # Errors
    ///
    /// [`Error::Closed`] after a shutdown has begun.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: nothing is lost.
    pub async fn connected(&self) -> Result<(), Error> {
        self.connected_by(Deadline::never()).await
    }

    /// As [`connected`](Self::connected), for at most `timeout`.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`]. Otherwise as [`connected`](Self::connected).
    ///
    /// # Cancel safety
    ///
    /// As [`connected`](Self::connected).
    pub async fn connected_timeout(&self, timeout: Duration) -> Result<(), Error> {
        self.connected_by(Deadline::after(timeout)).await
    }

    async fn connected_by(&self, deadline: Deadline) -> Result<(), Error> {
        tokio::select! {
            biased;
            () = self.closing() => Err(Error::Closed),
            _ = self.shared().link.connection() => Ok(()),
            () = deadline.passed() => {
                let (phase, name) = (Phase::Connecting, "the connection".to_owned());
                Err(Error::Timeout { phase, name, waited: deadline.waited() })
            }
        }
    }

    /// The time for which the server keeps a lock without a sign of life.
    #[must_use]
    pub fn lease(&self) -> Duration {
        self.shared().settings.lease
    }

    /// Whether the other handle is of the same manager.
    #[must_use]
    pub fn is_same_as(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.handle, &other.handle)
    }

    /// Resolves when a shutdown begins.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: a later call resolves as well.
    pub async fn closing(&self) {
        self.shared().closing().await;
    }

    /// Ends all waits, loses all guards, and waits until the server has released what was held.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`] if the server has not confirmed all releases within the operation timeout. The
    /// leases end by themselves then.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the shutdown continues.
    pub async fn shutdown(&self) -> Result<(), Error> {
        let shared = self.shared();
        shared.close();
        let mut pending = shared.pending.subscribe();
        let limit = Deadline::after(self.operation_timeout());
        tokio::select! {
            biased;
            _ = pending.wait_for(|pending| *pending == 0) => Ok(()),
            () = limit.passed() => {
                shared.advance(ManagerPhase::Stopped);
                let name = format!("{} releases", *shared.pending.borrow());
                Err(Error::Timeout { phase: Phase::Answer, name, waited: limit.waited() })
            }
        }
    }

    /// Grants nothing from now on, waits for at most `limit` until all guards are gone, and then
    /// [shuts down](Self::shutdown). Returns the number of guards that were lost.
    ///
    /// # Errors
    ///
    /// As [`shutdown`](Self::shutdown).
    ///
    /// # Cancel safety
    ///
    /// Nothing is granted any more. Call it again, or [`shutdown`](Self::shutdown).
    pub async fn shutdown_within(&self, limit: Duration) -> Result<u32, Error> {
        let shared = self.shared();
        shared.advance(ManagerPhase::Draining);
        let mut held = shared.held.subscribe();
        let _ = tokio::time::timeout(limit, held.wait_for(|held| *held == 0)).await;
        let lost = *held.borrow();
        self.shutdown().await.map(|()| lost)
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shared.advance(ManagerPhase::Closed);
    }
}

impl Debug for ConnectionManager {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ConnectionManager")
            .field("state", &self.state())
            .field("lease", &self.lease())
            .finish_non_exhaustive()
    }
}
