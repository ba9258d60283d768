//! The seam under the manager, for the project's own simulation. **No part of the public interface**: it
//! changes without notice.
//!
//! A [`Backend`] stands for the ensemble and the network, a [`Environment`] for the machine. With both from
//! one seed, under tokio's paused time and on one thread, a run is the same every time: nothing here iterates
//! in the order of a random hash, and no `select!` throws dice.

use std::time::Duration;

use crate::session::lease::SessionLease;
use crate::time::boot::BootInstant;

pub use crate::environment::Environment;
pub use crate::wire::{
    Backend, Created, Link, MultiError, Reply, Watch, WatchEvent, Wire, WireError, WriteOp, WriteResult,
};
pub use uuid::Uuid;

/// What a lease's arithmetic makes of `confirmations` requests, 200 ms apart, each answered after 5 ms: until
/// when the session is safe. For those who measure it.
#[must_use]
pub fn lease_after(opened: BootInstant, confirmations: u32) -> BootInstant {
    let mut lease = SessionLease::new(Duration::from_secs(15), Duration::from_secs(2), opened);
    let mut now = opened;
    for _ in 0..confirmations {
        let replied = now.after(Duration::from_millis(5));
        lease.confirm(0, now, replied);
        now = now.after(Duration::from_millis(200));
        lease.is_valid(now);
    }
    lease.valid_until()
}
