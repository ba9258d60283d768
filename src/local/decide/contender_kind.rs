use crate::znode::name::Kind;

/// How contenders wait for each other, where sequence numbers give the order. The local queue knows nothing
/// else of their rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ContenderKind {
    /// Waits for every node ahead. Nodes of another such kind are of another recipe.
    Lock(Kind),
    /// Waits for the writers ahead.
    Read,
    /// Waits for every node ahead. Behind a writer a reader's node may appear late, ahead of others.
    Write,
}

impl ContenderKind {
    /// Whether `next`, which waits for a head of this kind, has no predecessor any more once that head is
    /// deleted.
    ///
    /// A writer always lists: next to a released reader other readers may exist, and a reader may have
    /// replaced a released writer.
    pub(crate) fn hands_off_to(self, next: Self) -> bool {
        match (self, next) {
            (Self::Lock(kind), Self::Lock(next)) => kind == next,
            (head, next) => (head, next) == (Self::Write, Self::Read),
        }
    }

    /// Whether the sequence number of the one kind proves anything to a contender of the other. If not, a
    /// list shows that two recipes use one path.
    pub(crate) fn shares_rule_with(self, other: Self) -> bool {
        match (self, other) {
            (Self::Lock(kind), Self::Lock(other)) => kind == other,
            (Self::Lock(_), _) | (_, Self::Lock(_)) => false,
            _ => true,
        }
    }
}
