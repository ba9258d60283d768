//! The metadata of a node.

use super::Reader;
use crate::error::HarnessError;

/// A node's statistics, in ZooKeeper's own names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "named as in ZooKeeper")]
pub struct Stat {
    pub czxid: i64,
    pub mzxid: i64,
    pub ctime: i64,
    pub mtime: i64,
    pub version: i32,
    pub cversion: i32,
    pub aversion: i32,
    /// The session of an ephemeral node; 0 for any other. The server's own marks of containers and times to
    /// live are not shown to clients.
    pub ephemeral_owner: i64,
    pub data_length: i32,
    pub num_children: i32,
    pub pzxid: i64,
}

impl Stat {
    pub(crate) fn decode(reader: &mut Reader<'_>) -> Result<Self, HarnessError> {
        Ok(Self {
            czxid: reader.long()?,
            mzxid: reader.long()?,
            ctime: reader.long()?,
            mtime: reader.long()?,
            version: reader.int()?,
            cversion: reader.int()?,
            aversion: reader.int()?,
            ephemeral_owner: reader.long()?,
            data_length: reader.int()?,
            num_children: reader.int()?,
            pzxid: reader.long()?,
        })
    }
}
