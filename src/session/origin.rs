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
}

impl Origin {
    /// The node was found by a search, with this session as its owner.
    pub(crate) const FOUND: Self = Self { created_on: None, is_owner_seen: true };
}
