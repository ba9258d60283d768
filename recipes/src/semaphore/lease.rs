use std::ops::Deref;
use std::time::{Duration, SystemTime};

use lockkeeper_core::{Hold, ReleaseError, Stat};

/// One or more held permits of a [`Semaphore`](super::Semaphore). It dereferences to [`Hold`], which has its
/// methods: `is_valid()`, `lost()`, `valid_until()`, `fencing_token()`, `txn()`, `run()`.
///
/// All its permits are held or lost together. Its fencing token is unique, and has no order: several holders
/// exist at the same time.
///
/// A drop of the lease releases all its permits in the background.
#[derive(Debug)]
#[must_use = "a lease that is not kept is given back at once"]
#[clippy::has_significant_drop]
pub struct Lease(Hold);

impl Lease {
    pub(super) fn new(hold: Hold) -> Self {
        Self(hold)
    }

    pub(crate) fn into_hold(self) -> Hold {
        self.0
    }

    /// The number of permits of this lease.
    #[must_use]
    pub fn permits(&self) -> usize {
        self.0.node_count()
    }

    /// Releases all its permits, and waits until the server has deleted their nodes. One round trip.
    ///
    /// # Errors
    ///
    /// As [`Hold::release`].
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the release continues in the background.
    pub async fn release(self) -> Result<(), ReleaseError> {
        self.0.release().await
    }
}

impl Deref for Lease {
    type Target = Hold;

    fn deref(&self) -> &Hold {
        &self.0
    }
}

/// One permit in use, as the server has it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeaseInfo {
    /// The name of the permit's node.
    pub name: String,
    /// The data that the holder wrote, for people: see [`Semaphore::node_data`](super::Semaphore::node_data).
    pub data: Vec<u8>,
    /// The session that owns the node.
    pub session: i64,
    /// The transaction that created the node: the same for all permits of one lease.
    pub czxid: u64,
    /// The time at which the node was created, by the servers' clock.
    pub since: SystemTime,
}

impl LeaseInfo {
    pub(super) fn new(name: String, data: Vec<u8>, stat: &Stat) -> Self {
        let since = Duration::from_millis(stat.ctime.max(0).unsigned_abs());
        Self {
            name,
            data,
            session: stat.ephemeral_owner,
            czxid: stat.czxid.unsigned_abs(),
            since: SystemTime::UNIX_EPOCH + since,
        }
    }
}
