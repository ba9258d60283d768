use lockkeeper_core::Error;

use super::ReentrantMutex;
use crate::inspection::Inspection;
use crate::mutex;

impl ReentrantMutex {
    /// Who holds the lock, who waits for it, and since when: a snapshot, see [`Inspection`]. Needs no place in the line, and the
    /// right to read alone. All guards of an owner are one holder.
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
        mutex::of_line(&self.queue).await
    }
}
