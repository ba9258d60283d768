use std::fmt::{self, Debug, Formatter};

use lockkeeper_core::{
    Deadline, DetachedNode, Error, Hold, HoldExt, LockQueue, NodeName, Refusal, Txn, TxnError, ZnodePath,
};

use super::error::WorkQueueError;
use super::item_claim::ItemClaim;
use super::record::WorkerRecord;

/// A worker: the node that claims items, and the record of its transactions. It claims one item at a time.
///
/// Dropped, it gives up its item. A transaction that is on its way is not applied after that.
pub(super) struct QueueWorker {
    // Drop order: the claim ends first.
    pub(super) hold: Hold,
    pub(super) record: WorkerRecord,
    /// The node that claims the item, in the layouts of other clients.
    pub(super) claim: Option<ItemClaim>,
    /// How many reads of items its process had begun when its node was there.
    pub(super) reads_before: u64,
}

impl QueueWorker {
    /// Creates the node and the record of a worker. `reads_begun` is asked when both are there.
    pub(super) async fn create(
        workers: &LockQueue,
        records: &ZnodePath,
        reads_begun: impl FnOnce() -> u64,
        deadline: Deadline,
    ) -> Result<Self, Error> {
        let hold = workers.acquire(deadline).await?;
        // A worker that claims nothing protects no work.
        hold.defer_loss_report();
        let name = NodeName::create_id(hold.path().name()).unwrap_or_else(|| hold.path().name());
        let record = WorkerRecord::create(hold.manager(), records.child(name)?).await?;
        Ok(Self { hold, record, claim: None, reads_before: reads_begun() })
    }

    /// The name that items are claimed by.
    pub(super) fn name(&self) -> &str {
        self.hold.path().name()
    }

    /// Commits these writes, and ends the claim with them if that has a node of its own.
    pub(super) async fn commit_end(
        &mut self,
        writes: impl FnOnce(Txn<'static>) -> Txn<'static>,
    ) -> Result<(), TxnError> {
        self.set_claim_in_doubt(true);
        let Self { hold, record, claim, .. } = &mut *self;
        let unclaim = |txn| claim.iter().fold(txn, |txn, claim| claim.delete(txn));
        record.commit(hold, |txn| unclaim(writes(txn))).await?;
        self.claim_ended();
        Ok(())
    }

    /// Why the item at `path` was not ended.
    pub(super) fn end_error(&self, path: &ZnodePath, error: TxnError) -> Error {
        let TxnError::Refused { path: refused, refusal, .. } = &error else { return error.into() };
        let whole = |path| self.hold.manager().whole_path(path);
        let (is_item, is_claim) = (
            *refused == whole(path),
            self.claim.as_ref().is_some_and(|claim| *refused == whole(claim.path())),
        );
        match refusal {
            Refusal::NoNode if is_item => WorkQueueError::Deleted { path: whole(path) }.into(),
            Refusal::BadVersion | Refusal::NoNode if is_claim || (is_item && self.claim.is_some()) => {
                WorkQueueError::ClaimDeleted { path: whole(path) }.into()
            }
            _ => error.into(),
        }
    }

    /// A transaction has ended the claim, or has not created it.
    pub(super) fn claim_ended(&mut self) {
        self.claim.take().into_iter().for_each(ItemClaim::ended);
    }

    /// Whether a transaction that creates or ends the claim may be applied still.
    pub(super) fn set_claim_in_doubt(&mut self, is_in_doubt: bool) {
        if let Some(claim) = &mut self.claim {
            claim.set_in_doubt(is_in_doubt);
        }
    }

    /// Keeps the worker for the next call of this process. `None` if it must not be kept: its node is lost,
    /// its record is broken, or one of its transactions may be applied still.
    pub(super) fn park(self) -> Option<ParkedWorker> {
        if self.record.is_broken() || self.claim.is_some() {
            return None;
        }
        let Self { hold, record, reads_before, .. } = self;
        Some(ParkedWorker { node: hold.detach().ok()?, record, reads_before })
    }
}

/// A worker that no call uses.
pub(super) struct ParkedWorker {
    node: DetachedNode,
    record: WorkerRecord,
    reads_before: u64,
}

impl ParkedWorker {
    /// `None` if its node is lost.
    pub(super) fn unpark(self) -> Option<QueueWorker> {
        let Self { node, record, reads_before } = self;
        let hold = node.attach().ok()?;
        hold.defer_loss_report();
        Some(QueueWorker { hold, record, claim: None, reads_before })
    }
}

impl Debug for ParkedWorker {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        self.node.fmt(formatter)
    }
}
