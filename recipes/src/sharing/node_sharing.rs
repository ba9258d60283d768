use std::collections::BTreeMap;
use std::fmt::{self, Debug, Formatter};
use std::sync::{Arc, Weak};
use std::time::Duration;

use lockkeeper_core::{Deadline, Error, Hold, ManagerExt};
use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};

use super::acquire_slot::{AcquireSlot, NodeBetween, SharedNode, WakeTask};
use super::decide::{SharingEffect, SharingForm, SharingState};
use super::hand_off_policy::HandOffPolicy;
use super::shared_entry::{EntrySlot, SharedEntry};
use super::tenure::{NodeTenure, WatcherSignals};

/// Keeps nodes between two guards.
pub(crate) struct NodeSharing {
    /// Without a clone of the lock, no task can acquire an idle node any more.
    clones: Weak<()>,
    /// The instant from which the state counts its time.
    started: Deadline,
    /// How the process enters the queue for all waiting tasks. `None` if a task does it itself.
    entry: Option<Arc<dyn SharedEntry>>,
    /// Notified when no task waits any more.
    is_needless: Arc<Notify>,
    watched: Mutex<WatchedState>,
}

struct WatchedState {
    state: State,
    /// By tenure.
    signals: BTreeMap<u64, Arc<WatcherSignals>>,
    /// Its drop ends the common watch.
    common_over: Option<oneshot::Sender<()>>,
}

type State = SharingState<SharedNode, WakeTask>;

type Effects = Vec<SharingEffect<SharedNode, WakeTask>>;

/// The watch of the server's queue that is common to all nodes. Its drop, also that by the end of its
/// runtime, ends the idle nodes, which no task watches any more.
pub(crate) struct CommonWatch {
    sharing: Weak<NodeSharing>,
    number: u64,
}

impl NodeSharing {
    /// `clones` counts the clones of the lock.
    pub(super) fn new(policy: HandOffPolicy, entry: Option<Arc<dyn SharedEntry>>, clones: &Arc<()>) -> Self {
        let form = if entry.is_some() { SharingForm::Many } else { SharingForm::One };
        let state = SharingState::new(policy, form);
        let watched = WatchedState { state, signals: BTreeMap::new(), common_over: None };
        Self {
            clones: Arc::downgrade(clones),
            started: Deadline::never(),
            entry,
            is_needless: Arc::default(),
            watched: Mutex::new(watched),
        }
    }

    /// Returns a slot, if no task is ahead.
    pub(super) fn slot_if_free(self: &Arc<Self>) -> Option<AcquireSlot> {
        let (number, node) = self.watched.lock().state.take_slot_to_try()?;
        Some(AcquireSlot::new(self, number, node))
    }

    /// Returns a slot, if the task need not wait. Otherwise the number of a new waiter, which the caller
    /// cancels, and where its slot arrives.
    pub(super) fn slot_or_wait(
        self: &Arc<Self>,
    ) -> Result<AcquireSlot, (u64, oneshot::Receiver<Result<AcquireSlot, Error>>)> {
        let now = self.now();
        let mut watched = self.watched.lock();
        if let Some((number, node)) = watched.state.take_slot() {
            return Ok(AcquireSlot::new(self, number, node));
        }
        let (wake, slot) = oneshot::channel();
        let (number, effects) = watched.state.wait(wake, now);
        drop(watched);
        self.carry_out(effects);
        Err((number, slot))
    }

    /// The number of tasks ahead of this waiter, including a task that has the slot.
    pub(super) fn ahead(&self, number: u64) -> u32 {
        self.watched.lock().state.ahead(number)
    }

    /// Removes a waiter. Returns false if a slot has been sent to it.
    pub(super) fn cancel_wait(&self, number: u64) -> bool {
        let is_cancelled = self.watched.lock().state.cancel_wait(number);
        // The contender in the server's queue asks whether it is needed.
        self.is_needless.notify_one();
        is_cancelled
    }

    /// Ends the slot of this number. Its node is handed off, or dropped.
    pub(super) fn end_slot(self: &Arc<Self>, number: u64, node: Option<SharedNode>) {
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
                Ok(node) => {
                    let node = NodeBetween::Detached(node);
                    tenure.take().map(|tenure| SharedNode { node, tenure })
                }
                Err(hold) => {
                    kept = Some(hold);
                    None
                }
            })
        });
        kept
    }

    /// Whether no task waits any more: then the contender with this slot is retired.
    pub(super) fn retire_entry(&self, slot: u64) -> bool {
        self.watched.lock().state.retire_entry(slot)
    }

    pub(super) fn fail_entry(self: &Arc<Self>, slot: u64, error: Error) {
        let wake = self.watched.lock().state.fail_entry(slot);
        if let Some(wake) = wake {
            // The task may have ended.
            drop(wake.send(Err(error)));
        }
        self.end_slot(slot, None);
    }

    pub(super) fn abort_entry(&self, slot: u64) {
        // Dropped without the lock.
        let aborted = self.watched.lock().state.abort_entry(slot);
        drop(aborted);
    }

    /// Returns the number of the tenure.
    pub(super) fn begin_tenure(&self, slot: u64, signals: &Arc<WatcherSignals>) -> u64 {
        let mut watched = self.watched.lock();
        let tenure = watched.state.begin_tenure(slot);
        watched.signals.insert(tenure, Arc::clone(signals));
        tenure
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

    /// The watching task of the tenure has ended.
    pub(super) fn mark_blind(self: &Arc<Self>, tenure: u64) {
        self.change(|state, _| state.mark_blind(tenure));
        self.watched.lock().signals.remove(&tenure);
    }

    /// How the process enters the queue, if no task does it itself.
    pub(super) fn entry(&self) -> Option<&Arc<dyn SharedEntry>> {
        self.entry.as_ref()
    }

    /// Begins the common watch, if there is none: what it reports to, and when it is over.
    pub(super) fn begin_common_watch(self: &Arc<Self>) -> Option<(CommonWatch, oneshot::Receiver<()>)> {
        let now = self.now();
        let mut watched = self.watched.lock();
        let number = watched.state.begin_common_watch(now)?;
        let (over, is_over) = oneshot::channel();
        watched.common_over = Some(over);
        Some((CommonWatch { sharing: Arc::downgrade(self), number }, is_over))
    }

    pub(super) fn end_all_idle(self: &Arc<Self>) {
        self.change(|state, _| state.end_all_idle());
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

    fn change(self: &Arc<Self>, change: impl FnOnce(&mut State, Duration) -> Effects) {
        let now = self.now();
        let mut watched = self.watched.lock();
        let effects = change(&mut watched.state, now);
        let over = if watched.state.end_needless_watch() { watched.common_over.take() } else { None };
        drop(watched);
        drop(over);
        self.carry_out(effects);
    }

    /// Carries out the effects, without the lock.
    fn carry_out(self: &Arc<Self>, effects: Effects) {
        for effect in effects {
            match effect {
                // A slot that cannot be sent is dropped here, and so ends.
                SharingEffect::SendSlot { wake, slot, node } => {
                    drop(wake.send(Ok(AcquireSlot::new(self, slot, node))))
                }
                SharingEffect::EnterQueue { slot } => {
                    if let Some(entry) = &self.entry {
                        // If it cannot run, it is dropped, and its drop fails the waiting tasks.
                        let slot = EntrySlot::new(self, slot, &self.is_needless);
                        entry.manager().spawn(entry.enter(slot));
                    }
                }
                SharingEffect::LeaveQueue => self.is_needless.notify_one(),
                SharingEffect::WatchContenders { tenure } => {
                    self.signal(tenure, |signals| signals.watch_contenders.notify_one())
                }
                SharingEffect::TimeIdle { tenure } => {
                    self.signal(tenure, |signals| signals.time_idle.notify_one())
                }
                SharingEffect::Delete(node) => drop(node),
            }
        }
    }

    fn signal(&self, tenure: u64, signal: impl FnOnce(&WatcherSignals)) {
        let signals = self.watched.lock().signals.get(&tenure).cloned();
        if let Some(signals) = signals {
            signal(&signals);
        }
    }
}

impl CommonWatch {
    /// A list showed no other contender (`true`), or that is no longer known (`false`).
    pub(crate) fn set_alone(&self, is_alone: bool) {
        if let Some(sharing) = self.sharing.upgrade() {
            let now = sharing.now();
            sharing.watched.lock().state.set_all_alone(self.number, is_alone, now);
        }
    }

    /// Another contender waits.
    pub(crate) fn mark_contended(&self) {
        self.change(|state, now| state.mark_all_contended(self.number, now));
    }

    /// More nodes are in use than there may be.
    pub(crate) fn mark_exceeded(&self) {
        self.change(|state, now| state.mark_exceeded(self.number, now));
    }

    fn change(&self, change: impl FnOnce(&mut State, Duration) -> Effects) {
        if let Some(sharing) = self.sharing.upgrade() {
            sharing.change(change);
        }
    }
}

impl Drop for CommonWatch {
    fn drop(&mut self) {
        self.change(|state, _| state.mark_all_blind(self.number));
    }
}

impl Debug for NodeSharing {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("NodeSharing").finish_non_exhaustive()
    }
}
