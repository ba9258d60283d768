use std::fmt::{self, Debug, Formatter};

use lockkeeper_core::{Deadline, DetachedNode, Error, Hold, HoldExt, LockQueue, NodeName, ZnodePath};

use super::record::WorkerRecord;

/// A worker: the node that claims items, and the record of its transactions. It claims one item at a time.
///
/// Dropped, it gives up its item. A transaction that is on its way is not applied after that.
pub(super) struct QueueWorker {
    // Drop order: the claim ends first.
    pub(super) hold: Hold,
    pub(super) record: WorkerRecord,
}

impl QueueWorker {
    /// Creates the node and the record of a worker.
    pub(super) async fn create(
        workers: &LockQueue,
        records: &ZnodePath,
        deadline: Deadline,
    ) -> Result<Self, Error> {
        let hold = workers.acquire(deadline).await?;
        // A worker that claims nothing protects no work.
        hold.defer_loss_report();
        let name = NodeName::create_id(hold.path().name()).unwrap_or_else(|| hold.path().name());
        let record = WorkerRecord::create(hold.manager(), records.child(name)?).await?;
        Ok(Self { hold, record })
    }

    /// The name that items are claimed by.
    pub(super) fn name(&self) -> &str {
        self.hold.path().name()
    }

    /// A number that differs between workers.
    pub(super) fn spread(&self) -> usize {
        self.name().bytes().fold(5381, |hash: usize, byte| hash.wrapping_mul(33) ^ usize::from(byte))
    }

    /// Keeps the worker for the next call of this process. `None` if it must not be kept: its node is lost,
    /// its record is broken, or one of its transactions may be applied still.
    pub(super) fn park(self) -> Option<ParkedWorker> {
        if self.record.is_broken() {
            return None;
        }
        let Self { hold, record } = self;
        Some(ParkedWorker { node: hold.detach().ok()?, record })
    }
}

/// A worker that no call uses.
pub(super) struct ParkedWorker {
    node: DetachedNode,
    record: WorkerRecord,
}

impl ParkedWorker {
    /// `None` if its node is lost.
    pub(super) fn unpark(self) -> Option<QueueWorker> {
        let Self { node, record } = self;
        let hold = node.attach().ok()?;
        hold.defer_loss_report();
        Some(QueueWorker { hold, record })
    }
}

impl Debug for ParkedWorker {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        self.node.fmt(formatter)
    }
}
