use bytes::Bytes;

use super::{Create, ErrorCode};
use crate::tree::Stat;

/// One operation of a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WriteOp {
    /// Make a node.
    Create(Create),
    /// Delete a node of that version (−1: any).
    Delete {
        /// Path of the node.
        path: String,
        /// Expected version.
        version: i32,
    },
    /// Set the data of a node of that version (−1: any).
    SetData {
        /// Path of the node.
        path: String,
        /// The new data.
        data: Option<Bytes>,
        /// Expected version.
        version: i32,
    },
    /// Check that a node exists in that version (−1: any).
    Check {
        /// Path of the node.
        path: String,
        /// Expected version.
        version: i32,
    },
}

impl WriteOp {
    /// The path it names.
    pub fn path(&self) -> &str {
        match self {
            Self::Create(create) => &create.path,
            Self::Delete { path, .. } | Self::SetData { path, .. } | Self::Check { path, .. } => path,
        }
    }
}

/// Result of one operation of a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WriteResult {
    /// A node was created; some releases return its metadata and some do not.
    Created {
        /// Path, sequence number included.
        path: String,
        /// Metadata of the node.
        stat: Option<Stat>,
    },
    /// A node was deleted.
    Deleted,
    /// Data was set.
    DataSet(Stat),
    /// The check held.
    Checked,
    /// The transaction failed. `None` marks the operations before the one that failed it.
    Failed(Option<ErrorCode>),
}

/// One operation of a multi-read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReadOp {
    /// Read data and metadata.
    Data(String),
    /// List children.
    Children(String),
}

impl ReadOp {
    /// The path it names.
    pub fn path(&self) -> &str {
        match self {
            Self::Data(path) | Self::Children(path) => path,
        }
    }
}

/// Result of one operation of a multi-read. Each fails by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReadResult {
    /// Data and metadata.
    Data(Option<Bytes>, Stat),
    /// Names of children.
    Children(Vec<String>),
    /// This operation failed.
    Failed(ErrorCode),
}
