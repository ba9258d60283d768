//! The acquire of permits: the contender queues, and takes its permits at the head of the queue.

use lockkeeper_core::{ConfigError, ConnectionManager, Deadline, Error, Hold, LockQueue};

use super::handle::Semaphore;
use super::limit::PermitLimit;
use super::permit_acquire::PermitRequest;
use super::{Lease, SemaphoreError};
use crate::limits;
use crate::lock::at_head::{self, AtHead, HeadLimit, NotTaken};
use crate::owner::{self, Holding, Owner, OwnerRegistry};

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
    pub(super) fn lease(&self, hold: Hold) -> Lease {
        let entry = Owner::current()
            .map(|owner| OwnerRegistry::of(&self.manager).enter(&self.path, &owner, Holding::Permits, &hold));
        Lease::new(entry, hold)
    }

    /// Waits until `deadline`, or only tries if the deadline leaves no time to wait.
    pub(crate) async fn acquire_by(&self, permits: u32, deadline: Deadline) -> Result<Lease, Error> {
        self.check(permits)?;
        at_head::acquire(&self.request(permits), deadline).await
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
            (Ok(lease), _) => Ok(Some(lease)),
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
