use crate::config::limits;
use crate::error::{Error, Operation, Refusal};
use crate::manager::ConnectionManager;
use crate::session::{ParentLifetime, Session, make_directory};
use crate::time::deadline::Deadline;
use crate::wire::{CreateMode, Reply, Stat, WireError};
use crate::znode::path::{IntoPath, PathError, ZnodePath};

/// Reads and writes of other nodes than locks: the state that an application keeps in ZooKeeper.
///
/// The connected server answers reads. It may be behind the other servers, but never behind anything that
/// this session has seen: a new holder of a lock reads everything that earlier holders wrote. (After a
/// reconnect the first read is preceded by a `sync`, because the new server may be behind.) Writes that must
/// not happen without the lock belong into [`Hold::txn`](crate::Hold::txn).
///
/// Each call waits for a connection and for its answers, in all no longer than the manager's operation
/// timeout.
#[derive(Clone, Debug)]
pub struct Znodes {
    manager: ConnectionManager,
}

impl ConnectionManager {
    /// Reads and writes other nodes than locks.
    #[must_use]
    pub fn znodes(&self) -> Znodes {
        Znodes { manager: self.clone() }
    }
}

impl Znodes {
    /// A node's data and stat; `None` if the node does not exist.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`], [`Error::Refused`] (no right to read), [`Error::NoAnswer`] (the connection broke)
    /// or [`Error::Closed`].
    pub async fn read(&self, path: impl IntoPath) -> Result<Option<(Vec<u8>, Stat)>, Error> {
        let (session, full, deadline) = self.begin(path).await?;
        let failed = |error: WireError| Error::of_wire(Operation::Read, full.as_str(), &error, deadline);
        match read_in_sync(&session, || session.read(|wire| wire.data(full.as_str())), deadline).await {
            Ok(read) => Ok(Some(read)),
            Err(WireError::Refused(Refusal::NoNode)) => Ok(None),
            Err(error) => Err(failed(error)),
        }
    }

    /// The names of a node's children, in no order; `None` if the node does not exist.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    pub async fn children(&self, path: impl IntoPath) -> Result<Option<Vec<String>>, Error> {
        let (session, full, deadline) = self.begin(path).await?;
        let failed = |error: WireError| Error::of_wire(Operation::List, full.as_str(), &error, deadline);
        match read_in_sync(&session, || session.read(|wire| wire.children(full.as_str())), deadline).await {
            Ok(children) => Ok(Some(children)),
            Err(WireError::Refused(Refusal::NoNode)) => Ok(None),
            Err(error) => Err(failed(error)),
        }
    }

    /// Creates a node, and persistent nodes for missing parents. Returns its path, with the sequence number
    /// if the node has one.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] with [`Refusal::NodeExists`] if the node exists; otherwise as [`read`](Self::read).
    /// After [`Error::Unknown`] the node may exist.
    pub async fn create(
        &self,
        path: impl IntoPath,
        data: impl Into<Vec<u8>>,
        mode: CreateMode,
    ) -> Result<ZnodePath, Error> {
        let data = data.into();
        limits::check(data.len()).map_err(Error::Config)?;
        let (session, full, deadline) = self.begin(path).await?;
        let failed = |error: WireError| Error::of_wire(Operation::Create, full.as_str(), &error, deadline);
        let mut reply = session.create(full.as_str(), &data, mode);
        match session.await_reply(&mut reply, deadline).await {
            Ok(created) => return self.created(&created.path),
            Err(WireError::Refused(Refusal::NoNode)) => {}
            Err(error) => return Err(failed(error)),
        }
        if let Some(parent) = full.parent() {
            make_directory(&session, &parent, ParentLifetime::ForEver, deadline).await.map_err(failed)?;
        }
        let mut reply = session.create(full.as_str(), &data, mode);
        let created = session.await_reply(&mut reply, deadline).await.map_err(failed)?;
        self.created(&created.path)
    }

    /// The path that a server answers, below the chroot.
    fn created(&self, path: &str) -> Result<ZnodePath, Error> {
        let below = self.manager.below_chroot(path).parse();
        below.map_err(|bad: PathError| Error::bad_answer(Operation::Create, path, &bad))
    }

    /// Writes a node's data if it has `version` ([`ANY_VERSION`](crate::ANY_VERSION): any). Returns the new
    /// stat.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] with [`Refusal::BadVersion`] or [`Refusal::NoNode`]; otherwise as
    /// [`read`](Self::read). After [`Error::Unknown`] the data may be written.
    pub async fn write(
        &self,
        path: impl IntoPath,
        data: impl Into<Vec<u8>>,
        version: i32,
    ) -> Result<Stat, Error> {
        let data = data.into();
        limits::check(data.len()).map_err(Error::Config)?;
        let (session, full, deadline) = self.begin(path).await?;
        let version = (version >= 0).then_some(version);
        let mut reply = session.set_data(full.as_str(), &data, version);
        let answer = session.await_reply(&mut reply, deadline).await;
        answer.map_err(|error| Error::of_wire(Operation::Write, full.as_str(), &error, deadline))
    }

    /// Deletes a node. Returns `false` if it did not exist.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] with [`Refusal::NotEmpty`]; otherwise as [`read`](Self::read). After
    /// [`Error::Unknown`] the node may be deleted.
    pub async fn delete(&self, path: impl IntoPath) -> Result<bool, Error> {
        let (session, full, deadline) = self.begin(path).await?;
        let mut reply = session.write(|wire| wire.delete(full.as_str(), None));
        match session.await_reply(&mut reply, deadline).await {
            Ok(()) => Ok(true),
            Err(WireError::Refused(Refusal::NoNode)) => Ok(false),
            Err(error) => Err(Error::of_wire(Operation::Delete, full.as_str(), &error, deadline)),
        }
    }

    async fn begin(&self, path: impl IntoPath) -> Result<(Session, ZnodePath, Deadline), Error> {
        let deadline = Deadline::after(self.manager.operation_timeout());
        let full = self.manager.full_path(&path.into_path()?)?;
        let session = self.manager.session(deadline, full.as_str()).await?;
        Ok((session, full, deadline))
    }
}

/// Reads over a connection that shows everything that the session has learned. A read that was asked for
/// while the link changed is repeated: another connection may have carried it.
async fn read_in_sync<T>(
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
