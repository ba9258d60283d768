//! The decisions of sharing: which task holds next, whether it gets a node, and when a node is deleted.
//! Pure: events go in, and effects come out. The caller measures the time and carries out the effects.

use std::collections::VecDeque;
use std::time::Duration;

use lockkeeper_core::count_of;

use super::hand_off_policy::HandOffPolicy;
use super::known_contenders::KnownContenders;
use super::slots::{Phase, Slot, Slots, Tenure};

/// The state that the tasks of one lock share. `N` is a node between two guards, `W` wakes a task.
///
/// Times count from an instant that the caller chooses once.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct SharingState<N, W> {
    policy: HandOffPolicy,
    form: SharingForm,
    slots: Slots<N>,
    /// The waiting tasks. The one that has waited longest is first.
    waiting: VecDeque<WaitingTask<W>>,
    arrivals: u64,
    tenures: u64,
    /// The watch of the queue that is common to all nodes.
    common: Option<CommonWatch>,
    watches: u64,
}

/// How many nodes the process has, and which task enters the server's queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum SharingForm {
    /// One node at a time: a task that finds no node enters the queue, for all waiting tasks.
    One,
    /// Any number of nodes, each for one guard at a time. One contender of the process enters the queue as
    /// long as a task waits, and each node that it is granted is for the task that has waited longest.
    Many,
}

/// What the watch of a queue shows that is common to all nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct CommonWatch {
    number: u64,
    contenders: KnownContenders,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct WaitingTask<W> {
    number: u64,
    wake: W,
}

/// What the caller has to do, without the lock of the state.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum SharingEffect<N, W> {
    /// Send the slot of this number to a task, with the node if there is one. If the task has ended, end the
    /// slot.
    SendSlot { wake: W, slot: u64, node: Option<N> },
    /// Enter the server's queue for the waiting tasks.
    EnterQueue { slot: u64 },
    /// No task waits any more: retire the contender in the server's queue.
    LeaveQueue,
    /// Watch for other contenders, during this tenure.
    WatchContenders { tenure: u64 },
    /// Measure the idle time of the node of this tenure.
    TimeIdle { tenure: u64 },
    /// Delete the node.
    Delete(N),
}

impl<N, W> SharingState<N, W> {
    pub(super) fn new(policy: HandOffPolicy, form: SharingForm) -> Self {
        let (slots, waiting) = (Slots::default(), VecDeque::new());
        Self { policy, form, slots, waiting, arrivals: 0, tenures: 0, common: None, watches: 0 }
    }

    /// Returns the number of the slot and the idle node, or a slot whose task enters the queue itself. `None`
    /// if the task has to wait.
    pub(super) fn take_slot(&mut self) -> Option<(u64, Option<N>)> {
        if let Some((node, tenure)) = self.slots.take_idle() {
            return Some((self.slots.open(Phase::Taken, Some(tenure)), Some(node)));
        }
        let may_enter = self.form == SharingForm::One && self.slots.is_empty();
        may_enter.then(|| (self.slots.open(Phase::Entering, None), None))
    }

    /// As [`take_slot`](Self::take_slot), for a task that does not wait: also where one contender enters the
    /// queue for all waiting tasks, this task enters it itself. `None` if another task is ahead.
    pub(super) fn take_slot_to_try(&mut self) -> Option<(u64, Option<N>)> {
        if let Some(taken) = self.take_slot() {
            return Some(taken);
        }
        let may_try = self.form == SharingForm::Many && self.waiting.is_empty();
        may_try.then(|| (self.slots.open(Phase::Taken, None), None))
    }

    /// A task waits for a slot. Returns its number.
    pub(super) fn wait(&mut self, wake: W, now: Duration) -> (u64, Vec<SharingEffect<N, W>>) {
        self.arrivals += 1;
        self.waiting.push_back(WaitingTask { number: self.arrivals, wake });
        let mut effects = Vec::new();
        if self.form == SharingForm::One {
            effects.extend(self.slots.held().and_then(|slot| self.watch(slot, now)));
        }
        effects.extend(self.enter_if_waited_for());
        (self.arrivals, effects)
    }

    /// Removes a waiting task. Returns false if a slot has been sent to it.
    pub(super) fn cancel_wait(&mut self, number: u64) -> bool {
        let position = self.position(number).ok();
        position.and_then(|position| self.waiting.remove(position)).is_some()
    }

    /// The number of tasks ahead of this one, including a task that has the slot.
    pub(super) fn ahead(&self, number: u64) -> u32 {
        let position = self.position(number).unwrap_or_else(|position| position);
        count_of(position).saturating_add(u32::from(self.form == SharingForm::One))
    }

    /// Retires the contender in the server's queue, if no task waits. Returns false if it is still needed.
    pub(super) fn retire_entry(&mut self, slot: u64) -> bool {
        self.waiting.is_empty() && {
            self.slots.close(slot);
            true
        }
    }

    /// The contender in the server's queue has failed. Returns the task that has waited longest: it fails as
    /// if it had entered the queue itself. End the slot afterwards.
    pub(super) fn fail_entry(&mut self, slot: u64) -> Option<W> {
        self.slots.get(slot)?;
        self.waiting.pop_front().map(|task| task.wake)
    }

    /// The contender in the server's queue has ended without a result: no task of this process can enter the
    /// queue for the waiting ones. Returns these.
    pub(super) fn abort_entry(&mut self, slot: u64) -> Vec<W> {
        match self.slots.close(slot) {
            Some(_) => self.waiting.drain(..).map(|task| task.wake).collect(),
            None => Vec::new(),
        }
    }

    /// The task with this slot has been granted a node. Returns the number of the tenure.
    pub(super) fn begin_tenure(&mut self, slot: u64) -> u64 {
        self.tenures += 1;
        if let Some(slot) = self.slots.get_mut(slot) {
            slot.tenure = Some(Tenure { number: self.tenures, contenders: KnownContenders::Unwatched });
        }
        self.tenures
    }

    /// The task with this slot has a guard.
    pub(super) fn mark_held(&mut self, slot: u64, now: Duration) -> Vec<SharingEffect<N, W>> {
        let Some(held) = self.slots.get_mut(slot) else { return Vec::new() };
        held.phase = Phase::Held;
        let is_waited_for = !self.waiting.is_empty();
        let watch = if is_waited_for { self.watch(slot, now) } else { None };
        watch.into_iter().collect()
    }

    /// The node is lost: its guard does not block the next task of this process.
    pub(super) fn mark_lost(&mut self, tenure: u64) -> Vec<SharingEffect<N, W>> {
        match self.slots.of_tenure(tenure) {
            Some(Slot { number, phase: Phase::Held, .. }) => self.delete_or_pass_slot(*number, None),
            _ => Vec::new(),
        }
    }

    /// The slot ends without a guard. The next task gets its node, or the node is deleted.
    pub(super) fn end_slot(&mut self, slot: u64, node: Option<N>) -> Vec<SharingEffect<N, W>> {
        if self.slots.get(slot).is_none() {
            return node.into_iter().map(SharingEffect::Delete).collect();
        }
        self.delete_or_pass_slot(slot, node)
    }

    /// A guard ends. Its node is handed off, or becomes idle while there is a clone of the lock, if `detach`
    /// returns it. Otherwise the caller releases the hold.
    pub(super) fn end_hold(
        &mut self,
        slot: u64,
        has_clones: bool,
        now: Duration,
        detach: impl FnOnce() -> Option<N>,
    ) -> Vec<SharingEffect<N, W>> {
        if self.slots.get(slot).is_none() {
            // The hold was lost, and its slot has ended since then.
            return Vec::new();
        }
        let is_waited_for = !self.waiting.is_empty();
        let mut effects = Vec::new();
        if is_waited_for || has_clones && !self.policy.idle_time.is_zero() {
            effects.extend(self.watch(slot, now));
        }
        let may_stay = match is_waited_for {
            true => self.contenders_of_slot(slot).is_some_and(|contenders| contenders.take_handoff(now)),
            false => has_clones && self.may_idle(slot),
        };
        let node = if may_stay { detach() } else { None };
        let (passed, unused) = self.pass_slot(slot, node);
        effects.extend(passed);
        if let Some((node, tenure)) = unused {
            effects.push(SharingEffect::TimeIdle { tenure: tenure.number });
            let until = now.saturating_add(self.policy.idle_time);
            self.slots.open(Phase::Idle(node, until), Some(tenure));
        }
        effects
    }

    /// A list showed no other contender (`true`), or that is no longer known (`false`).
    pub(super) fn set_alone(&mut self, tenure: u64, is_alone: bool, now: Duration) {
        let policy = self.policy;
        if let Some(contenders) = self.contenders_of(tenure) {
            contenders.set_alone(is_alone, policy, now);
        }
    }

    /// Another contender waits for this node.
    pub(super) fn mark_contended(&mut self, tenure: u64, now: Duration) -> Vec<SharingEffect<N, W>> {
        let policy = self.policy;
        let Some(contenders) = self.contenders_of(tenure) else { return Vec::new() };
        contenders.mark_contended(policy, now);
        self.end_idle(|of| of.number == tenure)
    }

    /// The contenders for this node are not watched any more.
    pub(super) fn mark_blind(&mut self, tenure: u64) -> Vec<SharingEffect<N, W>> {
        let Some(contenders) = self.contenders_of(tenure) else { return Vec::new() };
        *contenders = KnownContenders::WatchEnded;
        self.end_idle(|of| of.number == tenure)
    }

    /// Begins the watch that is common to all nodes, if there is none. Returns its number.
    pub(super) fn begin_common_watch(&mut self, now: Duration) -> Option<u64> {
        if self.common.is_some() {
            return None;
        }
        self.watches += 1;
        let mut contenders = KnownContenders::Unwatched;
        contenders.ask(self.policy, now);
        self.common = Some(CommonWatch { number: self.watches, contenders });
        Some(self.watches)
    }

    /// Ends the common watch if no node is left. Returns whether it has ended.
    pub(super) fn end_needless_watch(&mut self) -> bool {
        self.common.take_if(|_| !self.slots.has_tenure()).is_some()
    }

    /// As [`set_alone`](Self::set_alone), for all nodes.
    pub(super) fn set_all_alone(&mut self, watch: u64, is_alone: bool, now: Duration) {
        let policy = self.policy;
        self.for_all(watch, |contenders| contenders.set_alone(is_alone, policy, now));
    }

    /// As [`mark_contended`](Self::mark_contended), for all nodes.
    pub(super) fn mark_all_contended(&mut self, watch: u64, now: Duration) -> Vec<SharingEffect<N, W>> {
        let policy = self.policy;
        if !self.for_all(watch, |contenders| contenders.mark_contended(policy, now)) {
            return Vec::new();
        }
        self.end_idle(|_| true)
    }

    /// More nodes are in use than there may be: no node is handed off.
    pub(super) fn mark_exceeded(&mut self, watch: u64, now: Duration) -> Vec<SharingEffect<N, W>> {
        if !self.for_all(watch, |contenders| contenders.end_handoffs(now)) {
            return Vec::new();
        }
        self.end_idle(|_| true)
    }

    /// As [`mark_blind`](Self::mark_blind), for all nodes.
    pub(super) fn mark_all_blind(&mut self, watch: u64) -> Vec<SharingEffect<N, W>> {
        if !self.for_all(watch, |contenders| *contenders = KnownContenders::WatchEnded) {
            return Vec::new();
        }
        self.common = None;
        self.end_idle(|_| true)
    }

    /// Deletes the idle nodes: a request of this process needs what they take.
    pub(super) fn end_all_idle(&mut self) -> Vec<SharingEffect<N, W>> {
        self.end_idle(|_| true)
    }

    /// The end of the idle time of this tenure's node, if the node is idle.
    pub(super) fn idle_until(&self, tenure: u64) -> Option<Duration> {
        match self.slots.of_tenure(tenure)?.phase {
            Phase::Idle(_, until) => Some(until),
            _ => None,
        }
    }

    /// Ends the idle time of this tenure's node, if it is over.
    pub(super) fn end_idle_time(&mut self, tenure: u64, now: Duration) -> Vec<SharingEffect<N, W>> {
        let is_over = self.idle_until(tenure).is_some_and(|until| now >= until);
        if is_over { self.end_idle(|of| of.number == tenure) } else { Vec::new() }
    }

    fn end_idle(&mut self, is_of: impl Fn(&Tenure) -> bool) -> Vec<SharingEffect<N, W>> {
        self.slots.end_idle(is_of).into_iter().map(SharingEffect::Delete).collect()
    }

    /// A second guard needs the node that is held: from then on, other contenders are watched.
    fn watch(&mut self, slot: u64, now: Duration) -> Option<SharingEffect<N, W>> {
        let (policy, common) = (self.policy, self.common);
        let Slot { phase: Phase::Held, tenure: Some(tenure), .. } = self.slots.get_mut(slot)? else {
            return None;
        };
        let has_to_start = tenure.contenders.ask(policy, now);
        if has_to_start && let Some(common) = common {
            tenure.contenders.learn(common.contenders, policy, now);
        }
        has_to_start.then_some(SharingEffect::WatchContenders { tenure: tenure.number })
    }

    fn may_idle(&self, slot: u64) -> bool {
        let tenure = self.slots.get(slot).and_then(|slot| slot.tenure);
        !self.policy.idle_time.is_zero() && tenure.is_some_and(|tenure| tenure.contenders.may_idle())
    }

    fn delete_or_pass_slot(&mut self, slot: u64, node: Option<N>) -> Vec<SharingEffect<N, W>> {
        let (mut effects, unused) = self.pass_slot(slot, node);
        effects.extend(unused.map(|(node, _)| SharingEffect::Delete(node)));
        effects
    }

    /// Ends the slot, and gives the next waiting task a new one, with the node. Returns the node if no task
    /// waits.
    #[expect(clippy::type_complexity, reason = "the node and its tenure")]
    fn pass_slot(&mut self, slot: u64, node: Option<N>) -> (Vec<SharingEffect<N, W>>, Option<(N, Tenure)>) {
        let tenure = self.slots.close(slot).and_then(|slot| slot.tenure);
        let phase = if node.is_some() { Phase::Taken } else { Phase::Entering };
        let has_slot = node.is_some() || self.form == SharingForm::One;
        let mut effects = Vec::new();
        match if has_slot { self.waiting.pop_front() } else { None } {
            Some(WaitingTask { wake, .. }) => {
                let slot = self.slots.open(phase, tenure.filter(|_| node.is_some()));
                effects.push(SharingEffect::SendSlot { wake, slot, node });
                let is_needless = self.waiting.is_empty() && self.slots.has_entering();
                if self.form == SharingForm::Many && is_needless {
                    effects.push(SharingEffect::LeaveQueue);
                }
                effects.extend(self.enter_if_waited_for());
                (effects, None)
            }
            None => {
                effects.extend(self.enter_if_waited_for());
                (effects, node.zip(tenure))
            }
        }
    }

    /// One contender of the process enters the queue as long as a task waits.
    fn enter_if_waited_for(&mut self) -> Option<SharingEffect<N, W>> {
        let is_needed =
            self.form == SharingForm::Many && !self.waiting.is_empty() && !self.slots.has_entering();
        is_needed.then(|| SharingEffect::EnterQueue { slot: self.slots.open(Phase::Entering, None) })
    }

    fn position(&self, number: u64) -> Result<usize, usize> {
        self.waiting.binary_search_by_key(&number, |task| task.number)
    }

    fn contenders_of(&mut self, tenure: u64) -> Option<&mut KnownContenders> {
        let number = self.slots.of_tenure(tenure)?.number;
        self.contenders_of_slot(number)
    }

    fn contenders_of_slot(&mut self, slot: u64) -> Option<&mut KnownContenders> {
        self.slots.get_mut(slot)?.tenure.as_mut().map(|tenure| &mut tenure.contenders)
    }

    /// Changes what the common watch shows, and what is known of each node. Returns false for another watch.
    fn for_all(&mut self, watch: u64, change: impl Fn(&mut KnownContenders)) -> bool {
        let Some(common) = self.common.as_mut().filter(|common| common.number == watch) else { return false };
        change(&mut common.contenders);
        self.slots.tenures_mut().for_each(|tenure| change(&mut tenure.contenders));
        true
    }
}
