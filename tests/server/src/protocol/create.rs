use bytes::Bytes;

use super::ErrorCode;
use crate::tree::Acl;

/// Which of the four create operations a client chose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CreateOp {
    /// Answers with the path.
    Create,
    /// Answers with path and metadata.
    Create2,
    /// Makes a container.
    Container,
    /// Makes a node with a time to live.
    Ttl,
}

/// The kind of node that the flags of a create request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CreateMode {
    /// Stays until deleted.
    Persistent,
    /// Goes with its session.
    Ephemeral,
    /// Persistent, named by the parent's counter.
    PersistentSequential,
    /// Ephemeral, named by the parent's counter.
    EphemeralSequential,
    /// Removed after its last child.
    Container,
    /// Goes when it was empty and unchanged for a time.
    PersistentTtl,
    /// The same, named by the parent's counter.
    PersistentSequentialTtl,
}

impl CreateMode {
    /// The mode that these flags mean.
    ///
    /// # Errors
    ///
    /// [`ErrorCode::BadArguments`] for flags that mean nothing.
    pub fn from_flags(flags: i32) -> Result<Self, ErrorCode> {
        match flags {
            0 => Ok(Self::Persistent),
            1 => Ok(Self::Ephemeral),
            2 => Ok(Self::PersistentSequential),
            3 => Ok(Self::EphemeralSequential),
            4 => Ok(Self::Container),
            5 => Ok(Self::PersistentTtl),
            6 => Ok(Self::PersistentSequentialTtl),
            _ => Err(ErrorCode::BadArguments),
        }
    }

    /// Whether the node ends with its session.
    pub fn is_ephemeral(self) -> bool {
        matches!(self, Self::Ephemeral | Self::EphemeralSequential)
    }

    /// Whether the parent's counter is appended to the name.
    pub fn is_sequential(self) -> bool {
        matches!(self, Self::PersistentSequential | Self::EphemeralSequential | Self::PersistentSequentialTtl)
    }

    /// Whether the node has a time to live.
    pub fn is_ttl(self) -> bool {
        matches!(self, Self::PersistentTtl | Self::PersistentSequentialTtl)
    }
}

/// A request to make a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Create {
    /// The operation chosen.
    pub op: CreateOp,
    /// Path, without the sequence number.
    pub path: String,
    /// Data of the node.
    pub data: Option<Bytes>,
    /// Access list as the client wrote it.
    pub acl: Vec<Acl>,
    /// Flags as the client wrote them.
    pub flags: i32,
    /// Time to live in milliseconds; −1 in operations that carry none.
    pub ttl: i64,
}
