use lockkeeper_core::Error;

use super::lock::RwLock;
use crate::inspection::{Inspection, RecipeKind, holders_first};

impl RwLock {
    /// Who reads or writes, who waits to, and since when: a snapshot, see [`Inspection`]. Needs no place in the line, and the
    /// right to read alone.
    ///
    /// By the line's rule alone: a writer that has [upgraded](super::ReadGuard::try_upgrade), and whose owner still keeps older
    /// read guards, is shown to wait for them. A writer that also reads is shown twice.
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
        let (read, write) = self.queues();
        let contenders = read.inspect_with(std::slice::from_ref(write)).await?.pop().unwrap_or_default();
        let contenders = holders_first(contenders);
        Ok(Inspection { what: RecipeKind::RwLock, path: self.path().clone(), limit: None, contenders })
    }
}
