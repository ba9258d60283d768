use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};

use lockkeeper_core::Epoch;
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::name::ItemName;

/// What the takers of one process know of items that another of its calls gives up.
#[derive(Default)]
pub(super) struct FreeItems {
    /// The items at whose claim paths the session of this epoch may have a node.
    claims: Mutex<HashSet<(Epoch, ItemName)>>,
    /// An item of this process is free again, at its old place.
    is_freed: AtomicBool,
    freed: Notify,
}

impl FreeItems {
    /// Reserves the claim path of an item for one claim of this session. `false` if there may be a node of
    /// this session already.
    pub(super) fn begin_claim(&self, epoch: Epoch, item: &ItemName) -> bool {
        self.claims.lock().insert((epoch, item.clone()))
    }

    /// No node of the session is at the claim path.
    pub(super) fn end_claim(&self, epoch: Epoch, item: &ItemName) {
        self.claims.lock().remove(&(epoch, item.clone()));
    }

    /// An item is free at its old place: tells one taker of this process.
    pub(super) fn announce(&self) {
        self.is_freed.store(true, Ordering::Release);
        self.freed.notify_one();
    }

    /// Resolves when an item is announced.
    pub(super) async fn announced(&self) {
        self.freed.notified().await;
    }

    /// Whether an item was announced since the last call.
    pub(super) fn take(&self) -> bool {
        self.is_freed.swap(false, Ordering::AcqRel)
    }
}
