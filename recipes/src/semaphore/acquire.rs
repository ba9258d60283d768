//! The acquire of permits: the contender queues, and takes its permits at the head of the queue.

use lockkeeper_core::{ConfigError, ConnectionManager, Deadline, Error, Hold, LockQueue, Phase};

use super::handle::Semaphore;
use super::limit::PermitLimit;
use super::permit_acquire::PermitRequest;
use super::{Lease, SemaphoreError};
use crate::limits;
use crate::lock::at_head::{self, AtHead, HeadLimit, NotTaken};
use crate::owner::{self, Holding, Owner, OwnerRegistry};
use crate::sharing::{HoldKind, SharingHandle};

impl Semaphore {
    /// The queue of the contenders for permits. Its head exchanges the hold of it for permits.
    pub(crate) fn queue(&self) -> LockQueue {
        let queue = if self.limit.is_to_be_read() { &self.queue_with_limit } else { &self.queue };
        queue.clone().with_node_data(owner::signed(&self.data))
    }

    /// The directory of the leases.
    pub(crate) fn leases_queue(&self) -> &LockQueue {
        &self.leases_queue
    }

    pub(crate) fn manager(&self) -> &ConnectionManager {
        &self.manager
    }

    /// The queue for a waiter: its node names what the owner in scope holds, and when it gives up.
    pub(crate) fn waiter_queue(&self, deadline: Deadline) -> LockQueue {
        let Some(owner) = Owner::current() else { return self.queue() };
        let data = OwnerRegistry::of(&self.manager).waiter_data(&self.data, &owner, deadline);
        self.queue().with_node_data(data)
    }

    /// The lease of a granted hold. The registry lists the lease among the holds of the owner in scope.
    pub(super) fn lease(&self, held: HoldKind) -> Lease {
        let entry = Owner::current().map(|owner| {
            OwnerRegistry::of(&self.manager).enter(&self.path, &owner, Holding::Permits, held.hold())
        });
        Lease::new(entry, held)
    }

    /// Waits until `deadline`, or only tries if the deadline leaves no time to wait.
    pub(crate) async fn acquire_by(&self, permits: u32, deadline: Deadline) -> Result<Lease, Error> {
        self.check(permits)?;
        match self.sharing_for(permits) {
            Some(sharing) => Box::pin(self.acquire_shared(sharing, deadline)).await,
            None => {
                let hold = at_head::acquire(&self.request(permits), deadline).await?;
                Ok(self.lease(hold.into()))
            }
        }
    }

    /// Takes the permits if they are free now. Otherwise says what a wait would wait for.
    pub(super) async fn try_by(&self, permits: u32) -> Result<Result<Lease, Phase>, Error> {
        self.check(permits)?;
        match self.sharing_for(permits) {
            Some(sharing) => Box::pin(self.try_shared(sharing)).await,
            None => {
                let tried = at_head::try_in_turn(&self.request(permits)).await?;
                Ok(tried.map(|hold| self.lease(hold.into())))
            }
        }
    }

    /// The nodes that this process keeps, for a request of one permit. A request for more is a contender of
    /// its own, and needs the permits that are idle.
    fn sharing_for(&self, permits: u32) -> Option<&SharingHandle> {
        let sharing = self.sharing.as_ref()?;
        if permits == 1 {
            return Some(sharing);
        }
        sharing.end_all_idle();
        None
    }

    async fn acquire_shared(&self, sharing: &SharingHandle, deadline: Deadline) -> Result<Lease, Error> {
        if deadline.is_immediate() {
            let tried = self.try_shared(sharing).await?;
            return tried.map_err(|phase| self.request(1).timeout_error(phase, deadline));
        }
        let hold = sharing.acquire_any(self.leases_queue.clone(), deadline).await?;
        Ok(self.lease(hold.into()))
    }

    async fn try_shared(&self, sharing: &SharingHandle) -> Result<Result<Lease, Phase>, Error> {
        let request = self.request(1);
        let tried = sharing.try_any(self.leases_queue.clone(), at_head::try_in_turn(&request)).await?;
        let behind = || Err(Phase::Recipe("waiting for other tasks of this process".into()));
        Ok(tried.unwrap_or_else(behind).map(|hold| self.lease(hold.into())))
    }

    /// Exchanges a hold of the queue that was granted together with others for permits. Waits for permits
    /// only if there is a deadline. Returns `None` if there are not enough permits, or the hold was lost.
    pub(crate) async fn enter(
        &self,
        hold: Hold,
        permits: u32,
        wait: Option<Deadline>,
    ) -> Result<Option<Lease>, Error> {
        self.check(permits)?;
        let request = self.request(permits);
        let limit = wait.map_or_else(|| HeadLimit::now(&self.manager), HeadLimit::wait);
        match (at_head::decide(&request, &mut Some(hold), limit).await, wait) {
            (Ok(hold), _) => Ok(Some(self.lease(hold.into()))),
            (Err(NotTaken::Failed(error)), _) => Err(error),
            (Err(NotTaken::NotNow(phase)), Some(deadline)) => Err(request.timeout_error(phase, deadline)),
            (Err(NotTaken::NotNow(_)), None) | (Err(NotTaken::Restart), _) => Ok(None),
        }
    }

    pub(super) fn request(&self, asked: u32) -> PermitRequest<'_> {
        PermitRequest { semaphore: self, asked }
    }

    /// Refuses a request that can never be granted, before anything is sent.
    pub(super) fn check(&self, asked: u32) -> Result<(), Error> {
        if asked == 0 {
            return Err(Error::Config(ConfigError::Setting {
                name: "permits",
                value: "0".to_owned(),
                advice: "ask for one or more",
            }));
        }
        match &self.limit {
            PermitLimit::Fixed(fixed) if asked > fixed.permits() => {
                Err(self.too_many(asked, fixed.permits()))
            }
            _ => limits::check("permits", asked, &self.path, &self.data),
        }
    }

    pub(super) fn too_many(&self, asked: u32, limit: u32) -> Error {
        SemaphoreError::TooManyPermits { path: self.whole_path(), asked, limit }.into()
    }
}
