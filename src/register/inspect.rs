//! A register, as others see it.

use std::fmt::{self, Display, Formatter};
use std::time::SystemTime;

use super::handle::Register;
use super::requests::{StepFailure, read_node};
use super::writer::PREFIX;
use crate::error::{Error, Operation};
use crate::inspect::{DATA_BYTES_MAX, NodeInfo};
use crate::manager::ConnectionManager;
use crate::session::Session;
use crate::time::deadline::Deadline;
use crate::time::server_clock::instant;
use crate::wire::{Stat, WireError, existing};
use crate::znode::path::ZnodePath;
use crate::znode::whole_path::WholePath;
use crate::znode::zxid::Zxid;

/// The node of a [`Register`], and the clients that write it: a snapshot for people and tools, which may be
/// stale when it is read.
///
/// `{}` prints a line, and one for each writer node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegisterInfo {
    path: WholePath,
    node: Option<(Vec<u8>, Stat)>,
    writers: Vec<NodeInfo>,
}

impl RegisterInfo {
    /// The data of the node; `None` if the node does not exist.
    #[must_use]
    pub fn data(&self) -> Option<&[u8]> {
        self.node.as_ref().map(|(data, _)| data.as_slice())
    }

    /// The zxid of the last write of the node, [`Zxid::ZERO`] if the node does not exist.
    #[must_use]
    pub fn zxid(&self) -> Zxid {
        self.node.as_ref().map_or(Zxid::ZERO, |(_, stat)| stat.mzxid)
    }

    /// When the node was last written, by the servers' clock; `None` if the node does not exist.
    #[must_use]
    pub fn written(&self) -> Option<SystemTime> {
        self.node.as_ref().map(|(_, stat)| instant(stat.mtime))
    }

    /// The clients that write the node, in the order of their first writes. Each has a writer node from its
    /// first write until its register is dropped or its session ends; the write that creates the node leaves
    /// none. Clients of other libraries have none.
    #[must_use]
    pub fn writers(&self) -> &[NodeInfo] {
        &self.writers
    }
}

impl Register {
    /// Reads the node and the writer nodes below it: a snapshot, no older than the call. Needs only the right
    /// to read.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`], [`Error::Refused`] (no right to read or to list), [`Error::NoAnswer`] (the link
    /// broke: call again) and [`Error::Closed`].
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the call changes nothing.
    pub async fn inspect(&self) -> Result<RegisterInfo, Error> {
        self.manager().until_answered(|| self.inspect_once()).await
    }

    async fn inspect_once(&self) -> Result<RegisterInfo, Error> {
        let (manager, full) = (self.manager(), &self.inner.full);
        let deadline = Deadline::after(manager.operation_timeout());
        let session = manager.session(deadline, full.as_str()).await?;
        let failed = |operation, error: WireError| Error::of_wire(operation, full.as_str(), &error, deadline);
        let node = match read_node(&session, full.as_str(), deadline).await {
            Ok(node) => node,
            Err(StepFailure::Wire(operation, error)) => return Err(failed(operation, error)),
            Err(StepFailure::Error(error)) => return Err(error),
        };
        let writers = read_writers(manager, &session, full, deadline).await?;
        Ok(RegisterInfo { path: manager.whole_path(self.path()), node, writers })
    }
}

async fn read_writers(
    manager: &ConnectionManager,
    session: &Session,
    directory: &ZnodePath,
    deadline: Deadline,
) -> Result<Vec<NodeInfo>, Error> {
    let mut list = session.read(|wire| wire.children(directory.as_str()));
    let names = existing(session.await_reply(&mut list, deadline).await);
    let failed = |error: WireError| Error::of_wire(Operation::List, directory.as_str(), &error, deadline);
    let mut names = names.map_err(failed)?.unwrap_or_default();
    names.retain(|name| name.starts_with(PREFIX));
    let writers = NodeInfo::read(manager, session, directory, names, DATA_BYTES_MAX).await;
    writers.map(|mut writers| {
        writers.sort_by_key(NodeInfo::czxid);
        writers
    })
}

impl Display for RegisterInfo {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        match &self.node {
            None => write!(formatter, "{}: does not exist", self.path)?,
            Some((data, stat)) => {
                let (bytes, zxid, writers) = (data.len(), stat.mzxid, self.writers.len());
                write!(formatter, "{}: {bytes} bytes of {zxid}, {writers} writers", self.path)?;
            }
        }
        for writer in &self.writers {
            write!(formatter, "\n  writes  {:#x}  {}", writer.session(), writer.name().escape_debug())?;
        }
        Ok(())
    }
}
