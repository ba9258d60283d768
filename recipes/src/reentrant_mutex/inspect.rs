use lockkeeper_core::Error;

use super::handle::ReentrantMutex;
use crate::inspection::Inspection;
use crate::mutex;
use crate::owner::Side;

impl ReentrantMutex {
    /// Returns the holders and the waiters of the lock, with their ages: a snapshot, see [`Inspection`]. It
    /// enters no queue, and needs only the right to read. All guards of an owner are one holder.
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
        mutex::of_queue(self.holds.queue(Side::Write)).await
    }
}
