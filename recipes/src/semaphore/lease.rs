use std::ops::Deref;

use lockkeeper_core::{Hold, ReleaseError};

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
