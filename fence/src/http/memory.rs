use std::collections::HashMap;
use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;

use lockkeeper_lock::FencingToken;
use parking_lot::Mutex;
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

use super::store::FenceStore;
use crate::error::{FenceError, Stale, checked_name};
use crate::marks::Marks;

/// The newest tokens in the memory of one process, for a service that is one process, and whose data lives
/// and ends with it.
///
/// Requests for one resource are served one after another, each until its answer: so the check is exact, also
/// against a late request that was admitted and has yet to write. Work that a request has left to another
/// task is not protected. A resource that has been seen takes memory until the process ends.
#[derive(Default)]
pub struct MemoryStore {
    resources: Mutex<HashMap<String, Arc<AsyncMutex<Marks>>>>,
}

impl MemoryStore {
    /// A store that has seen no token.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

impl Debug for MemoryStore {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("MemoryStore").field("resources", &self.resources.lock().len()).finish()
    }
}

impl FenceStore for MemoryStore {
    type Admission = OwnedMutexGuard<Marks>;

    async fn admit(&self, resource: &str, token: FencingToken) -> Result<Self::Admission, FenceError> {
        checked_name(resource)?;
        let marks = Arc::clone(self.resources.lock().entry(resource.to_owned()).or_default());
        let mut marks = marks.lock_owned().await;
        *marks = marks.write(token).map_err(|newer| Stale::new(resource, token, newer))?;
        Ok(marks)
    }
}
