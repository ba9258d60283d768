use lockkeeper_core::{Error, Role};

use super::encoding::decode;
use super::limit::Limit;
use super::{Semaphore, SemaphoreError};
use crate::inspection::{InspectedRecipe, Inspection, holders_first, waiting};

const RECIPE: InspectedRecipe = InspectedRecipe { name: "semaphore", counted: Some("permits out") };

impl Semaphore {
    /// Returns the holders (one entry for each permit), the waiters, the limit and the number of free
    /// permits: a snapshot, see [`Inspection`]. It enters no queue, and needs only the right to read.
    ///
    /// The limit is the shared one, or the fixed one that is recorded with the leases, or otherwise that of
    /// this object. All children of the leases' directory count, as in Curator.
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
        let limit = self.limit_in_force().await?;
        // The queue is listed first: a contender that takes permits meanwhile is shown as a holder, and not
        // twice.
        let mut lists = self.queue.inspect_with(std::slice::from_ref(&self.leases_queue)).await?.into_iter();
        let (queue, leases) = (lists.next().unwrap_or_default(), lists.next().unwrap_or_default());
        let leases = leases.into_iter().map(|lease| lease.with_role(Role::Holder));
        let contenders = holders_first(leases.chain(waiting(queue)).collect());
        Ok(Inspection::of(RECIPE, &self.manager, &self.path, limit, contenders))
    }

    async fn limit_in_force(&self) -> Result<Option<usize>, Error> {
        match &self.limit {
            Limit::Shared(shared) => match shared.read().await {
                Ok(limit) => Ok(Some(limit)),
                Err(error) if matches!(error.recipe(), Some(SemaphoreError::NoLimit { .. })) => Ok(None),
                Err(error) => Err(error),
            },
            Limit::Fixed(fixed) => {
                let recorded = self.manager.znodes().read(&self.leases).await?;
                let recorded = recorded.and_then(|(data, _)| decode(&data));
                Ok(Some(recorded.unwrap_or_else(|| fixed.permits())))
            }
        }
    }
}
