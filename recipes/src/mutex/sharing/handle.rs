use std::sync::Arc;

use lockkeeper_core::{Deadline, Error, Hold, LockQueue};
use tracing::Instrument;

use super::super::hand_off_policy::HandOffPolicy;
use super::contention_watcher::start_watcher;
use super::hand_off_hold::HandOffHold;
use super::node_sharing::{AcquireSlot, NodeSharing};
use super::slot_wait::SlotWait;
use super::tenure::NodeTenure;

/// The state that the clones of one mutex share.
#[derive(Clone, Debug)]
pub(crate) struct SharingHandle {
    sharing: Arc<NodeSharing>,
    /// Counts the clones of the mutex. A task that only uses [`NodeSharing`] for a moment is not counted.
    _clones: Arc<()>,
}

impl SharingHandle {
    pub(crate) fn new(policy: HandOffPolicy) -> Self {
        let clones = Arc::new(());
        Self { sharing: Arc::new(NodeSharing::new(policy, &clones)), _clones: clones }
    }

    pub(crate) async fn acquire(&self, queue: LockQueue, deadline: Deadline) -> Result<HandOffHold, Error> {
        self.sharing.acquire(queue, deadline).await
    }

    pub(crate) async fn try_acquire(
        &self,
        queue: LockQueue,
        limit: Deadline,
    ) -> Result<Option<HandOffHold>, Error> {
        self.sharing.try_acquire(queue, limit).await
    }
}

impl NodeSharing {
    async fn acquire(self: &Arc<Self>, queue: LockQueue, deadline: Deadline) -> Result<HandOffHold, Error> {
        let span = queue.acquire_span(deadline);
        let slot = match self.slot_or_wait() {
            Ok(slot) => Ok(slot),
            Err((number, slot)) => {
                let waiting = SlotWait::new(self, number, slot);
                waiting.slot(span.queue(), deadline).instrument(span.span()).await
            }
        };
        let mut slot = match slot {
            Ok(slot) => slot,
            Err(error) => {
                span.failed(&error);
                return Err(error);
            }
        };
        if let Some(hold) = Unbound::attach(&mut slot) {
            span.granted(&hold.hold);
            return Ok(hold.with(slot));
        }
        let hold = span.acquire().await?;
        Ok(Unbound::begin(self, hold).with(slot))
    }

    async fn try_acquire(
        self: &Arc<Self>,
        queue: LockQueue,
        limit: Deadline,
    ) -> Result<Option<HandOffHold>, Error> {
        let span = queue.acquire_span(Deadline::immediate());
        let Some(mut slot) = self.slot_if_free() else {
            span.busy();
            return Ok(None);
        };
        if let Some(hold) = Unbound::attach(&mut slot) {
            span.granted(&hold.hold);
            return Ok(Some(hold.with(slot)));
        }
        let hold = span.try_acquire(limit).await?;
        Ok(hold.map(|hold| Unbound::begin(self, hold).with(slot)))
    }
}

/// A hold that is not bound to its slot yet.
struct Unbound {
    hold: Hold,
    tenure: NodeTenure,
}

impl Unbound {
    /// Attaches the idle node that came with the slot, if there is one and it still exists.
    fn attach(slot: &mut AcquireSlot) -> Option<Self> {
        let (detached, tenure) = slot.idle_node.take()?;
        let hold = detached.attach().ok()?;
        Some(Self { hold, tenure })
    }

    /// Starts the tenure of a node that was granted.
    fn begin(sharing: &Arc<NodeSharing>, hold: Hold) -> Self {
        let tenure = start_watcher(sharing, &hold);
        Self { hold, tenure }
    }

    fn with(self, slot: AcquireSlot) -> HandOffHold {
        HandOffHold::new(self.hold, self.tenure, slot)
    }
}
