use std::time::Duration;

use tracing::{Instrument, debug_span, field};

use crate::error::{Error, Operation, Phase, Refusal};
use crate::manager::ConnectionManager;
use crate::session::{Observation, Session, Stop};
use crate::telemetry::timers::WaitTimer;
use crate::time::deadline::Deadline;
use crate::wire::{Reply, Stat, WireError, existing};
use crate::znode::path::{IntoPath, ZnodePath};

/// Reads and writes of other nodes than locks: the state that an application keeps in ZooKeeper.
///
/// The connected server answers reads. It may be behind the other servers, but never behind anything that
/// this session has seen: a new holder of a lock reads everything that earlier holders wrote. (After a
/// reconnect the first read is preceded by a sync with the quorum, because the new server may be behind.)
/// Writes that must not happen without the lock belong into [`Hold::txn`](crate::Hold::txn).
///
/// Each call waits for a connection and for its answers, in all no longer than the manager's operation
/// timeout; [`delete_all`](Self::delete_all) for each of its requests. Within that time a read without an
/// answer is sent again, also in the next session. [`wait_for`](Self::wait_for) and
/// [`deleted`](Self::deleted) wait without a limit of time, and their twins with a timeout no longer than
/// that.
///
/// A write without an answer ends with [`Error::Unknown`], unless the method says that it finds out. A write
/// that has to be applied once gets a [marker](crate::Txn::once), or belongs into a
/// [`Register`](crate::Register).
#[derive(Clone, Debug)]
pub struct Znodes {
    pub(super) manager: ConnectionManager,
    metric_name: Option<&'static str>,
}

impl ConnectionManager {
    /// Reads and writes other nodes than locks.
    #[must_use]
    pub fn znodes(&self) -> Znodes {
        Znodes { manager: self.clone(), metric_name: None }
    }
}

impl Znodes {
    /// The name of the recipe in the metrics and the span of [`deleted`](Self::deleted), for authors of
    /// recipes. Default: none, and a wait is not measured.
    #[must_use]
    pub fn with_metric_name(self, metric_name: &'static str) -> Self {
        Self { metric_name: Some(metric_name), ..self }
    }

    /// A node's data and stat; `None` if the node does not exist.
    ///
    /// Of many reads at the same time, as many are in flight as a server has memory for.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`] without an answer, or without a connection, within the operation timeout,
    /// [`Error::Refused`] (no right to read) or [`Error::Closed`].
    ///
    /// # Session loss
    ///
    /// Goes on in the next session.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the call changes nothing.
    pub async fn read(&self, path: impl IntoPath) -> Result<Option<(Vec<u8>, Stat)>, Error> {
        let full = &self.manager.full_path(&path.into_path()?)?;
        let read = |session: Session, deadline| async move {
            let room = session.reserve_read(deadline).await?;
            let data = || session.read(|wire| wire.data(full.as_str()));
            let answer = read_in_sync(&session, data, deadline).await;
            room.answered(answer.iter().map(|(data, _)| data.len()));
            existing(answer)
        };
        self.until_read(Operation::Read, full, read).await
    }

    /// Reads in one session after the other, until there is an answer or the operation timeout has passed. A
    /// read does no harm twice.
    pub(super) async fn until_read<T, F>(
        &self,
        operation: Operation,
        full: &ZnodePath,
        read: impl Fn(Session, Deadline) -> F,
    ) -> Result<T, Error>
    where
        F: Future<Output = Result<T, WireError>>,
    {
        let deadline = Deadline::after(self.manager.operation_timeout());
        loop {
            let session = self.manager.session(deadline, full.as_str()).await?;
            let failed = match read(session.clone(), deadline).await {
                Ok(read) => return Ok(read),
                Err(error) => error,
            };
            let retried = session.retry_after(&failed, operation, full.as_str(), deadline).await;
            retried.or_else(Stop::or_next_session)?;
        }
    }

    /// Waits until a node exists, and returns its data and stat. Returns at once if it exists.
    ///
    /// Costs a read, and one watch on the list of the node's parent, or of the nearest parent that exists.
    /// The list is read again after each change of it: use it below a parent with few children.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] (no right to read the node or to list its parent), [`Error::Closed`] after a
    /// shutdown has begun, and [`Error::Config`] if the path is malformed. It waits for a connection without
    /// a limit of time.
    ///
    /// # Session loss
    ///
    /// Goes on in the next session.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the call changes nothing.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = lockkeeper_testserver::TestServer::start().await?;
    /// # let manager = lockkeeper_core::ConnectionManager::connect(&server.connect_string()).await?;
    /// use lockkeeper_core::CreateMode;
    ///
    /// let znodes = manager.znodes();
    /// let (found, created) = tokio::join!(
    ///     znodes.wait_for("/config/ready"),
    ///     znodes.create("/config/ready", b"yes", CreateMode::Persistent),
    /// );
    /// created?;
    /// assert_eq!(found?.0, b"yes");
    /// # Ok(())
    /// # }
    /// ```
    pub async fn wait_for(&self, path: impl IntoPath) -> Result<(Vec<u8>, Stat), Error> {
        self.wait_for_by(path, Deadline::never()).await
    }

    /// As [`wait_for`](Self::wait_for), for at most `timeout`. With a `timeout` of zero, the node is read
    /// once.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`]. Otherwise as [`wait_for`](Self::wait_for).
    ///
    /// # Session loss
    ///
    /// As [`wait_for`](Self::wait_for).
    ///
    /// # Cancel safety
    ///
    /// As [`wait_for`](Self::wait_for).
    pub async fn wait_for_timeout(
        &self,
        path: impl IntoPath,
        timeout: Duration,
    ) -> Result<(Vec<u8>, Stat), Error> {
        self.wait_for_by(path, Deadline::after(timeout)).await
    }

    async fn wait_for_by(&self, path: impl IntoPath, deadline: Deadline) -> Result<(Vec<u8>, Stat), Error> {
        let full = &self.manager.full_path(&path.into_path()?)?;
        let is_try = deadline.is_immediate();
        let look = |session: Session| async move { until_created(&session, full, is_try).await };
        self.until(full, deadline, "waiting for the node", look).await
    }

    /// Resolves when the node does not exist. One watch; no request while the node is there.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] (no right to read), and [`Error::Closed`] after a shutdown has begun.
    ///
    /// # Session loss
    ///
    /// Goes on in the next session.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the call changes nothing.
    pub async fn deleted(&self, path: impl IntoPath) -> Result<(), Error> {
        self.deleted_by(path, Deadline::never()).await
    }

    /// As [`deleted`](Self::deleted), for at most `timeout`. With a `timeout` of zero, the node is read once.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`]. Otherwise as [`deleted`](Self::deleted).
    ///
    /// # Session loss
    ///
    /// As [`deleted`](Self::deleted).
    ///
    /// # Cancel safety
    ///
    /// As [`deleted`](Self::deleted).
    pub async fn deleted_timeout(&self, path: impl IntoPath, timeout: Duration) -> Result<(), Error> {
        self.deleted_by(path, Deadline::after(timeout)).await
    }

    async fn deleted_by(&self, path: impl IntoPath, deadline: Deadline) -> Result<(), Error> {
        let full = self.manager.full_path(&path.into_path()?)?;
        let (path, is_try) = (full.as_str(), deadline.is_immediate());
        let look = |session: Session| async move { until_deleted(&session, path, is_try).await };
        let waiting = self.until(&full, deadline, "waiting for the deletion of the node", look);
        let Some(recipe) = self.metric_name else { return waiting.await };
        let (outcome, waited) = (field::Empty, field::Empty);
        let span = debug_span!("deleted", path, recipe, outcome, waited);
        let timer = WaitTimer::begin(self.manager.environment(), recipe, span.clone());
        let deleted = waiting.instrument(span).await;
        timer.end(&deleted, |()| true);
        deleted
    }

    /// Looks in one session after the other until `look` finds something. A try looks once.
    async fn until<T, F>(
        &self,
        full: &ZnodePath,
        deadline: Deadline,
        phase: &'static str,
        look: impl Fn(Session) -> F,
    ) -> Result<T, Error>
    where
        F: Future<Output = Result<Option<T>, WireError>>,
    {
        let path = full.as_str();
        let limit = match deadline.is_immediate() {
            true => Deadline::after(self.manager.operation_timeout()),
            false => deadline,
        };
        let timeout = || {
            let phase = Phase::Recipe(phase.into());
            Error::Timeout { phase, path: path.into(), waited: deadline.waited() }
        };
        loop {
            let session = self.manager.session(limit, path).await?;
            let failed = tokio::select! {
                biased;
                () = self.manager.closing() => return Err(Error::Closed),
                () = limit.passed() => return Err(timeout()),
                reason = session.ended() => WireError::SessionEnded(reason),
                found = look(session.clone()) => match found {
                    Ok(Some(found)) => return Ok(found),
                    Ok(None) => return Err(timeout()),
                    Err(error) => error,
                },
            };
            let retried = session.retry_after(&failed, Operation::Read, path, limit).await;
            retried.or_else(Stop::or_next_session)?;
        }
    }

    pub(super) async fn begin(&self, path: impl IntoPath) -> Result<(Session, ZnodePath, Deadline), Error> {
        let deadline = Deadline::after(self.manager.operation_timeout());
        let full = self.manager.full_path(&path.into_path()?)?;
        let session = self.manager.session(deadline, full.as_str()).await?;
        Ok((session, full, deadline))
    }
}

/// Waits until the node exists, and reads it. `None` for a try that finds no node.
async fn until_created(
    session: &Session,
    path: &ZnodePath,
    is_try: bool,
) -> Result<Option<(Vec<u8>, Stat)>, WireError> {
    loop {
        let connection = session.ensure_synced(Deadline::never()).await?;
        let mut reply = session.read(|wire| wire.data(path.as_str()));
        match session.await_reply(&mut reply, Deadline::never()).await {
            Ok(node) => return Ok(Some(node)),
            Err(WireError::Refused(Refusal::NoNode)) => {}
            Err(error) => return Err(error),
        }
        if is_try && session.connection() == Some(connection) {
            return Ok(None);
        }
        if let Some(parent) = path.parent().filter(|_| !is_try) {
            let is_there = |names: &[String]| names.iter().any(|name| name == path.name());
            session.until_child(connection, &parent, is_there).await?;
        }
    }
}

/// Reads over a connection that shows everything that the session has learned. A read that was asked for
/// while the link changed is repeated: another connection may have carried it.
pub(super) async fn read_in_sync<T>(
    session: &Session,
    send: impl Fn() -> Reply<T>,
    deadline: Deadline,
) -> Result<T, WireError> {
    loop {
        let synced_on = session.ensure_synced(deadline).await?;
        match session.await_reply(&mut send(), deadline).await {
            Err(error) if error != WireError::Refused(Refusal::NoNode) => return Err(error),
            answer if session.connection() == Some(synced_on) => return answer,
            _ => {}
        }
    }
}

/// Waits until the node does not exist. `None` for a try that finds the node.
async fn until_deleted(session: &Session, path: &str, is_try: bool) -> Result<Option<()>, WireError> {
    loop {
        let connection = session.ensure_synced(Deadline::never()).await?;
        let room = if is_try { None } else { session.watch_budget().reserve(path) };
        let mut reply = session.observe_data(path, room);
        let node = session.await_reply(&mut reply, Deadline::never()).await;
        let is_current = session.connection() == Some(connection);
        match node {
            Err(WireError::Refused(Refusal::NoNode)) if is_current => return Ok(Some(())),
            Err(WireError::Refused(Refusal::NoNode)) => continue,
            Err(error) => return Err(error),
            Ok(_) if is_try => return Ok(None),
            Ok((.., watch)) => {
                Observation::new(session, Some(connection), [watch]).seldom().changed().await;
            }
        }
    }
}
