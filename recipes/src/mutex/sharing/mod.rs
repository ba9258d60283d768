//! A node that the guards of one process share: which task holds next, and when the node is deleted.
//!
//! One task at a time has the [`AcquireSlot`]: it waits in the server's queue for all tasks, or it holds. The
//! other tasks wait here, in the order of their calls, and have no nodes. When a guard ends, the next task
//! gets its node, as long as [`KnownContenders`](known_contenders::KnownContenders) allow the hand-off.
//!
//! [`SharingState`] decides, and [`NodeSharing`] carries out what it decides.

mod acquire_slot;
mod contention_watcher;
mod decide;
mod hand_off_hold;
mod known_contenders;
#[cfg(test)]
mod tests;

use std::fmt::{self, Debug, Formatter};
use std::sync::{Arc, Weak};
use std::time::Duration;

use lockkeeper_core::{Deadline, DetachedNode, Error, Hold, LockQueue};
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tracing::Instrument;

use self::acquire_slot::{AcquireSlot, SlotWait};
use self::contention_watcher::{NodeTenure, WatcherSignals};
use self::decide::{SharingEffect, SharingState};
pub(super) use self::hand_off_hold::HandOffHold;
use super::hand_off_policy::HandOffPolicy;

/// The state that the clones of one mutex share.
#[derive(Clone, Debug)]
pub(super) struct SharingHandle {
    sharing: Arc<NodeSharing>,
    /// Counts the clones of the mutex. A task that only uses [`NodeSharing`] for a moment is not counted.
    _clones: Arc<()>,
}

/// Keeps the node between two guards.
pub(super) struct NodeSharing {
    /// Without a clone of the mutex, no task can acquire an idle node any more.
    clones: Weak<()>,
    /// The instant from which the state counts its time.
    started: Deadline,
    watched: Mutex<WatchedState>,
}

struct WatchedState {
    state: SharingState<IdleNode, oneshot::Sender<AcquireSlot>>,
    /// Those of the tenure that began last.
    signals: Arc<WatcherSignals>,
}

/// A node without a guard, and its tenure in this process.
type IdleNode = (DetachedNode, NodeTenure);

type Effects = Vec<SharingEffect<IdleNode, oneshot::Sender<AcquireSlot>>>;

impl SharingHandle {
    pub(super) fn new(policy: HandOffPolicy) -> Self {
        let (clones, started) = (Arc::new(()), Deadline::never());
        let watched = WatchedState { state: SharingState::new(policy), signals: Arc::default() };
        let sharing = NodeSharing { clones: Arc::downgrade(&clones), started, watched: Mutex::new(watched) };
        Self { sharing: Arc::new(sharing), _clones: clones }
    }

    pub(super) async fn acquire(&self, queue: LockQueue, deadline: Deadline) -> Result<HandOffHold, Error> {
        self.sharing.acquire(queue, deadline).await
    }

    pub(super) async fn try_acquire(
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
            Err(waiting) => waiting.slot(span.queue(), deadline).instrument(span.span()).await,
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

    /// Returns the slot, if no task has it.
    fn slot_if_free(self: &Arc<Self>) -> Option<AcquireSlot> {
        let (number, node) = self.watched.lock().state.take_slot()?;
        Some(AcquireSlot::new(self, number, node))
    }

    fn slot_or_wait(self: &Arc<Self>) -> Result<AcquireSlot, SlotWait<'_>> {
        let now = self.now();
        let mut watched = self.watched.lock();
        if let Some((number, node)) = watched.state.take_slot() {
            return Ok(AcquireSlot::new(self, number, node));
        }
        let (wake, slot) = oneshot::channel();
        let (number, effects) = watched.state.wait(wake, now);
        let signals = Arc::clone(&watched.signals);
        drop(watched);
        self.carry_out(effects, &signals);
        Err(SlotWait::new(self, number, slot))
    }

    /// The number of tasks ahead of this waiter, including the task that has the slot.
    fn ahead(&self, number: u64) -> u32 {
        self.watched.lock().state.ahead(number)
    }

    /// Removes a waiter. Returns false if a slot has been sent to it.
    fn cancel_wait(&self, number: u64) -> bool {
        self.watched.lock().state.cancel_wait(number)
    }

    /// Ends the slot of this number. Its idle node is handed off, or dropped.
    fn end_slot(self: &Arc<Self>, number: u64, node: Option<IdleNode>) {
        self.change(|state, _| state.end_slot(number, node));
    }

    /// Hands the node of a guard off, or keeps it idle. Otherwise returns the hold, which the caller
    /// releases.
    fn end_hold(
        self: &Arc<Self>,
        number: u64,
        hold: Box<Hold>,
        tenure: &mut Option<NodeTenure>,
    ) -> Option<Box<Hold>> {
        let mut kept = Some(hold);
        let has_clones = self.clones.strong_count() > 0;
        self.change(|state, now| {
            state.end_hold(number, has_clones, now, || match kept.take()?.detach() {
                Ok(node) => tenure.take().map(|tenure| (node, tenure)),
                Err(hold) => {
                    kept = Some(hold);
                    None
                }
            })
        });
        kept
    }

    /// Returns the number of the tenure.
    fn begin_tenure(&self, signals: &Arc<WatcherSignals>) -> u64 {
        let mut watched = self.watched.lock();
        watched.signals = Arc::clone(signals);
        watched.state.begin_tenure()
    }

    fn mark_held(self: &Arc<Self>, number: u64) {
        self.change(|state, now| state.mark_held(number, now));
    }

    fn mark_lost(self: &Arc<Self>, tenure: u64) {
        self.change(|state, _| state.mark_lost(tenure));
    }

    fn set_alone(&self, tenure: u64, is_alone: bool) {
        let now = self.now();
        self.watched.lock().state.set_alone(tenure, is_alone, now);
    }

    fn mark_contended(self: &Arc<Self>, tenure: u64) {
        self.change(|state, now| state.mark_contended(tenure, now));
    }

    fn mark_blind(self: &Arc<Self>, tenure: u64) {
        self.change(|state, _| state.mark_blind(tenure));
    }

    /// The end of the idle time of this node, if it is idle.
    fn idle_until(&self, tenure: u64) -> Option<Deadline> {
        let until = self.watched.lock().state.idle_until(tenure)?;
        Some(Deadline::after(until.saturating_sub(self.now())))
    }

    fn end_idle_time(self: &Arc<Self>, tenure: u64) {
        self.change(|state, now| state.end_idle_time(tenure, now));
    }

    fn now(&self) -> Duration {
        self.started.waited()
    }

    fn change(
        self: &Arc<Self>,
        change: impl FnOnce(&mut SharingState<IdleNode, oneshot::Sender<AcquireSlot>>, Duration) -> Effects,
    ) {
        let now = self.now();
        let mut watched = self.watched.lock();
        let effects = change(&mut watched.state, now);
        let signals = Arc::clone(&watched.signals);
        drop(watched);
        self.carry_out(effects, &signals);
    }

    /// Carries out the effects, without the lock. `signals` are those of the tenure that they are about.
    fn carry_out(self: &Arc<Self>, effects: Effects, signals: &WatcherSignals) {
        for effect in effects {
            match effect {
                // A slot that cannot be sent is dropped here, and so ends.
                SharingEffect::SendSlot { wake, slot, node } => {
                    drop(wake.send(AcquireSlot::new(self, slot, node)))
                }
                SharingEffect::WatchContenders => signals.watch_contenders.notify_one(),
                SharingEffect::TimeIdle => signals.time_idle.notify_one(),
                SharingEffect::Delete(node) => drop(node),
            }
        }
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
        let tenure = contention_watcher::start_watcher(sharing, &hold);
        Self { hold, tenure }
    }

    fn with(self, slot: AcquireSlot) -> HandOffHold {
        HandOffHold::new(self.hold, self.tenure, slot)
    }
}

impl Debug for NodeSharing {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("NodeSharing").finish_non_exhaustive()
    }
}
