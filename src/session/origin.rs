use crate::wire::Stat;

/// What is known about the create of a node.
///
/// A connection carries the session of a node if the node is listed among the connection's own nodes, or if
/// the connection created the node. The reverse proves nothing: a node that an earlier connection created may
/// belong to another session, and any connection can read any node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin {
    /// The connection just before the create was sent, if its answer came. The create may have been sent over
    /// a later connection. In that case the later one is not the present one, either.
    pub(crate) created_on: Option<u64>,
    /// Whether the owner of the node was compared with the session.
    pub(crate) is_owner_seen: bool,
    /// The time of the create by the servers' clock, in milliseconds since 1970. `None` if no answer to the
    /// create had it.
    pub(crate) created_at: Option<i64>,
}

impl Origin {
    /// The create over this connection was answered, and has shown this stat.
    pub(crate) fn answered(connection: Option<u64>, stat: Option<&Stat>) -> Self {
        let created_at = stat.map(|stat| stat.ctime);
        Self { created_on: connection, is_owner_seen: stat.is_some(), created_at }
    }

    /// The node was found by a search, with this session as its owner.
    pub(crate) const FOUND: Self = Self { created_on: None, is_owner_seen: true, created_at: None };
}
