//! The head of the queue: it reads the leases, waits until enough permits are free, and takes them.

use lockkeeper_core::{
    Changes, ConnectionManager, Deadline, Error, Exchange, ExchangeError, Exchanged, Hold, HoldExt,
    LONG_WAIT, LockQueue, NodeName, Operation, Phase, ReadResult, Refusal, ZnodePath,
};
use tracing::field::display;
use tracing::{debug, info};

use super::continuity::{Continuity, keeps};
use super::decide::{GrantCondition, NotReady, PermitCount, PermitDecision, PermitState, decide};
use super::error::{SemaphoreError, waiting_for_permits};
use super::handle::Semaphore;
use super::limit::PermitLimit;
use crate::lock::at_head::{AtHead, HeadLimit, NotTaken};
use crate::owner;

/// A request for permits.
pub(super) struct PermitRequest<'a> {
    pub(super) semaphore: &'a Semaphore,
    pub(super) asked: u32,
}

impl AtHead for PermitRequest<'_> {
    type Taken = Hold;

    fn manager(&self) -> &ConnectionManager {
        &self.semaphore.manager
    }

    fn path(&self) -> &ZnodePath {
        &self.semaphore.path
    }

    fn queue(&self, deadline: Deadline) -> LockQueue {
        self.semaphore.waiter_queue(deadline)
    }

    /// Waits until enough permits are free, takes them and leaves the queue, by one transaction. Leases of a
    /// transaction in flight are deleted if the call ends.
    async fn decide(&self, slot: &mut Option<Hold>, limit: HeadLimit) -> Result<Hold, NotTaken> {
        PermitAcquire { request: self, slot }.take(limit).await
    }
}

/// The head of the queue.
struct PermitAcquire<'a> {
    request: &'a PermitRequest<'a>,
    /// Its hold of the queue. Empty while the transaction that ends it is in flight.
    slot: &'a mut Option<Hold>,
}

impl PermitAcquire<'_> {
    fn hold(&mut self) -> Result<&mut Hold, NotTaken> {
        self.slot.as_mut().ok_or(NotTaken::Restart)
    }

    async fn take(&mut self, limit: HeadLimit) -> Result<Hold, NotTaken> {
        let deadline = limit.deadline;
        if let Some(hold) = self.take_from_payload(deadline).await? {
            return Ok(hold);
        }
        let mut results = self.hold()?.read(deadline).await?;
        let mut changes: Option<Changes> = None;
        loop {
            match self.judge(&results, deadline).await? {
                Some((PermitDecision::Take, state)) => match self.exchange(&state, deadline).await? {
                    Some(hold) => return Ok(hold),
                    None => {
                        changes = None;
                        results = self.hold()?.read(deadline).await?;
                    }
                },
                Some((PermitDecision::Wait { free }, _)) => {
                    if !limit.waits {
                        return Err(self.not_enough(free));
                    }
                    if let Some(changes) = &mut changes {
                        self.sleep(changes, free, deadline).await?;
                    }
                    let watching = self.hold()?.watch(deadline).await?;
                    (results, changes) = (watching.0, Some(watching.1));
                }
                Some((PermitDecision::Never, state)) => return Err(self.too_many(&state)),
                None => results = self.hold()?.read(deadline).await?,
            }
        }
    }

    fn too_many(&self, state: &PermitState) -> NotTaken {
        self.request.semaphore.too_many(self.request.asked, state.limit).into()
    }

    async fn lost(&self) -> NotTaken {
        match &*self.slot {
            Some(hold) => Error::Lost(hold.lost().await).into(),
            None => NotTaken::Restart,
        }
    }

    /// Takes permits without a read, if the payload of the earlier head shows enough of them.
    async fn take_from_payload(&mut self, deadline: Deadline) -> Result<Option<Hold>, NotTaken> {
        let PermitLimit::Fixed(fixed) = &self.request.semaphore.limit else { return Ok(None) };
        let left = self.hold()?.payload::<PermitCount>().filter(|count| count.limit == fixed.permits());
        match left {
            Some(count) if decide(count.taken, count.limit, self.request.asked) == PermitDecision::Take => {
                self.exchange(&count.state(), deadline).await
            }
            _ => Ok(None),
        }
    }

    /// Decides by the results of a read. `None` if it must be read again.
    async fn judge(
        &self,
        results: &[ReadResult],
        deadline: Deadline,
    ) -> Result<Option<(PermitDecision, PermitState)>, NotTaken> {
        let PermitRequest { semaphore, asked } = *self.request;
        match PermitState::of(&semaphore.limit, results) {
            Ok(state) => Ok(Some((decide(state.taken, state.limit, asked), state))),
            Err(NotReady::Disagree { recorded }) => {
                let PermitLimit::Fixed(fixed) = &semaphore.limit else { return Ok(None) };
                let (path, mine) = (semaphore.whole_path(), fixed.permits());
                Err(Error::from(SemaphoreError::LimitsDisagree { path, mine, recorded }).into())
            }
            Err(NotReady::Unread) => {
                self.read_record(deadline).await?;
                Ok(None)
            }
            Err(NotReady::Failed(error)) => Err(error.into()),
        }
    }

    /// Reads the recorded limit. Only the head of the queue writes it, and this contender is the head.
    async fn read_record(&self, deadline: Deadline) -> Result<(), NotTaken> {
        let PermitLimit::Fixed(fixed) = &self.request.semaphore.limit else { return Ok(()) };
        let znodes = self.request.semaphore.manager.znodes();
        let read = tokio::select! {
            biased;
            read = znodes.read(&self.request.semaphore.leases) => read,
            lost = self.lost() => return Err(lost),
            () = deadline.passed() => return Err(self.no_answer(deadline)),
        };
        match read {
            Ok(Some((data, stat))) => fixed.saw(&data, &stat),
            Ok(None) => {}
            Err(error) if error.is_transient() => {}
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// Waits until the leases or the limit change.
    async fn sleep(&self, changes: &mut Changes, free: u32, deadline: Deadline) -> Result<(), NotTaken> {
        loop {
            tokio::select! {
                biased;
                lost = self.lost() => return Err(lost),
                () = changes.any() => return Ok(()),
                () = deadline.or_after(LONG_WAIT).passed() => {}
            }
            if deadline.has_passed() {
                return Err(self.not_enough(free));
            }
            let (semaphore, asked) = (self.request.semaphore, self.request.asked);
            let held_here = semaphore.leases_queue().held_here().map(display);
            info!(
                path = %semaphore.whole_path(), asked, free, held_here, waited = ?deadline.waited(),
                "still waiting for permits"
            );
        }
    }

    fn not_enough(&self, free: u32) -> NotTaken {
        let held_here = self.request.semaphore.leases_queue().held_here();
        waiting_for_permits(free, self.request.asked, held_here).into()
    }

    fn no_answer(&self, deadline: Deadline) -> NotTaken {
        self.request.timeout_error(Phase::Answer, deadline).into()
    }

    /// Commits one transaction: it creates the leases, checks what they depend on, and deletes the node in
    /// the queue. `None` if it was not committed, and the leases must be read again.
    async fn exchange(&mut self, state: &PermitState, deadline: Deadline) -> Result<Option<Hold>, NotTaken> {
        let PermitRequest { semaphore, asked } = *self.request;
        let Some(hold) = self.slot.take() else { return Err(NotTaken::Restart) };
        let leases = semaphore.leases_queue.clone().with_node_data(owner::signed(&semaphore.data));
        let mut exchange = (0..asked).fold(hold.exchange(), |exchange, _| exchange.create_contender(&leases));
        if let (PermitLimit::Fixed(_), Some(count)) = (&semaphore.limit, state.count_after(asked)) {
            exchange = exchange.with_payload(count);
        }
        match semaphore.on_condition(exchange, state).commit(deadline).await {
            // An earlier try may have been the one that was committed, by an earlier read: the numbers of its
            // leases show whether this read has all leases that were made before them.
            Ok(Exchanged { hold: Some(hold), reads_current, .. }) => {
                self.keep(hold, state, reads_current, deadline).await.map(Some)
            }
            Ok(Exchanged { hold: None, .. }) => Err(NotTaken::Restart),
            Err(ExchangeError::NotDone { hold, refused }) => match refused {
                Some((path, refusal)) if !is_out_of_date(refusal) => {
                    Err(Error::Refused { operation: Operation::Commit, path, refusal }.into())
                }
                _ => {
                    *self.slot = Some(*hold);
                    Ok(None)
                }
            },
            // The leases of a transaction without an answer are deleted in the background.
            Err(ExchangeError::Failed(Error::Unknown { .. })) if deadline.has_passed() => {
                Err(self.no_answer(deadline))
            }
            Err(ExchangeError::Failed(error)) => Err(error.into()),
        }
    }

    /// Makes sure that the leases are within the limit. Otherwise deletes them.
    async fn keep(
        &self,
        mut hold: Hold,
        state: &PermitState,
        reads_current: bool,
        deadline: Deadline,
    ) -> Result<Hold, NotTaken> {
        let names = hold.paths().map(|path| NodeName::parse(path.name()));
        let Some(own) = names.collect::<Option<Vec<NodeName>>>() else { return Err(NotTaken::Restart) };
        // A read over an earlier connection may have been stale.
        if reads_current && state.continuity.is_proven_by(&own) {
            return Ok(hold);
        }
        let results = hold.read(deadline).await?;
        let listed = match results.first() {
            Some(ReadResult::Children { names, .. }) => names.as_slice(),
            _ => &[],
        };
        if keeps(&own, listed, state.limit) {
            return Ok(hold);
        }
        let (path, in_use) = (self.request.semaphore.whole_path(), listed.len());
        debug!(%path, in_use, "a lease was made out of turn: deleting ours");
        Err(NotTaken::Restart)
    }
}

impl Semaphore {
    fn on_condition(&self, exchange: Exchange, state: &PermitState) -> Exchange {
        let exchange = match state.continuity {
            Continuity::Next { version, .. } => exchange.check(&self.leases, version),
            Continuity::Unmarked => exchange.set(&self.leases, Vec::new(), 0),
            Continuity::Unknown => exchange,
        };
        match (state.condition, &self.limit) {
            (GrantCondition::LimitIs { version }, PermitLimit::Shared(shared)) => {
                exchange.check(shared.path(), version)
            }
            (GrantCondition::Record { version }, PermitLimit::Fixed(fixed)) => {
                exchange.set(&self.leases, fixed.record(), version)
            }
            _ => exchange,
        }
    }
}

/// Whether the refusal says that a node was written or deleted since it was read.
fn is_out_of_date(refusal: Refusal) -> bool {
    matches!(refusal, Refusal::BadVersion | Refusal::NoNode)
}
