use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;

use super::{Acl, Owner, Stat};

/// One node: data, access list, children and counters.
#[derive(Debug, Clone)]
pub struct Node {
    /// The data; `None` is the wire's null, which differs from empty.
    pub data: Option<Bytes>,
    /// The access list. Empty means that any client may do anything.
    pub acl: Arc<[Acl]>,
    /// The end of the node's life.
    pub owner: Owner,
    /// Names (not paths) of the children.
    pub children: BTreeSet<String>,
    /// Children ever created: the counter that sequential names are made from.
    ///
    /// Clients never see it. Their `cversion` counts deletions too and is derived in [`Node::stat`].
    pub created_children: i32,
    /// Writes of the children's data, where they count in `cversion`.
    pub(super) written_children: i32,
    pub(super) czxid: i64,
    pub(super) mzxid: i64,
    pub(super) pzxid: i64,
    pub(super) ctime: i64,
    pub(super) mtime: i64,
    pub(super) version: i32,
    pub(super) aversion: i32,
}

impl Node {
    pub(super) fn new(data: Option<Bytes>, acl: Arc<[Acl]>, owner: Owner, zxid: i64, time: i64) -> Self {
        Self {
            data,
            acl,
            owner,
            children: BTreeSet::new(),
            created_children: 0,
            written_children: 0,
            czxid: zxid,
            mzxid: zxid,
            pzxid: zxid,
            ctime: time,
            mtime: time,
            version: 0,
            aversion: 0,
        }
    }

    /// The metadata as a client sees it.
    pub fn stat(&self) -> Stat {
        let num_children = i32::try_from(self.children.len()).unwrap_or(i32::MAX);
        Stat {
            czxid: self.czxid,
            mzxid: self.mzxid,
            ctime: self.ctime,
            mtime: self.mtime,
            version: self.version,
            // Every creation but those of the present children was followed by one deletion.
            cversion: (self.created_children.wrapping_mul(2).wrapping_sub(num_children))
                .wrapping_add(self.written_children),
            aversion: self.aversion,
            ephemeral_owner: self.owner.session(),
            data_length: self.data.as_ref().map_or(0, |data| i32::try_from(data.len()).unwrap_or(i32::MAX)),
            num_children,
            pzxid: self.pzxid,
        }
    }
}
