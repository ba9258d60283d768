use std::fmt::{self, Debug, Formatter};
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio_util::sync::DropGuard;

use super::connection_manager::ConnectionManager;
use super::shared::{Handle, ManagerInner};

/// A handle to a [`ConnectionManager`] that does not keep it alive: see [`ConnectionManager::downgrade`].
#[derive(Clone)]
pub struct WeakConnectionManager {
    shared: Weak<ManagerInner>,
    last_clone: Weak<DropGuard>,
    operation_timeout: Duration,
}

impl ConnectionManager {
    /// A handle that does not keep the manager alive.
    ///
    /// For recipe authors: for a task that runs while no call waits for it.
    #[must_use]
    pub fn downgrade(&self) -> WeakConnectionManager {
        WeakConnectionManager {
            shared: Arc::downgrade(&self.0.shared),
            last_clone: Arc::downgrade(&self.0.last_clone),
            operation_timeout: self.0.operation_timeout,
        }
    }

    /// The earliest present time of the servers, in milliseconds since 1970, by the answer to the last write
    /// of the present session and the steady clock of this machine. `None` before the first write.
    ///
    /// For recipe authors: an estimate, for how long to wait. Another leader may have another clock. What
    /// must be exact rests on the time of a write: see [`Hold::server_time`](crate::Hold::server_time).
    #[must_use]
    pub fn estimated_server_time(&self) -> Option<i64> {
        self.present_session()?.server_time()
    }
}

impl WeakConnectionManager {
    /// The manager, if another handle keeps it alive.
    #[must_use]
    pub fn upgrade(&self) -> Option<ConnectionManager> {
        let (shared, last_clone) = (self.shared.upgrade()?, self.last_clone.upgrade()?);
        let operation_timeout = self.operation_timeout;
        Some(ConnectionManager(Arc::new(Handle { shared, operation_timeout, last_clone })))
    }
}

impl Debug for WeakConnectionManager {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("WeakConnectionManager").finish_non_exhaustive()
    }
}
