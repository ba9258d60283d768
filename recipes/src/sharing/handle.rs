use std::sync::Arc;

use lockkeeper_core::{AcquireSpan, Deadline, Error, Hold, LockQueue};
use tokio::task::coop::consume_budget;
use tracing::Instrument;

use super::contention_watcher::start_watcher;
use super::decide::SharingForm;
use super::hand_off_hold::HandOffHold;
use super::hand_off_policy::HandOffPolicy;
use super::node_sharing::{AcquireSlot, AcquireStart, NodeSharing, SlotWake};
use super::shared_entry::SharedEntry;
use super::slot_wait::SlotWait;
use super::tenure::NodeTenure;

/// The state that the clones of one lock share.
///
/// Each acquire consumes of the budget of its task: one that finds a node each time would otherwise never let
/// the tasks run that watch for other contenders.
#[derive(Clone, Debug)]
pub(crate) struct SharingHandle {
    sharing: Arc<NodeSharing>,
    /// Counts the clones of the lock. A task that only uses [`NodeSharing`] for a moment is not counted.
    _clones: Arc<()>,
}

impl SharingHandle {
    /// One node at a time. The task that gets no node enters the queue for all waiting tasks.
    pub(crate) fn of_one(policy: HandOffPolicy) -> Self {
        Self::new(policy, SharingForm::One, None)
    }

    /// Any number of nodes. `entry` enters the queue for all waiting tasks.
    pub(crate) fn of_many(policy: HandOffPolicy, entry: Arc<dyn SharedEntry>) -> Self {
        Self::new(policy, SharingForm::Many, Some(entry))
    }

    /// Nodes that readers hold beside each other.
    pub(crate) fn of_readers(policy: HandOffPolicy) -> Self {
        Self::new(policy, SharingForm::Readers, None)
    }

    fn new(policy: HandOffPolicy, form: SharingForm, entry: Option<Arc<dyn SharedEntry>>) -> Self {
        let clones = Arc::new(());
        Self { sharing: Arc::new(NodeSharing::new(policy, form, entry, &clones)), _clones: clones }
    }

    /// Waits for the one node, in memory or in `queue`.
    pub(crate) async fn acquire(&self, queue: LockQueue, deadline: Deadline) -> Result<HandOffHold, Error> {
        consume_budget().await;
        let sharing = &self.sharing;
        let span = queue.acquire_span(deadline);
        let mut slot = match sharing.wait_for_slot(&span, deadline).await {
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
        Ok(Unbound::begin(sharing, hold, &slot).with(slot))
    }

    /// Takes the one node, if it is free now.
    pub(crate) async fn try_acquire(
        &self,
        queue: LockQueue,
        limit: Deadline,
    ) -> Result<Option<HandOffHold>, Error> {
        consume_budget().await;
        let sharing = &self.sharing;
        let span = queue.acquire_span(Deadline::immediate());
        let Some(mut slot) = sharing.slot_if_free() else {
            span.busy();
            return Ok(None);
        };
        if let Some(hold) = Unbound::attach(&mut slot) {
            span.granted(&hold.hold);
            return Ok(Some(hold.with(slot)));
        }
        let hold = span.try_acquire(limit).await?;
        Ok(hold.map(|hold| Unbound::begin(sharing, hold, &slot).with(slot)))
    }

    /// Waits for one of the nodes, which an earlier guard or the queue's entry has. `queue` is the directory
    /// of the nodes.
    pub(crate) async fn acquire_any(
        &self,
        queue: LockQueue,
        deadline: Deadline,
    ) -> Result<HandOffHold, Error> {
        consume_budget().await;
        let span = queue.acquire_span(deadline);
        loop {
            match self.sharing.wait_for_slot(&span, deadline).await {
                Ok(mut slot) => {
                    if let Some(hold) = Unbound::attach(&mut slot) {
                        span.granted(&hold.hold);
                        return Ok(hold.with(slot));
                    }
                }
                Err(error) => {
                    span.failed(&error);
                    return Err(error);
                }
            }
        }
    }

    /// Takes an idle node. Without one, and if no task waits, `enter` tries to be granted one by the server.
    /// `None` if a task of this process is ahead.
    pub(crate) async fn try_any<E>(
        &self,
        queue: LockQueue,
        enter: impl Future<Output = Result<Result<Hold, E>, Error>>,
    ) -> Result<Option<Result<HandOffHold, E>>, Error> {
        consume_budget().await;
        while let Some(mut slot) = self.sharing.slot_if_free() {
            let has_node = slot.node.is_some();
            if let Some(hold) = Unbound::attach(&mut slot) {
                queue.acquire_span(Deadline::immediate()).granted(&hold.hold);
                return Ok(Some(Ok(hold.with(slot))));
            }
            if !has_node {
                let begin = |hold| Unbound::begin(&self.sharing, hold, &slot);
                return match enter.await? {
                    Ok(hold) => {
                        let unbound = begin(hold);
                        Ok(Some(Ok(unbound.with(slot))))
                    }
                    Err(reason) => Ok(Some(Err(reason))),
                };
            }
        }
        Ok(None)
    }

    /// Joins the guards of a node that is held, or waits for a node, in memory or in `queue`. `join` joins
    /// the guards of the slot with this number, or returns what has to be dropped later. Mark a new hold as
    /// held once others can join it.
    pub(crate) async fn acquire_beside<T, D>(
        &self,
        queue: LockQueue,
        deadline: Deadline,
        join: impl Fn(u64) -> Result<T, D> + Send,
    ) -> Result<Beside<T>, Error> {
        consume_budget().await;
        if let Some(joined) = self.sharing.join(&join) {
            return Ok(Beside::Joined(joined));
        }
        let span = queue.acquire_span(deadline);
        loop {
            match self.sharing.start_or_wait(&span, deadline, &join).await {
                Ok(AcquireStart::Joined(joined)) => return Ok(Beside::Joined(joined)),
                Ok(AcquireStart::Slot(mut slot)) => {
                    let unbound = match Unbound::attach(&mut slot) {
                        Some(unbound) => {
                            span.granted(&unbound.hold);
                            unbound
                        }
                        None => {
                            let hold = span.acquire().await?;
                            Unbound::begin(&self.sharing, hold, &slot)
                        }
                    };
                    return Ok(Beside::Alone(unbound.unmarked(slot)));
                }
                Ok(AcquireStart::Again | AcquireStart::Wait(..)) => {}
                Err(error) => {
                    span.failed(&error);
                    return Err(error);
                }
            }
        }
    }

    /// Joins the guards of a node that is held, if no writer waits.
    pub(crate) async fn join<T, D>(&self, join: impl FnOnce(u64) -> Result<T, D>) -> Option<T> {
        consume_budget().await;
        self.sharing.join(join)
    }

    /// The nodes are for their present guards alone: a writer of this process waits for these.
    pub(crate) fn end_all_sharing(&self) {
        self.sharing.end_all_sharing();
    }

    /// Deletes the idle nodes: a request of this process needs what they take.
    pub(crate) fn end_all_idle(&self) {
        self.sharing.end_all_idle();
    }
}

/// What a reader got.
pub(crate) enum Beside<T> {
    /// A share of a node that other guards hold.
    Joined(T),
    /// A node that no other guard holds yet.
    Alone(HandOffHold),
}

impl NodeSharing {
    async fn wait_for_slot(
        self: &Arc<Self>,
        span: &AcquireSpan,
        deadline: Deadline,
    ) -> Result<AcquireSlot, Error> {
        loop {
            let start = self.start_or_wait(span, deadline, |_| Err::<(), ()>(())).await?;
            if let AcquireStart::Slot(slot) = start {
                return Ok(slot);
            }
        }
    }

    async fn start_or_wait<T, D>(
        self: &Arc<Self>,
        span: &AcquireSpan,
        deadline: Deadline,
        join: impl FnOnce(u64) -> Result<T, D>,
    ) -> Result<AcquireStart<T>, Error> {
        match self.start(join) {
            AcquireStart::Wait(number, woken) => {
                let waiting = SlotWait::new(self, number, woken);
                match waiting.woken(span.queue(), deadline).instrument(span.span()).await? {
                    SlotWake::Slot(slot) => Ok(AcquireStart::Slot(slot)),
                    SlotWake::TryAgain | SlotWake::Failed(_) => Ok(AcquireStart::Again),
                }
            }
            started => Ok(started),
        }
    }
}

/// A hold that is not bound to its slot yet.
struct Unbound {
    hold: Hold,
    tenure: NodeTenure,
}

impl Unbound {
    /// Attaches the node that came with the slot, if there is one and it still exists.
    fn attach(slot: &mut AcquireSlot) -> Option<Self> {
        let (hold, tenure) = slot.node.take()?.attach()?;
        Some(Self { hold, tenure })
    }

    /// Starts the tenure of a node that was granted.
    fn begin(sharing: &Arc<NodeSharing>, hold: Hold, slot: &AcquireSlot) -> Self {
        let tenure = start_watcher(sharing, slot.number, &hold);
        Self { hold, tenure }
    }

    fn with(self, slot: AcquireSlot) -> HandOffHold {
        let hold = self.unmarked(slot);
        hold.mark_held();
        hold
    }

    fn unmarked(self, slot: AcquireSlot) -> HandOffHold {
        HandOffHold::new(self.hold, self.tenure, slot)
    }
}
