/// The end of a node's life besides an explicit delete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// Nothing: a persistent node.
    Nobody,
    /// The end of this session: an ephemeral node.
    Session(i64),
    /// Becoming empty after having had children: a container.
    Container,
    /// Staying empty and unchanged for this many milliseconds.
    Ttl(i64),
}

impl Owner {
    /// The longest time to live the wire format has room for, in milliseconds.
    pub const MAX_TTL: i64 = (1 << 40) - 1;

    /// The session of an ephemeral node, 0 for every other kind: what `Stat` shows.
    pub fn session(self) -> i64 {
        match self {
            Self::Session(session) => session,
            Self::Nobody | Self::Container | Self::Ttl(_) => 0,
        }
    }

    /// Whether the node may not have children.
    pub fn is_ephemeral(self) -> bool {
        matches!(self, Self::Session(_))
    }
}
