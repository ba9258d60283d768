use super::stat::Stat;
use crate::znode::zxid::Zxid;

/// The lifetime and naming of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CreateMode {
    /// Exists until it is deleted.
    Persistent,
    /// Exists until it is deleted; the server appends a sequence number to its name.
    PersistentSequential,
    /// Exists until its session ends.
    Ephemeral,
    /// Exists until its session ends; the server appends a sequence number to its name.
    EphemeralSequential,
    /// The server deletes it some time after its last child was deleted.
    Container,
}

/// A node that was created.
#[derive(Clone, Debug)]
pub struct Created {
    /// Its path, with the sequence number that the server appended.
    pub path: String,
    /// Missing if the server does not send it: before 3.5, and in a transaction before 3.8.2
    /// (ZOOKEEPER-4026).
    pub stat: Option<Stat>,
}

/// One operation of a transaction. Paths include the chroot.
#[derive(Clone, Debug)]
pub enum WriteOp {
    /// The node must exist in this version.
    Check {
        /// The path of the node.
        path: String,
        /// `None`: any version.
        version: Option<i32>,
    },
    /// Creates a node.
    Create {
        /// The path of the node.
        path: String,
        /// The data of the node.
        data: Vec<u8>,
        /// The lifetime and naming of the node.
        mode: CreateMode,
    },
    /// Writes a node's data.
    SetData {
        /// The path of the node.
        path: String,
        /// The new data.
        data: Vec<u8>,
        /// `None`: any version.
        version: Option<i32>,
    },
    /// Deletes a node.
    Delete {
        /// The path of the node.
        path: String,
        /// `None`: any version.
        version: Option<i32>,
    },
}

/// The result of one operation of a transaction.
#[derive(Clone, Debug)]
pub enum WriteResult {
    /// A check that passed, or a delete.
    Done,
    /// The created node.
    Created(Created),
    /// The stat of the written node.
    Written(Stat),
}

impl WriteResult {
    /// The transaction, if this is the answer to a write of a node's data.
    pub(crate) fn written_zxid(&self) -> Option<Zxid> {
        match self {
            Self::Written(stat) => Some(stat.mzxid),
            Self::Done | Self::Created(_) => None,
        }
    }

    /// The time of the operation by the leader's clock, if the server sent it.
    pub(crate) fn time(&self) -> Option<i64> {
        match self {
            Self::Done => None,
            Self::Created(created) => created.stat.map(|stat| stat.ctime),
            Self::Written(stat) => Some(stat.mtime),
        }
    }
}
