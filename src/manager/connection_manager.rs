use std::any::{Any, TypeId};
use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;
use std::time::Duration;

use super::holds::HoldRegistry;
use super::shared::{Handle, ManagerInner};
use super::state::{State, StateSnapshot, Transitions};
use super::time_limits::check_operation_timeout;
use crate::environment::{Environment, ensure_runtime};
use crate::error::{Error, Phase};
use crate::session::{ServersReset, Session};
use crate::time::boot::BootInstant;
use crate::time::deadline::Deadline;
use crate::znode::path::{PathError, ZnodePath};
use crate::znode::whole_path::WholePath;

/// The connection to an ensemble. It opens sessions, follows their state, replaces them when they expire, and
/// deletes abandoned nodes.
///
/// Cheap to clone; clones share one session. Each recipe and guard has a clone. When the last clone is
/// dropped, the session is closed in the background, and the server deletes its nodes.
/// [`shutdown`](Self::shutdown) closes the session and waits for the server's confirmation.
///
/// Its clones can be used from several runtimes. What it does in the background for all of them, such as
/// views, registrations and the queue of a shared lock, runs on the runtime on which it was connected.
///
/// **Await [`shutdown`](Self::shutdown) before `main` returns or the process exits.** What happens in the
/// background, as the delete of a dropped guard, needs the runtime on which the manager was connected. If
/// that runtime ends, or the process, requests that it has not sent are lost: then a lock whose guard was
/// dropped may be held until the servers expire the session. Calls and guards report
/// [`Error::RuntimeEnded`](crate::Error::RuntimeEnded) and
/// [`LossReason::RuntimeEnded`](crate::LossReason::RuntimeEnded) if the runtime ends and the manager is used
/// on another one.
///
/// An ensemble may restart at any time. The manager reconnects until it is shut down: within the session if
/// the session still exists, otherwise with a new one. Each guard reports its loss. A wait for a lock
/// continues in the new session, at the end of the queue.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = lockkeeper_testserver::TestServer::start().await?;
/// # let servers = format!("{}/shop", server.connect_string());
/// use std::time::Duration;
/// use lockkeeper_core::ConnectionManager;
///
/// let manager = ConnectionManager::builder(&servers) // zk1:2181,zk2:2181,zk3:2181/shop
///     .session_timeout(Duration::from_secs(20))
///     .connect()
///     .await?;
/// println!("{}", manager.state());
/// manager.shutdown().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct ConnectionManager(pub(super) Arc<Handle>);

impl ConnectionManager {
    /// The present state of the connection.
    #[must_use]
    pub fn state(&self) -> State {
        self.0.shared.publisher.state()
    }

    /// Every change of state from now on, without a gap.
    #[must_use]
    pub fn transitions(&self) -> Transitions {
        self.0.shared.publisher.subscribe()
    }

    /// Resolves as soon as a session is connected.
    ///
    /// # Errors
    ///
    /// [`Error::Closed`] after a shutdown.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: nothing is lost.
    pub async fn connected(&self) -> Result<(), Error> {
        self.session(Deadline::never(), "/").await.map(|_| ())
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
        self.session(Deadline::after(timeout), "/").await.map(|_| ())
    }

    /// The proof that the servers went back behind what this manager has seen, if there is one.
    pub(crate) fn servers_reset(&self) -> Option<ServersReset> {
        self.0.shared.settings.session.zxids.reset()
    }

    pub(crate) fn environment(&self) -> &Arc<dyn Environment> {
        &self.0.shared.settings.session.environment
    }

    pub(crate) fn hold_registry(&self) -> &Arc<HoldRegistry> {
        &self.0.shared.holds
    }

    /// Whether both are handles to one manager.
    #[must_use]
    pub fn is_same_as(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0.shared, &other.0.shared)
    }

    pub(crate) fn shared_table<T: Default + Send + Sync + 'static>(&self) -> Arc<T> {
        let fresh = || Arc::new(T::default()) as Arc<dyn Any + Send + Sync>;
        let any = Arc::clone(&*self.0.shared.shared_tables.entry(TypeId::of::<T>()).or_insert_with(fresh));
        // The key is the type, so this is the type.
        any.downcast().unwrap_or_default()
    }

    /// The path of `path` on the server, with the chroot prepended, for errors and logs.
    #[must_use]
    pub fn whole_path(&self, path: &ZnodePath) -> WholePath {
        match self.full_path(path) {
            Ok(whole) => whole.as_str().into(),
            // No server has a node of this name.
            Err(_) => format!("{}{path}", self.chroot()).into(),
        }
    }

    /// The path on the server.
    pub(crate) fn full_path(&self, path: &ZnodePath) -> Result<ZnodePath, PathError> {
        self.chroot().join(path)
    }

    /// The path below the chroot, of a path on the server.
    pub(crate) fn below_chroot<'a>(&self, whole: &'a str) -> &'a str {
        self.chroot().strip(whole)
    }

    pub(crate) fn chroot(&self) -> &ZnodePath {
        &self.0.shared.settings.chroot
    }

    /// The present instant, by the clock of [`Hold::valid_until`](crate::Hold::valid_until).
    #[must_use]
    pub fn now(&self) -> BootInstant {
        self.0.shared.settings.session.environment.now()
    }

    /// The default data of a contender's node.
    #[must_use]
    pub fn node_data(&self) -> &[u8] {
        &self.0.shared.settings.node_data
    }

    pub(crate) fn shared_node_data(&self) -> Arc<[u8]> {
        Arc::clone(&self.0.shared.settings.node_data)
    }

    /// The time limit of a call that does not wait for other contenders, such as `try_acquire`: for its
    /// connection and its answers together. A single request of a call that waits, such as `acquire`, gets at
    /// least the session timeout.
    #[must_use]
    pub fn operation_timeout(&self) -> Duration {
        self.0.operation_timeout
    }

    /// The same manager, with another [operation timeout](Self::operation_timeout) for everything that is
    /// made with this handle: locks, their guards, and [`Znodes`](crate::Znodes).
    ///
    /// The timeout bounds each call that does not wait for other contenders, from its beginning to its
    /// answer: `try_acquire`, `commit`, `release`, `inspect`, a revocation, and reads and writes of nodes.
    /// The exception is the downgrade of a write guard: it ends when its outcome is known, or when the hold
    /// is lost, because a bound would end a hold that is still valid. Waits for a lock have
    /// deadlines of their own. Default: that of
    /// [the builder](crate::ConnectionManagerBuilder::operation_timeout).
    ///
    /// A release that is not confirmed in time continues in the background. A commit without an answer in
    /// time may be applied: see [`Txn::once`](crate::Txn::once).
    ///
    /// # Errors
    ///
    /// [`Error::Config`] if `limit` is shorter than a millisecond: no call could succeed.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = lockkeeper_testserver::TestServer::start().await?;
    /// # use std::time::Duration;
    /// # let manager = lockkeeper_core::ConnectionManager::connect(&server.connect_string()).await?;
    /// let quick = manager.with_operation_timeout(Duration::from_secs(2))?;
    /// quick.znodes().read("/stock").await?; // an answer, or an error, within two seconds
    /// assert!(quick.is_same_as(&manager));
    /// # Ok(())
    /// # }
    /// ```
    pub fn with_operation_timeout(&self, limit: Duration) -> Result<Self, Error> {
        check_operation_timeout(limit)?;
        let (shared, last_clone) = (Arc::clone(&self.0.shared), Arc::clone(&self.0.last_clone));
        Ok(Self(Arc::new(Handle { shared, operation_timeout: limit, last_clone })))
    }

    /// The timeout that the servers granted to the present session, or the requested timeout while there is
    /// no session.
    #[must_use]
    pub fn session_timeout(&self) -> Duration {
        let ManagerInner { settings, publisher, .. } = &*self.0.shared;
        publisher.session().map_or(settings.session_timeout, |session| session.timeout())
    }

    /// Runs a task of this manager on the runtime that it connected on.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.environment().spawn(Box::pin(task));
    }

    /// The present session, connected or not.
    pub(crate) fn present_session(&self) -> Option<Session> {
        self.0.shared.publisher.session()
    }

    /// The error of a task at `path` that has ended: with the manager, or with the runtime that it ran on.
    pub(crate) fn ended_task(&self, path: WholePath) -> Error {
        match self.0.shared.closing.is_cancelled() {
            true => self.closed_error(path),
            false => Error::RuntimeEnded { path },
        }
    }

    /// The error of a call at `path` after the end of the manager.
    pub(crate) fn closed_error(&self, path: WholePath) -> Error {
        match self.0.shared.publisher.has_runtime_ended() {
            true => Error::RuntimeEnded { path },
            false => Error::Closed,
        }
    }

    /// Resolves when the task of the manager has ended.
    pub(crate) async fn closed(&self) {
        self.0.shared.closed.cancelled().await;
    }

    /// As [`session`](Self::session), for a contender: fails once a shutdown has begun.
    pub(crate) async fn session_for_acquire(&self, deadline: Deadline, path: &str) -> Result<Session, Error> {
        tokio::select! {
            biased;
            () = self.0.shared.draining.cancelled() => Err(Error::Closed),
            session = self.session(deadline, path) => session,
        }
    }

    /// The present session, as soon as one is connected.
    pub(crate) async fn session(&self, deadline: Deadline, path: &str) -> Result<Session, Error> {
        ensure_runtime()?;
        let ManagerInner { publisher, closing, .. } = &*self.0.shared;
        let now = publisher.snapshot();
        if is_usable(&now) && !closing.is_cancelled() {
            return now.session.ok_or_else(|| self.closed_error(path.into()));
        }
        // Boxed because it is seldom needed, and would enlarge the future of every acquire.
        Box::pin(self.next_session(deadline, path)).await
    }

    async fn next_session(&self, deadline: Deadline, path: &str) -> Result<Session, Error> {
        let ManagerInner { publisher, closing, .. } = &*self.0.shared;
        let found = tokio::select! {
            biased;
            () = closing.cancelled() => return Err(self.closed_error(path.into())),
            found = publisher.wait_for(is_usable) => found.session,
            () = deadline.passed() => {
                let (path, waited) = (path.into(), deadline.waited());
                return Err(Error::Timeout { phase: Phase::Connecting, path, waited });
            }
        };
        found.ok_or_else(|| self.closed_error(path.into()))
    }
}

/// Whether there is a session to use, or none will follow.
fn is_usable(snapshot: &StateSnapshot) -> bool {
    match snapshot.state {
        State::Closed => true,
        // A session that has just ended is replaced soon.
        State::Connected(_) => snapshot.session.as_ref().is_some_and(|session| session.loss().is_none()),
        _ => false,
    }
}

impl Debug for ConnectionManager {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ConnectionManager")
            .field("servers", &self.0.shared.settings.servers())
            .field("state", &self.state())
            .finish_non_exhaustive()
    }
}
