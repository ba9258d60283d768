use std::sync::Arc;

use bytes::Bytes;

use super::{Acl, Owner};

/// One checked modification of the tree. Applying it does not check permissions or versions again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Make a node.
    Create {
        /// Final path, sequence number included.
        path: String,
        /// Data of the node.
        data: Option<Bytes>,
        /// Access list, already expanded.
        acl: Arc<[Acl]>,
        /// What ends its life.
        owner: Owner,
        /// The parent's count of created children after this one.
        parent_created: i32,
    },
    /// Remove a node that has no children.
    Delete {
        /// Path of the node.
        path: String,
    },
    /// Replace the data of a node.
    SetData {
        /// Path of the node.
        path: String,
        /// The new data.
        data: Option<Bytes>,
        /// The version the node has afterwards.
        version: i32,
    },
    /// Replace the access list of a node.
    SetAcl {
        /// Path of the node.
        path: String,
        /// The new list, already expanded.
        acl: Arc<[Acl]>,
        /// The ACL version the node has afterwards.
        version: i32,
    },
}

/// What a change means to watchers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// The node was made.
    Created(String),
    /// The node was removed.
    Deleted(String),
    /// The data of the node was set, perhaps to the same bytes.
    DataChanged(String),
    /// Nothing that a watch could see.
    Unseen,
}
