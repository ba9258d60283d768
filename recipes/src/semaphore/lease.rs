use lockkeeper_core::{Hold, ReleaseError};

use crate::lock::{Guard, HoldAccess, HoldRelease};
use crate::owner::OwnerEntry;
use crate::sharing::HoldKind;

/// One or more held permits of a [`Semaphore`](super::Semaphore).
///
/// All its permits are held or lost together. Its fencing token is unique, and has no order: several holders
/// exist at the same time. A release of the lease releases all its permits, by one round trip.
///
/// A drop of the lease releases all its permits in the background.
///
/// # Methods
///
/// Those of every [`Guard`](crate::Guard), and [`permits`](Self::permits).
pub type Lease = Guard<PermitsHold>;

/// The hold of one or more permits.
#[derive(Debug)]
pub struct PermitsHold {
    // Dropped first. Boxed, or every task that takes permits would be larger.
    entry: Option<Box<OwnerEntry>>,
    held: HoldKind,
}

impl Lease {
    pub(super) fn new(entry: Option<OwnerEntry>, held: HoldKind) -> Self {
        Self::of(PermitsHold { entry: entry.map(Box::new), held })
    }

    pub(crate) fn into_held(self) -> HoldKind {
        drop(self.holds.entry);
        self.holds.held
    }

    /// The number of permits of this lease.
    #[must_use]
    pub fn permits(&self) -> u32 {
        self.hold().node_count()
    }
}

impl HoldAccess for PermitsHold {
    fn first(&self) -> &Hold {
        self.held.hold()
    }
}

impl HoldRelease for PermitsHold {
    async fn into_hold(self) -> Result<Option<Box<Hold>>, ReleaseError> {
        drop(self.entry);
        Ok(self.held.into_hold())
    }
}
