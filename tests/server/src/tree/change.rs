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
        /// The end of its life.
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

/// The effect of a change on watchers.
///
/// It has the access lists of the changed nodes: a client that may not read a node gets no event
/// (CVE-2024-23944, fixed in 3.8.4 and in Debian's 3.8.0).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// The node was made.
    Created {
        /// Path of the node.
        path: String,
        /// Its access list.
        acl: Arc<[Acl]>,
        /// The parent's.
        parent_acl: Arc<[Acl]>,
    },
    /// The node was removed.
    Deleted {
        /// Path of the node.
        path: String,
        /// The access list it had.
        acl: Arc<[Acl]>,
        /// The parent's.
        parent_acl: Arc<[Acl]>,
    },
    /// The data of the node was set, perhaps to the same bytes.
    DataChanged {
        /// Path of the node.
        path: String,
        /// Its access list.
        acl: Arc<[Acl]>,
    },
    /// Nothing that a watch could see.
    Unseen,
}
