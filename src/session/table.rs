use std::any::Any;

use crate::time::boot::BootInstant;

/// The state that another part of the library keeps for a session, and the events that the session reports to
/// it.
pub(crate) trait SessionTable: Any + Send + Sync {
    /// The node is lost. Called without a lock of the session or of the node.
    fn node_lost(&self, path: &str, number: u64);
    fn is_empty(&self) -> bool;
    /// Removes what has not been used since this instant.
    fn forget_idle(&self, since: BootInstant);
    /// The session is over, and all of its nodes are lost.
    fn session_ended(&self);
}
