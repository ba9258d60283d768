/// Which request confirms the session while something is held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum LeaseRenewal {
    /// A transaction of checks on every held node: the quorum answers, and a node deleted by hand is found
    /// out.
    #[default]
    Quorum,
    /// A `sync`. Weaker: a leader that was deposed and does not know it answers alone, so **promises 1 and 2
    /// are not given** (one valid guard at a time, lost before anyone else is granted). It saves a write for
    /// each confirmation.
    Sync,
}
