//! The nodes between two guards, and the slot of a task. Each names the other: a slot that is dropped goes to
//! the next task.

use std::collections::BTreeMap;
use std::fmt::{self, Debug, Formatter};
use std::sync::{Arc, Weak};
use std::time::Duration;

use lockkeeper_core::{Deadline, Error, Hold, ManagerExt};
use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};

use super::decide::{SharingEffect, SharingForm, SharingState};
use super::hand_off_policy::HandOffPolicy;
use super::shared_entry::{CommonWatch, EntryReports, EntrySlot, SharedEntry};
use super::shared_node::{NodeBetween, SharedNode};
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
    state: NodesState,
    /// By tenure.
    signals: BTreeMap<u64, Arc<WatcherSignals>>,
    /// Its drop ends the common watch.
    common_over: Option<oneshot::Sender<()>>,
}

pub(super) type NodesState = SharingState<SharedNode, WakeTask>;

pub(super) type Effects = Vec<SharingEffect<SharedNode, WakeTask>>;

/// The right to hold, or to wait in the server's queue for all tasks of this process. Its drop gives the slot
/// to the next task.
pub(super) struct AcquireSlot {
    sharing: Weak<NodeSharing>,
    pub(super) number: u64,
    /// The node that comes with the slot.
    pub(super) node: Option<SharedNode>,
}

/// How an acquire begins.
pub(super) enum AcquireStart<T> {
    /// It joins the guards of a node.
    Joined(T),
    Slot(AcquireSlot),
    /// The number of a new waiter, which the caller cancels, and how it is woken.
    Wait(u64, oneshot::Receiver<SlotWake>),
    /// It has to begin again.
    Again,
}

/// Why a waiting task was woken.
pub(super) enum SlotWake {
    Slot(AcquireSlot),
    /// A node is held that the task may join.
    TryAgain,
    /// The contender that waited in the server's queue for it has failed.
    Failed(Error),
}

type WakeTask = oneshot::Sender<SlotWake>;

impl AcquireSlot {
    fn new(sharing: &Arc<NodeSharing>, number: u64, node: Option<SharedNode>) -> Self {
        Self { sharing: Arc::downgrade(sharing), number, node }
    }

    /// `None` once the last clone of the lock is gone.
    pub(super) fn sharing(&self) -> Option<Arc<NodeSharing>> {
        self.sharing.upgrade()
    }
}

impl Drop for AcquireSlot {
    fn drop(&mut self) {
        if let Some(sharing) = self.sharing() {
            sharing.end_slot(self.number, self.node.take());
        }
    }
}

impl NodeSharing {
    /// `clones` counts the clones of the lock. `entry` enters the queue if no task does it itself.
    pub(super) fn new(
        policy: HandOffPolicy,
        form: SharingForm,
        entry: Option<Arc<dyn SharedEntry>>,
        clones: &Arc<()>,
    ) -> Self {
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

    /// Joins the guards of a node, takes a slot, or waits. `join` joins the guards of the slot with this
    /// number, or returns what has to be dropped without the lock.
    pub(super) fn start<T, D>(self: &Arc<Self>, join: impl FnOnce(u64) -> Result<T, D>) -> AcquireStart<T> {
        let now = self.now();
        let mut watched = self.watched.lock();
        let (joinable, effect) = watched.state.join(now);
        let mut effects = Vec::from_iter(effect);
        let joined = joinable.map(join);
        let start = match joined {
            Some(Ok(joined)) => Ok(AcquireStart::Joined(joined)),
            not_joined => Err((watched.state.take_slot(), not_joined)),
        };
        let (start, not_joined) = match start {
            Ok(joined) => (joined, None),
            Err((Some((number, node)), not_joined)) => {
                (AcquireStart::Slot(AcquireSlot::new(self, number, node)), not_joined)
            }
            Err((None, not_joined)) => {
                let (wake, woken) = oneshot::channel();
                let (number, more) = watched.state.wait(wake, now);
                effects.extend(more);
                (AcquireStart::Wait(number, woken), not_joined)
            }
        };
        drop(watched);
        drop(not_joined);
        self.carry_out(effects);
        start
    }

    /// Joins the guards of a node, as [`start`](Self::start).
    pub(super) fn join<T, D>(self: &Arc<Self>, join: impl FnOnce(u64) -> Result<T, D>) -> Option<T> {
        let now = self.now();
        let mut watched = self.watched.lock();
        let (joinable, effect) = watched.state.join(now);
        let joined = joinable.map(join);
        drop(watched);
        self.carry_out(Vec::from_iter(effect));
        joined?.ok()
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
        self.end_sharing(tenure);
        self.watched.lock().signals.remove(&tenure);
    }

    /// This node is for its present guards alone.
    pub(super) fn end_sharing(self: &Arc<Self>, tenure: u64) {
        self.change(|state, _| state.end_sharing(tenure));
    }

    pub(super) fn end_all_sharing(self: &Arc<Self>) {
        self.change(|state, _| state.end_all_sharing());
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
        let reports = Arc::downgrade(self) as Weak<dyn EntryReports>;
        Some((CommonWatch { reports, number }, is_over))
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

    /// Changes the state where that has no effect.
    pub(super) fn ask<T>(&self, change: impl FnOnce(&mut NodesState) -> T) -> T {
        change(&mut self.watched.lock().state)
    }

    pub(super) fn now(&self) -> Duration {
        self.started.waited()
    }

    pub(super) fn change(self: &Arc<Self>, change: impl FnOnce(&mut NodesState, Duration) -> Effects) {
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
                    drop(wake.send(SlotWake::Slot(AcquireSlot::new(self, slot, node))))
                }
                SharingEffect::TryAgain { wake } => drop(wake.send(SlotWake::TryAgain)),
                SharingEffect::EnterQueue { slot } => {
                    if let Some(entry) = &self.entry {
                        // If the runtime has ended, it is dropped, and its drop fails the waiting tasks.
                        let reports = Arc::downgrade(self) as Weak<dyn EntryReports>;
                        let is_needless = Arc::clone(&self.is_needless);
                        let slot = EntrySlot { reports, number: slot, is_needless };
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

impl Debug for NodeSharing {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("NodeSharing").finish_non_exhaustive()
    }
}
