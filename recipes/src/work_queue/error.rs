use lockkeeper_core::{ErrorKind, RecipeError, WholePath};
use thiserror::Error;

/// What only a work queue can meet. [`Error::recipe`](crate::Error::recipe) has it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum WorkQueueError {
    /// The queue has no room for the items: nothing was put. Put them again when items were done.
    #[error("{path} has {items} items and room for {capacity}; put again when some were done")]
    Full {
        /// The path of the queue.
        path: WholePath,
        /// The number of items at that moment.
        items: u32,
        /// The number of items that it has room for.
        capacity: u32,
    },
    /// The data of an item is no value of the queue's type. The item stays in its place, and is not claimed.
    /// This process takes other items, and reads that one again after a minute.
    #[error("the data of the item {path} is no value of this queue ({cause}); put it right, or delete it")]
    Unreadable {
        /// The path of the item.
        path: WholePath,
        /// The error of the codec.
        cause: String,
    },
    /// The item does not exist any more, although its claim is valid: another client has deleted it. Nothing
    /// was written.
    #[error("nothing was written: the item {path} was deleted by another client")]
    Deleted {
        /// The path of the item.
        path: WholePath,
    },
    /// The claim of the item does not exist any more: another client has deleted it, and may have taken the
    /// item. Nothing was written. Only in the [layouts of other clients](crate::WorkQueue::in_kazoo_layout),
    /// whose takers may delete the claim of another after a lost answer.
    #[error("nothing was written: the claim of the item {path} was deleted by another client")]
    ClaimDeleted {
        /// The path of the item.
        path: WholePath,
    },
}

impl RecipeError for WorkQueueError {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Recipe
    }

    fn is_transient(&self) -> bool {
        matches!(self, Self::Full { .. })
    }
}
