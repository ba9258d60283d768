use parking_lot::Mutex;

use crate::session::Reservation;
use crate::wire::{Reply, Stat, Watch};

/// A watch that was requested, and its share of the watch budget.
pub(super) struct PendingWatch {
    // The mutex is needed only so that threads may share a ticket.
    pub(super) reply: Mutex<Reply<(Vec<u8>, Stat, Watch)>>,
    pub(super) room: Reservation,
    /// The connection that carried the request.
    pub(super) connection: Option<u64>,
    pub(super) path: String,
}
