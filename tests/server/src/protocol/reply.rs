use bytes::Bytes;

use super::{ReadResult, WriteResult};
use crate::tree::{Acl, Identity, Stat};

/// A successful answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// Nothing but success.
    Done,
    /// A path (`create`, `sync`).
    Path(String),
    /// The null path that a `sync` named.
    NullPath,
    /// A path and the node's metadata (`create2` and its kin).
    PathStat(String, Stat),
    /// Metadata.
    Stat(Stat),
    /// Data and metadata.
    Data(Option<Bytes>, Stat),
    /// Names of children.
    Children(Vec<String>),
    /// Names of children and metadata.
    ChildrenStat(Vec<String>, Stat),
    /// An access list and metadata.
    Acl(Vec<Acl>, Stat),
    /// Number of nodes below a node.
    Count(i32),
    /// Paths of ephemeral nodes.
    Ephemerals(Vec<String>),
    /// Identities of the connection.
    Identities(Vec<Identity>),
    /// Results of a transaction. A failed one is answered with success and the errors inside.
    Multi(Vec<WriteResult>),
    /// Results of a multi-read.
    MultiRead(Vec<ReadResult>),
    /// A persistent watch was added.
    WatchAdded,
}
