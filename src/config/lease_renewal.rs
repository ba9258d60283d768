/// Which request confirms the session while a lock is held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum LeaseRenewal {
    /// A transaction of checks on every held node. The quorum answers it, and it detects a node that was
    /// deleted by hand.
    #[default]
    Quorum,
    /// A `sync`. It is weaker: a deposed leader that does not know of its successor answers it alone, so
    /// **promises 1 and 2 are not given** (at most one valid guard at a time; a loss is known before the next
    /// grant). It saves a write per confirmation.
    Sync,
}
