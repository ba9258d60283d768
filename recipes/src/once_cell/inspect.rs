use lockkeeper_core::Error;

use super::handle::OnceCell;
use crate::inspection::{InspectedRecipe, Inspection};

const RECIPE: InspectedRecipe = InspectedRecipe { name: "once cell", counted: None };

impl OnceCell {
    /// Returns the initialiser and the waiters: a snapshot, see [`Inspection`]. Once there is a value, nobody
    /// is in the queue. It needs only the right to read.
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
        let contenders = self.queue.inspect().await?;
        Ok(Inspection::of(RECIPE, self.manager(), &self.path, None, contenders))
    }
}
