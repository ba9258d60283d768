use std::any::Any;
use std::sync::Arc;

use crate::time::boot::BootInstant;

/// What the oldest Rust does not do by itself: an `Arc<dyn Any>` of an `Arc<dyn SessionTable>`.
pub(crate) trait IntoAny {
    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;
}

impl<T: Any + Send + Sync> IntoAny for T {
    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}

/// The state that another part of the library keeps for a session, and the events that the session reports to
/// it.
pub(crate) trait SessionTable: IntoAny + Any + Send + Sync {
    /// The node is lost. Called without a lock of the session or of the node.
    fn node_lost(&self, path: &str, number: u64);
    fn is_empty(&self) -> bool;
    /// Removes what has not been used since this instant.
    fn forget_idle(&self, since: BootInstant);
    /// The session is over, and all of its nodes are lost.
    fn session_ended(&self);
}
