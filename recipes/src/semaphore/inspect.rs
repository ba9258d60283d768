use lockkeeper_core::{ConnectionManager, Error, Role, ZnodePath};

use super::SemaphoreError;
use super::encoding::decode;
use super::handle::Semaphore;
use super::limit::PermitLimit;
use crate::inspection::{InspectedRecipe, Inspection, PERMITS, holders_first, waiting};

const RECIPE: InspectedRecipe = InspectedRecipe { name: "semaphore", counted: Some(PERMITS) };

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
        self.inspect_with(self.limit_in_force().await?).await
    }

    /// The inspection of the semaphore at `path`, whose limit only its users know. `None` as the limit if it
    /// is not recorded with the leases.
    pub(crate) async fn inspect_at(
        manager: &ConnectionManager,
        path: ZnodePath,
    ) -> Result<Inspection, Error> {
        let semaphore = Self::at(manager, path, PermitLimit::fixed(1)?)?;
        let recorded = semaphore.recorded_limit().await?;
        semaphore.inspect_with(recorded).await
    }

    async fn inspect_with(&self, limit: Option<u32>) -> Result<Inspection, Error> {
        // The queue is listed first: a contender that takes permits meanwhile is shown as a holder, and not
        // twice.
        let mut lists = self.queue.inspect_with(std::slice::from_ref(&self.leases_queue)).await?.into_iter();
        let (queue, leases) = (lists.next().unwrap_or_default(), lists.next().unwrap_or_default());
        let leases = leases.into_iter().map(|lease| lease.with_role(Role::Holder));
        let contenders = holders_first(leases.chain(waiting(queue)).collect());
        Ok(Inspection::of(RECIPE, &self.manager, &self.path, limit, contenders))
    }

    async fn limit_in_force(&self) -> Result<Option<u32>, Error> {
        match &self.limit {
            PermitLimit::Shared(shared) => match shared.get().await {
                Ok(limit) => Ok(Some(limit)),
                Err(error) if matches!(error.recipe(), Some(SemaphoreError::NoLimit { .. })) => Ok(None),
                Err(error) => Err(error),
            },
            PermitLimit::Fixed(fixed) => {
                Ok(Some(self.recorded_limit().await?.unwrap_or_else(|| fixed.permits())))
            }
        }
    }

    /// The limit that is recorded with the leases.
    async fn recorded_limit(&self) -> Result<Option<u32>, Error> {
        let recorded = self.manager.znodes().read(&self.leases).await?;
        Ok(recorded.and_then(|(data, _)| decode(&data)))
    }
}
