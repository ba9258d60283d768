use lockkeeper_core::{Error, LockQueue};

use super::{Layout, Mutex};
use crate::inspection::{Inspection, RecipeKind};

impl Mutex {
    /// Who holds the lock, who waits for it, and since when: a snapshot, see [`Inspection`]. Needs no place in the line, and the
    /// right to read alone. In the layout of a semaphore the holder is its lease.
    ///
    /// # Errors
    ///
    /// As [`LockQueue::inspect`](lockkeeper_core::LockQueue::inspect): [`Error::Timeout`], [`Error::Refused`] (no right to list),
    /// [`Error::NoAnswer`] (the link broke: ask again) and [`Error::Closed`].
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: nothing is changed.
    pub async fn inspect(&self) -> Result<Inspection, Error> {
        match &self.layout {
            Layout::Queue(queue) => of_line(queue).await,
            Layout::Semaphore(semaphore) => {
                Ok(Inspection { what: RecipeKind::Mutex, limit: None, ..semaphore.inspect().await? })
            }
        }
    }
}

/// What is seen of a mutex in the layout of one line.
pub(crate) async fn of_line(queue: &LockQueue) -> Result<Inspection, Error> {
    let contenders = queue.inspect().await?;
    Ok(Inspection { what: RecipeKind::Mutex, path: queue.directory().clone(), limit: None, contenders })
}
