//! The state of the node, and the slot of the task that has it. Each names the other: a slot that is dropped
//! goes to the next task.

use std::fmt::{self, Debug, Formatter};
use std::sync::{Arc, Weak};
use std::time::Duration;

use lockkeeper_core::{Deadline, DetachedNode, Hold};
use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::super::hand_off_policy::HandOffPolicy;
use super::decide::{SharingEffect, SharingState};
use super::tenure::{NodeTenure, WatcherSignals};

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

/// The right to hold, or to wait in the server's queue for all tasks of this process. Its drop gives the slot
/// to the next task.
pub(super) struct AcquireSlot {
    sharing: Weak<NodeSharing>,
    pub(super) number: u64,
    /// The node that comes with the slot.
    pub(super) idle_node: Option<IdleNode>,
}

impl AcquireSlot {
    pub(super) fn new(sharing: &Arc<NodeSharing>, number: u64, idle_node: Option<IdleNode>) -> Self {
        Self { sharing: Arc::downgrade(sharing), number, idle_node }
    }

    /// `None` once the last clone of the mutex is gone.
    pub(super) fn sharing(&self) -> Option<Arc<NodeSharing>> {
        self.sharing.upgrade()
    }
}

impl Drop for AcquireSlot {
    fn drop(&mut self) {
        if let Some(sharing) = self.sharing() {
            sharing.end_slot(self.number, self.idle_node.take());
        }
    }
}

impl NodeSharing {
    /// `clones` counts the clones of the mutex.
    pub(super) fn new(policy: HandOffPolicy, clones: &Arc<()>) -> Self {
        let watched = WatchedState { state: SharingState::new(policy), signals: Arc::default() };
        Self { clones: Arc::downgrade(clones), started: Deadline::never(), watched: Mutex::new(watched) }
    }

    /// Returns the slot, if no task has it.
    pub(super) fn slot_if_free(self: &Arc<Self>) -> Option<AcquireSlot> {
        let (number, node) = self.watched.lock().state.take_slot()?;
        Some(AcquireSlot::new(self, number, node))
    }

    /// Returns the slot, if no task has it. Otherwise the number of a new waiter, which the caller cancels,
    /// and where its slot arrives.
    pub(super) fn slot_or_wait(
        self: &Arc<Self>,
    ) -> Result<AcquireSlot, (u64, oneshot::Receiver<AcquireSlot>)> {
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
        Err((number, slot))
    }

    /// The number of tasks ahead of this waiter, including the task that has the slot.
    pub(super) fn ahead(&self, number: u64) -> u32 {
        self.watched.lock().state.ahead(number)
    }

    /// Removes a waiter. Returns false if a slot has been sent to it.
    pub(super) fn cancel_wait(&self, number: u64) -> bool {
        self.watched.lock().state.cancel_wait(number)
    }

    /// Ends the slot of this number. Its idle node is handed off, or dropped.
    fn end_slot(self: &Arc<Self>, number: u64, node: Option<IdleNode>) {
        self.change(|state, _| state.end_slot(number, node));
    }

    /// Hands the node of a guard off, or keeps it idle. Otherwise returns the hold, which the caller
    /// releases.
    pub(super) fn end_hold(
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
    pub(super) fn begin_tenure(&self, signals: &Arc<WatcherSignals>) -> u64 {
        let mut watched = self.watched.lock();
        watched.signals = Arc::clone(signals);
        watched.state.begin_tenure()
    }

    pub(super) fn mark_held(self: &Arc<Self>, number: u64) {
        self.change(|state, now| state.mark_held(number, now));
    }

    pub(super) fn mark_lost(self: &Arc<Self>, tenure: u64) {
        self.change(|state, _| state.mark_lost(tenure));
    }

    pub(super) fn set_alone(&self, tenure: u64, is_alone: bool) {
        let now = self.now();
        self.watched.lock().state.set_alone(tenure, is_alone, now);
    }

    pub(super) fn mark_contended(self: &Arc<Self>, tenure: u64) {
        self.change(|state, now| state.mark_contended(tenure, now));
    }

    pub(super) fn mark_blind(self: &Arc<Self>, tenure: u64) {
        self.change(|state, _| state.mark_blind(tenure));
    }

    /// The end of the idle time of this node, if it is idle.
    pub(super) fn idle_until(&self, tenure: u64) -> Option<Deadline> {
        let until = self.watched.lock().state.idle_until(tenure)?;
        Some(Deadline::after(until.saturating_sub(self.now())))
    }

    pub(super) fn end_idle_time(self: &Arc<Self>, tenure: u64) {
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

impl Debug for NodeSharing {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("NodeSharing").finish_non_exhaustive()
    }
}
