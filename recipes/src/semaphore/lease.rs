use lockkeeper_core::{Hold, ReleaseError};

use crate::lock::{Guard, HoldSet, SingleHold};

/// One or more held permits of a [`Semaphore`](super::Semaphore).
///
/// All its permits are held or lost together. Its fencing token is unique, and has no order: several holders
/// exist at the same time. A release of the lease releases all its permits, by one round trip.
///
/// A drop of the lease releases all its permits in the background.
pub type Lease = Guard<PermitsHold>;

/// The hold of one or more permits.
#[derive(Debug)]
pub struct PermitsHold(pub(super) Hold);

impl Lease {
    pub(super) fn new(hold: Hold) -> Self {
        Self::of(PermitsHold(hold))
    }

    pub(crate) fn into_hold(self) -> Hold {
        self.holds.0
    }

    /// The number of permits of this lease.
    #[must_use]
    pub fn permits(&self) -> usize {
        self.hold().node_count()
    }
}

impl HoldSet for PermitsHold {
    fn first(&self) -> &Hold {
        &self.0
    }
}

impl SingleHold for PermitsHold {
    async fn into_hold(self) -> Result<Option<Box<Hold>>, ReleaseError> {
        Ok(Some(Box::new(self.0)))
    }
}
