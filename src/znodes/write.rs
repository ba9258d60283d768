use super::handle::{Znodes, read_in_sync};
use crate::config::limits;
use crate::error::{Error, Operation, Phase, Refusal};
use crate::session::{ParentLifetime, Session, Stop, make_directory};
use crate::time::deadline::Deadline;
use crate::wire::{CreateMode, CreateOptions, Created, Stat, WireError};
use crate::znode::path::{IntoPath, PathError, ZnodePath};
use crate::znode::version::Version;

/// A node that [`Znodes::create_with`] created.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CreatedNode {
    /// Its path, with the sequence number if it has one.
    pub path: ZnodePath,
    /// Its stat; `None` if the servers send none.
    pub stat: Option<Stat>,
}

impl Znodes {
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
        Ok(self.create_with(path, data, mode).await?.path)
    }

    /// As [`create`](Self::create), with an access list or a time to live, and returns the stat as well.
    ///
    /// # Errors
    ///
    /// As [`create`](Self::create), and [`Error::Config`] for a time to live that no server accepts.
    /// [`Error::Refused`] with [`Refusal::Unimplemented`] if the servers have no nodes with a time to live:
    /// they need `zookeeper.extendedTypesEnabled=true`. With [`Refusal::InvalidAcl`] for a list that they do
    /// not accept.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = lockkeeper_testserver::TestServer::builder().ttl_nodes(true).start().await?;
    /// # let manager = lockkeeper_core::ConnectionManager::connect(&server.connect_string()).await?;
    /// use std::time::Duration;
    ///
    /// use lockkeeper_core::{Acl, CreateMode, CreateOptions, Permissions};
    ///
    /// let options = CreateOptions::new(CreateMode::Persistent)
    ///     .acl(Acl::new(Permissions::READ.and(Permissions::DELETE), "world", "anyone"))
    ///     .time_to_live(Duration::from_secs(3600));
    /// let created = manager.znodes().create_with("/offers/today", "2 for 1", options).await?;
    /// assert_eq!(created.path, "/offers/today");
    /// # Ok(())
    /// # }
    /// ```
    pub async fn create_with(
        &self,
        path: impl IntoPath,
        data: impl Into<Vec<u8>>,
        options: impl Into<CreateOptions>,
    ) -> Result<CreatedNode, Error> {
        let (data, options) = (data.into(), options.into());
        limits::check(data.len()).map_err(Error::Config)?;
        options.check().map_err(Error::Config)?;
        let (session, full, deadline) = self.begin(path).await?;
        let failed = |error: WireError| Error::of_wire(Operation::Create, full.as_str(), &error, deadline);
        let mut reply = session.create_with(full.as_str(), &data, &options);
        match session.await_reply(&mut reply, deadline).await {
            Ok(created) => return self.created(created),
            Err(WireError::Refused(Refusal::NoNode)) => {}
            Err(error) => return Err(failed(error)),
        }
        make_parent(&session, &full, deadline).await.map_err(failed)?;
        let mut reply = session.create_with(full.as_str(), &data, &options);
        self.created(session.await_reply(&mut reply, deadline).await.map_err(failed)?)
    }

    /// The path that a server answers, below the chroot.
    fn created(&self, created: Created) -> Result<CreatedNode, Error> {
        let below = self.manager.below_chroot(&created.path).parse();
        let bad = |bad: PathError| Error::bad_answer(Operation::Create, &created.path, &bad);
        Ok(CreatedNode { path: below.map_err(bad)?, stat: created.stat })
    }

    /// Creates a persistent node and its missing parents, if it does not exist. Its data is left as it is.
    ///
    /// A request without an answer is repeated, also in the next session: that does no harm.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read). After any error the node may exist.
    pub async fn ensure(&self, path: impl IntoPath) -> Result<(), Error> {
        let full = self.manager.full_path(&path.into_path()?)?;
        let deadline = Deadline::after(self.manager.operation_timeout());
        loop {
            let session = self.manager.session(deadline, full.as_str()).await?;
            let exists = || session.read(|wire| wire.exists(full.as_str()));
            let failed = match read_in_sync(&session, exists, deadline).await {
                Ok(Some(_)) => return Ok(()),
                Ok(None) => match make_directory(&session, &full, ParentLifetime::ForEver, deadline).await {
                    Ok(()) if deadline.has_passed() => WireError::Timeout,
                    Ok(()) => continue,
                    Err(error) => error,
                },
                Err(error) => error,
            };
            let retried = session.retry_after(&failed, Operation::Create, full.as_str(), deadline).await;
            retried.or_else(Stop::or_next_session)?;
        }
    }

    /// Writes a node's data, whatever its version is, or creates the node if it does not exist, and missing
    /// parents. Returns the stat of the node; `None` if the servers send none for a create.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read). After [`Error::Unknown`] the data may be written; a second call then writes
    /// it again, perhaps over that of another client.
    pub async fn create_or_write(
        &self,
        path: impl IntoPath,
        data: impl Into<Vec<u8>>,
    ) -> Result<Option<Stat>, Error> {
        let data = data.into();
        limits::check(data.len()).map_err(Error::Config)?;
        let (session, full, deadline) = self.begin(path).await?;
        let failed = |operation, error: WireError| Error::of_wire(operation, full.as_str(), &error, deadline);
        loop {
            let mut reply = session.set_data(full.as_str(), &data, None);
            match session.await_reply(&mut reply, deadline).await {
                Ok(stat) => return Ok(Some(stat)),
                Err(WireError::Refused(Refusal::NoNode)) => {}
                Err(error) => return Err(failed(Operation::Write, error)),
            }
            let mut reply = session.create(full.as_str(), &data, CreateMode::Persistent);
            match session.await_reply(&mut reply, deadline).await {
                Ok(created) => return Ok(created.stat),
                // Another client created it meanwhile.
                Err(WireError::Refused(Refusal::NodeExists)) => {}
                Err(WireError::Refused(Refusal::NoNode)) => {
                    let made = make_parent(&session, &full, deadline).await;
                    made.map_err(|error| failed(Operation::Create, error))?;
                }
                Err(error) => return Err(failed(Operation::Create, error)),
            }
            if deadline.has_passed() {
                return Err(Error::timed_out(deadline, full.as_str(), Phase::Answer));
            }
        }
    }

    /// Writes a node's data if it has this version. Returns the new stat.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] with [`Refusal::BadVersion`] or [`Refusal::NoNode`]; otherwise as
    /// [`read`](Self::read). After [`Error::Unknown`] the data may be written.
    pub async fn write(
        &self,
        path: impl IntoPath,
        data: impl Into<Vec<u8>>,
        version: impl Into<Version>,
    ) -> Result<Stat, Error> {
        let data = data.into();
        limits::check(data.len()).map_err(Error::Config)?;
        let (session, full, deadline) = self.begin(path).await?;
        let version = version.into().on_wire();
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
        self.delete_at(path, Version::Any).await
    }

    /// Deletes a node, if it has this version. Returns `false` if it did not exist.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] with [`Refusal::BadVersion`] if it has another version. Otherwise as
    /// [`delete`](Self::delete).
    pub async fn delete_at(&self, path: impl IntoPath, version: impl Into<Version>) -> Result<bool, Error> {
        let (session, full, deadline) = self.begin(path).await?;
        let version = version.into().on_wire();
        let mut reply = session.write(|wire| wire.delete(full.as_str(), version));
        match session.await_reply(&mut reply, deadline).await {
            Ok(()) => Ok(true),
            Err(WireError::Refused(Refusal::NoNode)) => Ok(false),
            Err(error) => Err(Error::of_wire(Operation::Delete, full.as_str(), &error, deadline)),
        }
    }
}

/// Creates the missing parents of a node.
async fn make_parent(session: &Session, path: &ZnodePath, deadline: Deadline) -> Result<(), WireError> {
    match path.parent() {
        Some(parent) => make_directory(session, &parent, ParentLifetime::ForEver, deadline).await,
        None => Ok(()),
    }
}
