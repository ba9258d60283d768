use lockkeeper_core::Error;

use super::lock::RwLock;
use crate::inspection::{InspectedRecipe, Inspection, holders_first};
use crate::owner::Side;

const RECIPE: InspectedRecipe = InspectedRecipe { name: "read/write lock", counted: None };

impl RwLock {
    /// Returns the readers, the writers and the waiters, with their ages: a snapshot, see [`Inspection`]. It
    /// enters no queue, and needs only the right to read.
    ///
    /// It applies the rule of the queue alone. So a writer that has
    /// [upgraded](super::ReadGuard::try_upgrade), and whose owner still keeps older read guards, is shown as
    /// waiting for them. A writer that also reads is shown twice.
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
        let (read, write) = (self.holds().queue(Side::Read), self.holds().queue(Side::Write));
        let contenders = read.inspect_with(std::slice::from_ref(write)).await?.pop().unwrap_or_default();
        let contenders = holders_first(contenders);
        Ok(Inspection::of(RECIPE, read.manager(), self.path(), None, contenders))
    }
}
