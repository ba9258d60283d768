use lockkeeper_core::{Error, LockQueue};

use super::handle::{Mutex, MutexLayout};
use crate::inspection::{InspectedRecipe, Inspection};

const RECIPE: InspectedRecipe = InspectedRecipe { name: "mutex", counted: None };

impl Mutex {
    /// Returns the holders and the waiters of the lock, with their ages: a snapshot, see [`Inspection`]. It
    /// enters no queue, and needs only the right to read. In the layout of a semaphore, the lease is the
    /// holder.
    ///
    /// # Errors
    ///
    /// As [`LockQueue::inspect`](lockkeeper_core::LockQueue::inspect): [`Error::Timeout`], [`Error::Refused`]
    /// (no right to list), [`Error::NoAnswer`] (the link broke: call again) and [`Error::Closed`].
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the call changes nothing.
    pub async fn inspect(&self) -> Result<Inspection, Error> {
        match &self.layout {
            MutexLayout::Queue(queue) => of_queue(queue).await,
            MutexLayout::Semaphore(semaphore) => {
                Ok(Inspection { recipe: RECIPE, limit: None, ..semaphore.inspect().await? })
            }
        }
    }
}

/// The inspection of a mutex in the layout of one queue.
pub(crate) async fn of_queue(queue: &LockQueue) -> Result<Inspection, Error> {
    let contenders = queue.inspect().await?;
    Ok(Inspection::of(RECIPE, queue.manager(), queue.directory(), None, contenders))
}
