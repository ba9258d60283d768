use std::any::Any;
use std::sync::Arc;

use super::{OwnedNode, Session};
use crate::time::boot::BootInstant;

/// The state that another part of the library keeps for a session, and the events that the session reports to
/// it.
pub(crate) trait SessionTable: Any + Send + Sync {
    /// The node is lost. Called without a lock of the session or of the node.
    fn node_lost(&self, node: &OwnedNode);
    fn is_empty(&self) -> bool;
    /// Removes what has not been used since this instant.
    fn forget_idle(&self, since: BootInstant);
    /// The session is over, and all of its nodes are lost.
    fn session_ended(&self);
}

impl Session {
    /// The table of this session. It has the type that the first call names.
    pub(crate) fn table<T: SessionTable + Default>(&self) -> Arc<T> {
        let table = self.0.table.get_or_init(|| Arc::<T>::default());
        let table: Arc<dyn Any + Send + Sync> = Arc::<dyn SessionTable>::clone(table);
        table.downcast().unwrap_or_default()
    }

    pub(super) fn existing_table(&self) -> Option<&dyn SessionTable> {
        self.0.table.get().map(|table| &**table)
    }
}
