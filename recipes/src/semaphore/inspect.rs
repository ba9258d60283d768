use lockkeeper_core::{Error, Role};

use super::Semaphore;
use super::limit::{self, Limit};
use crate::inspection::{Inspection, RecipeKind, holders_first, waiting};

impl Semaphore {
    /// Who holds permits, one entry for each, who waits for some, how many there are and how many are free: a snapshot, see
    /// [`Inspection`]. Needs no place in the line, and the right to read alone.
    ///
    /// The limit is the one in force: the shared one, or the fixed one recorded with the leases, else this object's own. All
    /// children of the leases' directory count, as Curator counts them.
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
        let limit = self.limit_in_force().await?;
        // The line first: who takes permits meanwhile is seen with them, and not twice.
        let mut lists = self.queue.inspect_with(std::slice::from_ref(&self.leases_queue)).await?.into_iter();
        let (queue, leases) = (lists.next().unwrap_or_default(), lists.next().unwrap_or_default());
        let leases = leases.into_iter().map(|lease| lease.with_role(Role::Holder));
        let contenders = holders_first(leases.chain(waiting(queue)).collect());
        Ok(Inspection { what: RecipeKind::Semaphore, path: self.path.clone(), limit, contenders })
    }

    async fn limit_in_force(&self) -> Result<Option<usize>, Error> {
        match &self.limit {
            Limit::Shared(shared) => match shared.read().await {
                Ok(limit) => Ok(Some(limit)),
                Err(Error::NoLimit { .. }) => Ok(None),
                Err(error) => Err(error),
            },
            Limit::Fixed(fixed) => {
                let recorded = self.manager.znodes().read(&self.leases).await?;
                let recorded = recorded.and_then(|(data, _)| limit::decode(&data));
                Ok(Some(recorded.unwrap_or_else(|| fixed.permits())))
            }
        }
    }
}
