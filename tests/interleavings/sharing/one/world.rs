//! Three tasks that share a node, the server's queue, and the task that watches each tenure.

use std::time::Duration;

use super::Scenario;
use crate::sharing::HandOffPolicy;
use crate::sharing::decide::{SharingForm, SharingState};

/// A mistake of the code around the state, so that the exploration is seen to find it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mistake {
    /// A guard ends the slot of any task, as without the comparison `self.slot != slot`.
    AnySlotEnds,
    /// A loss before the slot is marked as held is not looked for.
    NoLossCheck,
    /// A slot that cannot be sent does not end.
    LostSlot,
    /// The slot goes to the task that arrived last.
    LastFirst,
    /// The hand-offs from before a contender is seen do not count.
    BudgetAnew,
    DeleteForgotten,
    /// The end of the watching task is not reported.
    WatcherEndsSilently,
    IdleWithoutClones,
}

/// How often each fault strikes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Faults {
    pub(super) cancels: u8,
    pub(super) losses: u8,
    /// Watching tasks that end with their runtime.
    pub(super) blinds: u8,
    /// Clones of the mutex that are dropped before the last guard of their task ends.
    pub(super) early_drops: u8,
}

/// A node in the server's queue, and its tenure; zero before the grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Node {
    pub(super) id: u8,
    pub(super) tenure: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Contender {
    Own(u8),
    Foreign,
}

/// Where a task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum At {
    Start,
    Waiting(u64),
    /// The slot was sent to the task, which has not seen it yet.
    Sent(u64, Option<Node>),
    HasSlot(u64, Option<Node>),
    Queued(u64, Node),
    /// Granted, and not marked as held yet.
    Unbound(u64, Node),
    /// Marked as held. The task has not checked yet whether the node is lost.
    Marked(u64, Node),
    Holding(u64, Node),
    /// The guard ends. The task keeps the state alive meanwhile.
    Ending(u64, Node),
    Releasing(Node),
    Done,
}

/// The watching task of a tenure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Watcher {
    pub(super) node: u8,
    pub(super) is_alive: bool,
    pub(super) is_asked: bool,
    pub(super) is_timing: bool,
    pub(super) has_reported_loss: bool,
    pub(super) answer: Answer,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Answer {
    None,
    Alone,
    Contended,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Step(usize),
    /// A slot arrives at its task, or the task has ended.
    Deliver,
    Watch(u64),
    ReportLoss(u64),
    EndWatcher(u64),
    EndIdleTime(u64),
    Tick,
    LeaveForeign,
    EnterForeign,
    Cancel(usize),
    Lose(u8),
    DropClone(usize),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct World {
    /// Dropped with the last clone of the mutex.
    pub(super) state: Option<SharingState<Node, usize>>,
    pub(super) at: [At; 3],
    rounds: [u8; 3],
    pub(super) has_clone: [bool; 3],
    /// A slot that is being sent, without the lock of the state.
    pub(super) sending: Vec<(usize, u64, Option<Node>)>,
    pub(super) queue: Vec<Contender>,
    /// By tenure.
    pub(super) watchers: Vec<Watcher>,
    has_entered_foreign: bool,
    pub(super) now: u64,
    nodes: u8,
    pub(super) used: Faults,
    /// The waiting tasks in the order of their calls.
    pub(super) arrivals: Vec<usize>,
    /// The hand-offs since other contenders may wait, and the time of it.
    pub(super) handoffs: Option<(u32, u64)>,
    pub(super) last_slot: u64,
    pub(super) violation: Option<&'static str>,
}

/// The policy's times, in ticks of a second.
pub(super) const MAX_TIME: u64 = 1;

impl World {
    pub(super) fn new(scenario: &Scenario) -> Self {
        let policy = HandOffPolicy::default().max_handoffs(scenario.max_handoffs);
        let policy = policy.max_time(Duration::from_secs(MAX_TIME)).idle_time(Duration::from_secs(1));
        Self {
            state: Some(SharingState::new(policy, SharingForm::One)),
            at: [At::Start; 3],
            rounds: scenario.rounds,
            has_clone: [true; 3],
            sending: Vec::new(),
            queue: Vec::new(),
            watchers: Vec::new(),
            has_entered_foreign: false,
            now: 0,
            nodes: 0,
            used: Faults::default(),
            arrivals: Vec::new(),
            handoffs: None,
            last_slot: 0,
            violation: None,
        }
    }

    pub(super) fn progress(&self, actions: &mut Vec<Action>) {
        for task in 0..self.at.len() {
            let is_enabled = match self.at[task] {
                At::Waiting(_) => false,
                At::Queued(_, node) => self.queue.first() == Some(&Contender::Own(node.id)),
                At::Done => self.has_clone[task],
                _ => true,
            };
            if is_enabled {
                actions.push(Action::Step(task));
            }
        }
        if !self.sending.is_empty() {
            actions.push(Action::Deliver);
        }
        if self.queue.first() == Some(&Contender::Foreign) {
            actions.push(Action::LeaveForeign);
        }
        for (tenure, watcher) in (1..).zip(&self.watchers).filter(|(_, watcher)| watcher.is_alive) {
            let exists = self.exists(watcher.node);
            if !exists && !watcher.has_reported_loss {
                actions.push(Action::ReportLoss(tenure));
            }
            if watcher.has_reported_loss || !self.has_tenure(tenure) {
                actions.push(Action::EndWatcher(tenure));
                continue;
            }
            let can_answer = match watcher.answer {
                Answer::None => true,
                Answer::Alone => self.is_contended(),
                Answer::Contended => false,
            };
            if watcher.is_asked && exists && can_answer {
                actions.push(Action::Watch(tenure));
            }
            match self.idle_until(tenure) {
                Some(until) if until > self.now => actions.push(Action::Tick),
                Some(_) if watcher.is_timing => actions.push(Action::EndIdleTime(tenure)),
                _ => {}
            }
        }
    }

    pub(super) fn chance(&self, scenario: &Scenario, actions: &mut Vec<Action>) {
        let (used, faults) = (self.used, scenario.faults);
        if scenario.has_foreign && !self.has_entered_foreign {
            actions.push(Action::EnterForeign);
        }
        if self.handoffs.is_some_and(|(_, since)| self.now == since) {
            actions.push(Action::Tick);
        }
        for (task, at) in self.at.iter().enumerate() {
            let can_cancel = matches!(at, At::Waiting(_) | At::Sent(..) | At::HasSlot(..) | At::Queued(..));
            if can_cancel && used.cancels < faults.cancels {
                actions.push(Action::Cancel(task));
            }
            let is_in_call = can_cancel || matches!(at, At::Unbound(..) | At::Marked(..) | At::Done);
            if !is_in_call && self.has_clone[task] && used.early_drops < faults.early_drops {
                actions.push(Action::DropClone(task));
            }
        }
        for (tenure, watcher) in (1..).zip(&self.watchers) {
            if self.exists(watcher.node) && used.losses < faults.losses {
                actions.push(Action::Lose(watcher.node));
            }
            if watcher.is_alive && used.blinds < faults.blinds {
                actions.push(Action::EndWatcher(tenure));
            }
        }
    }

    pub(super) fn step(&mut self, scenario: &Scenario, action: &Action) {
        match *action {
            Action::Step(task) => self.step_task(scenario, task),
            Action::Deliver => self.deliver(scenario),
            Action::Watch(tenure) => self.watch(scenario, tenure),
            Action::ReportLoss(tenure) => {
                self.watcher(tenure).has_reported_loss = true;
                self.change(scenario, |state, _| state.mark_lost(tenure));
            }
            Action::EndWatcher(tenure) => {
                if self.has_tenure(tenure) && !self.watcher(tenure).has_reported_loss {
                    self.used.blinds += 1;
                }
                self.watcher(tenure).is_alive = false;
                if scenario.mistake != Some(Mistake::WatcherEndsSilently) {
                    self.change(scenario, |state, _| state.end_sharing(tenure));
                }
            }
            Action::EndIdleTime(tenure) => {
                self.change(scenario, |state, now| state.end_idle_time(tenure, now));
            }
            Action::Tick => self.now += 1,
            Action::LeaveForeign => drop(self.queue.remove(0)),
            Action::EnterForeign => {
                self.has_entered_foreign = true;
                self.queue.push(Contender::Foreign);
            }
            Action::Cancel(task) => self.cancel(scenario, task),
            Action::Lose(node) => {
                self.used.losses += 1;
                self.delete(node);
            }
            Action::DropClone(task) => {
                self.used.early_drops += 1;
                self.has_clone[task] = false;
                // Without a clone there is no further acquire.
                match self.at[task] {
                    At::Start => self.at[task] = At::Done,
                    _ => self.rounds[task] = 1,
                }
            }
        }
        self.drop_unused_state();
    }

    fn step_task(&mut self, scenario: &Scenario, task: usize) {
        self.at[task] = match self.at[task] {
            At::Start if self.rounds[task] == 0 => At::Done,
            At::Start => self.acquire(scenario, task),
            At::Sent(slot, node) => At::HasSlot(slot, node),
            At::HasSlot(slot, Some(node)) if self.exists(node.id) => At::Unbound(slot, node),
            At::HasSlot(slot, Some(_)) => At::HasSlot(slot, None),
            At::HasSlot(slot, None) => {
                self.nodes += 1;
                self.queue.push(Contender::Own(self.nodes));
                At::Queued(slot, Node { id: self.nodes, tenure: 0 })
            }
            At::Queued(slot, Node { id, .. }) => {
                let tenure = self.state.as_mut().map_or(0, |state| state.begin_tenure(slot));
                let (is_asked, is_timing, has_reported_loss) = (false, false, false);
                let answer = Answer::None;
                let is_alive = true;
                self.watchers.push(Watcher {
                    node: id,
                    is_alive,
                    is_asked,
                    is_timing,
                    has_reported_loss,
                    answer,
                });
                self.handoffs = None;
                At::Unbound(slot, Node { id, tenure })
            }
            At::Unbound(slot, node) => {
                self.change(scenario, |state, now| state.mark_held(slot, now));
                At::Marked(slot, node)
            }
            At::Marked(slot, node) => {
                if !self.exists(node.id) && scenario.mistake != Some(Mistake::NoLossCheck) {
                    self.change(scenario, |state, _| state.mark_lost(node.tenure));
                }
                At::Holding(slot, node)
            }
            At::Holding(_, node) if self.state.is_none() => At::Releasing(node),
            At::Holding(slot, node) => At::Ending(slot, node),
            At::Ending(slot, node) => self.end_hold(scenario, task, slot, node),
            At::Releasing(node) => {
                self.delete(node.id);
                self.end_round(task)
            }
            At::Done => {
                self.has_clone[task] = false;
                At::Done
            }
            at @ At::Waiting(_) => at,
        };
    }

    fn acquire(&mut self, scenario: &Scenario, task: usize) -> At {
        let Some(state) = &mut self.state else { return At::Done };
        if let Some((slot, node)) = state.take_slot() {
            self.last_slot = slot;
            return At::HasSlot(slot, node);
        }
        self.arrivals.push(task);
        let mut number = 0;
        self.change(scenario, |state, now| {
            let (waiter, effects) = state.wait(task, now);
            number = waiter;
            effects
        });
        At::Waiting(number)
    }

    fn end_hold(&mut self, scenario: &Scenario, task: usize, slot: u64, node: Node) -> At {
        let has_clones = self.has_clone.contains(&true);
        let claims_clones = has_clones || scenario.mistake == Some(Mistake::IdleWithoutClones);
        let slot = if scenario.mistake == Some(Mistake::AnySlotEnds) { self.last_slot } else { slot };
        let (exists, mut is_detached) = (self.exists(node.id), false);
        let sent = self.change(scenario, |state, now| {
            state.end_hold(slot, claims_clones, now, || {
                is_detached = exists;
                exists.then_some(node)
            })
        });
        if is_detached && sent {
            self.count_handoff(scenario);
        }
        if is_detached && !sent && !has_clones {
            self.violation = Some("a node is idle that no task can acquire");
        }
        if is_detached { self.end_round(task) } else { At::Releasing(node) }
    }

    fn end_round(&mut self, task: usize) -> At {
        self.rounds[task] -= 1;
        if self.rounds[task] == 0 { At::Done } else { At::Start }
    }

    fn cancel(&mut self, scenario: &Scenario, task: usize) {
        self.used.cancels += 1;
        match std::mem::replace(&mut self.at[task], At::Done) {
            At::Waiting(number) => {
                if self.state.as_mut().is_some_and(|state| state.cancel_wait(number)) {
                    self.arrivals.retain(|waiting| *waiting != task);
                }
            }
            At::Sent(slot, node) | At::HasSlot(slot, node) => self.end_slot(scenario, slot, node),
            At::Queued(slot, node) => {
                self.delete(node.id);
                self.end_slot(scenario, slot, None);
            }
            at => panic!("{at:?} has nothing to cancel"),
        }
    }
}
