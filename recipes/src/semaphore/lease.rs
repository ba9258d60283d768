use std::ops::Deref;
use std::time::{Duration, SystemTime};

use lockkeeper_core::{Hold, ReleaseError, Stat};

/// Permits of a [`Semaphore`](super::Semaphore) that are held. What it can do is told by [`Hold`], to which it
/// dereferences: `is_valid()`, `lost()`, `valid_until()`, `fencing_token()`, `txn()`, `run()`.
///
/// All its permits are held or lost together. Its fencing token is no other lease's, and says nothing about who came
/// first: others hold permits at the same time.
///
/// Dropping it gives all its permits back in the background.
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

    /// How many permits it is.
    #[must_use]
    pub fn permits(&self) -> usize {
        self.0.node_count()
    }

    /// Gives all its permits back and waits until the server has taken them. One round trip.
    ///
    /// # Errors
    ///
    /// As [`Hold::release`].
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: it goes on in the background.
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

/// One permit that is out, as the server knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeaseInfo {
    /// The name of its node.
    pub name: String,
    /// What its holder wrote into it: for people, see [`Semaphore::node_data`](super::Semaphore::node_data).
    pub data: Vec<u8>,
    /// The session it goes with.
    pub session: i64,
    /// The transaction that made it: the same for all permits of one lease.
    pub czxid: u64,
    /// Since when it is out, by the servers' clock.
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
