use parking_lot::Mutex;

use crate::session::Reservation;
use crate::wire::{Reply, Stat, Watch};

/// A watch that was requested, and its share of the watch budget.
pub(super) struct PendingWatch {
    // In a lock only so that a ticket may be shared between threads.
    pub(super) reply: Mutex<Reply<(Vec<u8>, Stat, Watch)>>,
    pub(super) room: Reservation,
    /// The connection it was asked on.
    pub(super) connection: Option<u64>,
    pub(super) path: String,
}
