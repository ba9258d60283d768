use std::fmt::{self, Display, Formatter};
use std::sync::Arc;

use lockkeeper_core::{Hold, ReleaseError};
use tokio::sync::{mpsc, watch};

use crate::lock::{Guard, HoldAccess, HoldRelease};

/// An item of a [`Partition`](super::Partition) that this member has: no other member has it while the guard
/// is valid.
///
/// Wait for [`release_requested`](Self::release_requested) beside the work, finish or stop the work then, and
/// drop or [release](Self::release) the guard: the next member waits for that. A guard that is dropped while
/// the item is still this member's is taken again, and
/// [`PartitionMember::next`](super::PartitionMember::next) returns the item again.
///
/// # Methods
///
/// Those of every [`Guard`](crate::Guard), and [`item`](Self::item) and
/// [`release_requested`](Self::release_requested).
pub type AssignedItem = Guard<ItemHold>;

/// The hold of an item.
#[derive(Debug)]
pub struct ItemHold {
    // Dropped first: the item is free for this member's next hold only after this one.
    hold: Hold,
    link: ItemLink,
}

/// What connects the guard of an item with the task of its member.
#[derive(Debug)]
pub(super) struct ItemLink {
    pub(super) item: Arc<str>,
    pub(super) requested: watch::Receiver<Option<ReleaseReason>>,
    pub(super) ended: mpsc::UnboundedSender<Arc<str>>,
}

/// Why a member has to give up an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReleaseReason {
    /// The item belongs to another member now, which waits for it.
    Moved,
    /// The item was removed from the partition.
    Removed,
    /// This member leaves the partition, or its handle was dropped.
    Left,
    /// The hold was lost: another member may have the item already. Stop at once.
    Lost,
}

impl AssignedItem {
    pub(super) fn new(hold: Hold, link: ItemLink) -> Self {
        Self::of(ItemHold { hold, link })
    }

    /// The name of the item.
    #[must_use]
    pub fn item(&self) -> &str {
        &self.holds.link.item
    }

    /// Resolves when this member has to give up the item. Until then the work continues: an item that does
    /// not move is never interrupted, and one that moves is given up only when its next member waits for it.
    ///
    /// Except for [`ReleaseReason::Lost`] it is a request: the guard stays valid, and no other member gets
    /// the item, until this guard is dropped or released.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: a later call resolves with the same reason.
    pub async fn release_requested(&self) -> ReleaseReason {
        let mut requested = self.holds.link.requested.clone();
        tokio::select! {
            biased;
            _ = self.lost() => ReleaseReason::Lost,
            reason = requested.wait_for(Option::is_some) => {
                reason.ok().and_then(|reason| *reason).unwrap_or(ReleaseReason::Left)
            }
        }
    }
}

impl HoldAccess for ItemHold {
    fn first(&self) -> &Hold {
        &self.hold
    }
}

impl HoldRelease for ItemHold {
    async fn into_hold(self) -> Result<Option<Box<Hold>>, ReleaseError> {
        Ok(Some(Box::new(self.hold)))
    }
}

impl Drop for ItemLink {
    fn drop(&mut self) {
        // Without a task, the member has ended.
        let _ = self.ended.send(Arc::clone(&self.item));
    }
}

impl Display for ReleaseReason {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Moved => "the item belongs to another member now",
            Self::Removed => "the item was removed",
            Self::Left => "the member leaves",
            Self::Lost => "the hold was lost",
        })
    }
}
