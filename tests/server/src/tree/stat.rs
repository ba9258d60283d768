/// The metadata of a node, as a client sees it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stat {
    /// Transaction that created the node.
    pub czxid: i64,
    /// Transaction that last set its data.
    pub mzxid: i64,
    /// Creation time, milliseconds since the epoch.
    pub ctime: i64,
    /// Time of the last data change, milliseconds since the epoch.
    pub mtime: i64,
    /// Number of data changes.
    pub version: i32,
    /// Number of child creations and deletions.
    pub cversion: i32,
    /// Number of ACL changes.
    pub aversion: i32,
    /// Session that owns an ephemeral node; 0 for every other kind, containers and TTL nodes included.
    pub ephemeral_owner: i64,
    /// Length of the data in bytes.
    pub data_length: i32,
    /// Number of children.
    pub num_children: i32,
    /// Transaction that last created or deleted a child.
    pub pzxid: i64,
}
