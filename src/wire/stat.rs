use crate::znode::zxid::Zxid;

/// The server's record of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// The id of the transaction that created the node.
    pub czxid: Zxid,
    /// The id of the transaction that last wrote its data.
    pub mzxid: Zxid,
    /// The id of the transaction that last created or deleted a child of it.
    pub pzxid: Zxid,
    /// The creation time, in milliseconds since 1970 by the leader's clock.
    pub ctime: i64,
    /// The time of the last write of its data, by the same kind of clock.
    pub mtime: i64,
    /// The number of writes of its data.
    pub version: i32,
    /// The number of creates and deletes of its children (ZooKeeper's `cversion`).
    pub child_version: i32,
    /// The session that owns an ephemeral node; 0 for any other node.
    pub ephemeral_owner: i64,
    /// The size of its data in bytes.
    pub data_length: i32,
    /// The number of its children.
    pub children: i32,
}

impl Stat {
    /// Whether this is a persistent node that has or had children. A contender and a member never have any.
    #[must_use]
    pub fn is_directory(&self) -> bool {
        self.ephemeral_owner == 0 && (self.children > 0 || self.child_version != 0)
    }

    /// The number of children that were ever created in this node: the sequence number of the next sequential
    /// child, unless the counter is near its end.
    #[must_use]
    pub fn children_made(&self) -> i32 {
        // A child that no longer exists was created and deleted, so it counts twice. The sum is even, and may
        // have overflowed its 32 bits.
        let sum = u32::from_ne_bytes(self.child_version.wrapping_add(self.children).to_ne_bytes());
        i32::from_ne_bytes((sum / 2).to_ne_bytes())
    }
}
