//! The interface below the manager, for the project's own simulation. **Not part of the public API**: it
//! changes without notice.
//!
//! A [`Backend`] replaces the ensemble and the network, an [`Environment`] the machine. If both follow one
//! seed, under tokio's paused time and on one thread, every run is the same: no code here iterates in the
//! order of a random hash, and no `select!` polls in a random order.

use std::time::Duration;

use crate::session::SessionLease;
use crate::time::boot::BootInstant;

pub use crate::environment::Environment;
pub use crate::wire::{
    Backend, ChangedPaths, Created, Data, Link, MultiError, Reply, Watch, WatchDepth, WatchEvent, Wire,
    WireError, WriteOp, WriteResult,
};
pub use uuid::Uuid;

/// The end of the lease after `confirmations` requests, sent 200 ms apart and each answered after 5 ms. For
/// benchmarks.
#[must_use]
pub fn lease_after(opened: BootInstant, confirmations: u32) -> BootInstant {
    let mut lease = SessionLease::new(Duration::from_secs(15), Duration::from_secs(2), opened);
    let mut now = opened;
    for _ in 0..confirmations {
        let replied = now.after(Duration::from_millis(5));
        lease.confirm(0, now, replied);
        now = now.after(Duration::from_millis(200));
    }
    lease.valid_until()
}
