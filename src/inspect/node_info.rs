use std::time::{Duration, SystemTime};

use super::read::read_children;
use crate::error::{Error, Operation};
use crate::manager::ConnectionManager;
use crate::session::Session;
use crate::time::deadline::Deadline;
use crate::time::server_clock::instant;
use crate::wire::{Stat, WireError, existing};
use crate::znode::path::{IntoPath, ZnodePath};
use crate::znode::zxid::Zxid;

/// A node that is no contender, as a server knew it: a member, an instance of a service, a writer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeInfo {
    name: String,
    data: Option<Vec<u8>>,
    stat: Stat,
}

impl NodeInfo {
    /// A node that a recipe has read.
    #[must_use]
    pub fn new(name: impl Into<String>, data: Option<Vec<u8>>, stat: Stat) -> Self {
        Self { name: name.into(), data, stat }
    }

    /// The children of the node at `directory`, with their data, in the order of their names. A child that is
    /// deleted meanwhile is left out, and a node that does not exist has no children.
    ///
    /// A `sync` and then the list, sent together: the list is no older than the call, unless the servers'
    /// leader had been deposed without knowing it. The nodes are read after it.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`], [`Error::Refused`] (no right to list, or to see that a node exists),
    /// [`Error::NoAnswer`] (the link broke: call again), [`Error::Config`] for a malformed path and
    /// [`Error::Closed`].
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the call changes nothing.
    pub async fn children_of(
        manager: &ConnectionManager,
        directory: impl IntoPath,
    ) -> Result<Vec<Self>, Error> {
        let directory = manager.full_path(&directory.into_path()?)?;
        manager.until_answered(|| Self::read_directory(manager, &directory)).await
    }

    async fn read_directory(manager: &ConnectionManager, directory: &ZnodePath) -> Result<Vec<Self>, Error> {
        let path = directory.as_str();
        let session = manager.session(Deadline::after(manager.operation_timeout()), path).await?;
        let deadline = Deadline::after(manager.operation_timeout());
        let mut sync = session.read(|wire| wire.sync(path));
        let mut list = session.read(|wire| wire.children(path));
        let failed = |error: WireError| Error::of_wire(Operation::List, path, &error, deadline);
        session.await_reply(&mut sync, deadline).await.map_err(failed)?;
        let names = existing(session.await_reply(&mut list, deadline).await).map_err(failed)?;
        let mut names = names.unwrap_or_default();
        names.sort_unstable();
        Self::read(manager, &session, directory, names, usize::MAX).await
    }

    /// Reads the children with these names, as far as they exist, and the first bytes of their data.
    pub(crate) async fn read(
        manager: &ConnectionManager,
        session: &Session,
        directory: &ZnodePath,
        names: Vec<String>,
        data_bytes_max: usize,
    ) -> Result<Vec<Self>, Error> {
        let nodes = read_children(manager, session, directory, &names, data_bytes_max).await?;
        let info = |(name, node): (String, Option<_>)| node.map(|(data, stat)| Self { name, data, stat });
        Ok(names.into_iter().zip(nodes).filter_map(info).collect())
    }

    /// The name of the node.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The data of the node. A member of a double barrier and a writer show the first 1024 bytes of theirs.
    /// `None` if the access list does not allow this client to read it, and in a survey, which keeps no data.
    #[must_use]
    pub fn data(&self) -> Option<&[u8]> {
        self.data.as_deref()
    }

    /// The session that owns the node, and that ends when its process crashes; 0 for a persistent one.
    #[must_use]
    pub fn session(&self) -> i64 {
        self.stat.ephemeral_owner
    }

    /// The transaction that created the node.
    #[must_use]
    pub fn czxid(&self) -> Zxid {
        self.stat.czxid
    }

    /// The time since the node was created, by the clock of this machine.
    #[must_use]
    pub fn age(&self) -> Duration {
        SystemTime::now().duration_since(instant(self.stat.ctime)).unwrap_or_default()
    }

    /// When the data of the node was last written, by the servers' clock.
    #[must_use]
    pub fn last_write(&self) -> SystemTime {
        instant(self.stat.mtime)
    }

    /// The node's complete stat.
    #[must_use]
    pub fn stat(&self) -> &Stat {
        &self.stat
    }
}
