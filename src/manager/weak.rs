use std::fmt::{self, Debug, Formatter};
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio_util::sync::{CancellationToken, DropGuard};

use super::connection_manager::ConnectionManager;
use super::shared::{Handle, ManagerInner};

/// A handle to a [`ConnectionManager`] that does not keep it alive: see
/// [`ManagerExt::downgrade`](crate::ManagerExt::downgrade).
#[derive(Clone)]
pub struct WeakConnectionManager {
    shared: Weak<ManagerInner>,
    last_clone: Weak<DropGuard>,
    closing: CancellationToken,
    operation_timeout: Duration,
}

impl ConnectionManager {
    pub(crate) fn downgrade(&self) -> WeakConnectionManager {
        WeakConnectionManager {
            shared: Arc::downgrade(&self.0.shared),
            last_clone: Arc::downgrade(&self.0.last_clone),
            closing: self.0.shared.closing.clone(),
            operation_timeout: self.0.operation_timeout,
        }
    }
}

impl WeakConnectionManager {
    /// Resolves when the manager is shut down, or its last handle is dropped.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: a later call resolves as well.
    pub async fn ended(&self) {
        self.closing.cancelled().await;
    }

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
