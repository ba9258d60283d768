//! The decisions of sharing: which task holds next, whether it gets a node, and when a node is deleted.
//! Pure: events go in, and effects come out. The caller measures the time and carries out the effects.

use std::collections::VecDeque;
use std::time::Duration;

use lockkeeper_core::count_of;

use super::hand_off_policy::HandOffPolicy;
use super::known_contenders::KnownContenders;
use super::node_slots::{NodeSlot, NodeSlots, SlotPhase, Tenure};

/// The state that the tasks of one lock share. `N` is a node between two guards, `W` wakes a task.
///
/// Times count from an instant that the caller chooses once.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct SharingState<N, W> {
    pub(super) policy: HandOffPolicy,
    form: SharingForm,
    pub(super) slots: NodeSlots<N>,
    /// The waiting tasks. The one that has waited longest is first.
    waiting: VecDeque<WaitingTask<W>>,
    arrivals: u64,
    tenures: u64,
    /// The watch of the queue that is common to all nodes.
    pub(super) common: Option<CommonWatchState>,
    pub(super) watches: u64,
}

/// How many nodes the process has, and which task enters the server's queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum SharingForm {
    /// One node at a time: a task that finds no node enters the queue, for all waiting tasks.
    One,
    /// Any number of nodes, each for one guard at a time. One contender of the process enters the queue as
    /// long as a task waits, and each node that it is granted is for the task that has waited longest.
    Many,
    /// Nodes that readers hold beside each other. A reader joins the guards of the node that is held, as long
    /// as no writer waits. A reader that finds no node enters the queue, and the next ones wait for it.
    Readers,
}

/// What the watch of a queue shows that is common to all nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct CommonWatchState {
    pub(super) number: u64,
    pub(super) contenders: KnownContenders,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct WaitingTask<W> {
    number: u64,
    wake: W,
}

/// What the caller has to do, without the lock of the state.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum SharingEffect<N, W> {
    /// A node is held that the task may join: it tries again.
    TryAgain { wake: W },
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
        let (slots, waiting) = (NodeSlots::default(), VecDeque::new());
        Self { policy, form, slots, waiting, arrivals: 0, tenures: 0, common: None, watches: 0 }
    }

    /// Returns the number of the slot and the idle node, or a slot whose task enters the queue itself. `None`
    /// if the task has to wait.
    pub(super) fn take_slot(&mut self) -> Option<(u64, Option<N>)> {
        if let Some((node, tenure)) = self.slots.take_idle() {
            return Some((self.slots.open(SlotPhase::Taken, Some(tenure)), Some(node)));
        }
        let may_enter = match self.form {
            SharingForm::One => self.slots.is_empty(),
            SharingForm::Many => false,
            SharingForm::Readers => !self.slots.has_unheld(),
        };
        may_enter.then(|| (self.slots.open(SlotPhase::Entering, None), None))
    }

    /// A reader joins the guards of the node that was granted last, if no writer waits. Returns the slot.
    pub(super) fn join(&mut self, now: Duration) -> (Option<u64>, Option<SharingEffect<N, W>>) {
        if self.form != SharingForm::Readers {
            return (None, None);
        }
        let Some(slot) = self.slots.held() else { return (None, None) };
        let watch = self.watch(slot, now);
        let may_join = self.contenders_of_slot(slot).is_some_and(|contenders| contenders.take_handoff(now));
        (may_join.then_some(slot), watch)
    }

    /// As [`take_slot`](Self::take_slot), for a task that does not wait: also where one contender enters the
    /// queue for all waiting tasks, this task enters it itself. `None` if another task is ahead.
    pub(super) fn take_slot_to_try(&mut self) -> Option<(u64, Option<N>)> {
        if let Some(taken) = self.take_slot() {
            return Some(taken);
        }
        let may_try = self.form == SharingForm::Many && self.waiting.is_empty();
        may_try.then(|| (self.slots.open(SlotPhase::Taken, None), None))
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
        count_of(position).saturating_add(u32::from(self.form != SharingForm::Many))
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
        held.phase = SlotPhase::Held;
        if self.form == SharingForm::Readers {
            return self.waiting.drain(..).map(|task| SharingEffect::TryAgain { wake: task.wake }).collect();
        }
        let is_waited_for = !self.waiting.is_empty();
        let watch = if is_waited_for { self.watch(slot, now) } else { None };
        watch.into_iter().collect()
    }

    /// The node is lost: its guard does not block the next task of this process.
    pub(super) fn mark_lost(&mut self, tenure: u64) -> Vec<SharingEffect<N, W>> {
        match self.slots.of_tenure(tenure) {
            Some(NodeSlot { number, phase: SlotPhase::Held, .. }) => self.delete_or_pass_slot(*number, None),
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
        // If the hold was lost, its slot has ended since then: it has no tenure, and nothing follows.
        // A reader that waits has its own reason to wait for another node.
        let is_waited_for = !self.waiting.is_empty() && self.form != SharingForm::Readers;
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
            self.slots.open(SlotPhase::Idle(node, until), Some(tenure));
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
        if self.form == SharingForm::Readers {
            // A writer waits for the readers that are there.
            return self.end_sharing(tenure);
        }
        let policy = self.policy;
        let Some(contenders) = self.contenders_of(tenure) else { return Vec::new() };
        contenders.mark_contended(policy, now);
        self.end_idle(|of| of.number == tenure)
    }

    /// This node is for its present guards alone: the contenders for it are not watched any more, or a
    /// contender needs the node's end.
    pub(super) fn end_sharing(&mut self, tenure: u64) -> Vec<SharingEffect<N, W>> {
        let Some(contenders) = self.contenders_of(tenure) else { return Vec::new() };
        *contenders = KnownContenders::Ended;
        self.end_idle(|of| of.number == tenure)
    }

    /// As [`end_sharing`](Self::end_sharing), for all nodes.
    pub(super) fn end_all_sharing(&mut self) -> Vec<SharingEffect<N, W>> {
        self.slots.tenures_mut().for_each(|tenure| tenure.contenders = KnownContenders::Ended);
        self.end_idle(|_| true)
    }

    /// Deletes the idle nodes: a request of this process needs what they take.
    pub(super) fn end_all_idle(&mut self) -> Vec<SharingEffect<N, W>> {
        self.end_idle(|_| true)
    }

    /// The end of the idle time of this tenure's node, if the node is idle.
    pub(super) fn idle_until(&self, tenure: u64) -> Option<Duration> {
        match self.slots.of_tenure(tenure)?.phase {
            SlotPhase::Idle(_, until) => Some(until),
            _ => None,
        }
    }

    /// Ends the idle time of this tenure's node, if it is over.
    pub(super) fn end_idle_time(&mut self, tenure: u64, now: Duration) -> Vec<SharingEffect<N, W>> {
        let is_over = self.idle_until(tenure).is_some_and(|until| now >= until);
        if is_over { self.end_idle(|of| of.number == tenure) } else { Vec::new() }
    }

    pub(super) fn end_idle(&mut self, is_of: impl Fn(&Tenure) -> bool) -> Vec<SharingEffect<N, W>> {
        self.slots.end_idle(is_of).into_iter().map(SharingEffect::Delete).collect()
    }

    /// A second guard needs the node that is held: from then on, other contenders are watched.
    fn watch(&mut self, slot: u64, now: Duration) -> Option<SharingEffect<N, W>> {
        let (policy, common) = (self.policy, self.common);
        let NodeSlot { phase: SlotPhase::Held, tenure: Some(tenure), .. } = self.slots.get_mut(slot)? else {
            return None;
        };
        let has_to_start = tenure.contenders.ask(policy, now);
        if let Some(common) = common.filter(|_| has_to_start) {
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
        let Some(NodeSlot { phase: ended, tenure, .. }) = self.slots.close(slot) else {
            return (Vec::new(), None);
        };
        let phase = if node.is_some() { SlotPhase::Taken } else { SlotPhase::Entering };
        let has_slot = match self.form {
            SharingForm::One => true,
            SharingForm::Many => node.is_some(),
            // Readers wait for a reader that has no guard yet.
            SharingForm::Readers => !matches!(ended, SlotPhase::Held),
        };
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
        is_needed.then(|| SharingEffect::EnterQueue { slot: self.slots.open(SlotPhase::Entering, None) })
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
}
