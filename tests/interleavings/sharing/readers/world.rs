//! Three readers that share a node, the server's queue, and the task that watches each tenure.

use std::time::Duration;

use super::{Scenario, Writer};
use crate::sharing::HandOffPolicy;
use crate::sharing::decide::{SharingEffect, SharingForm, SharingState};

/// How often each fault strikes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Faults {
    pub(super) cancels: u8,
    pub(super) losses: u8,
    /// Watching tasks that end with their runtime.
    pub(super) blinds: u8,
}

pub(super) const NO_FAULTS: Faults = Faults { cancels: 0, losses: 0, blinds: 0 };

/// A mistake of the code around the state, so that the exploration is seen to find it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mistake {
    /// The first guard that ends gives the node up.
    FirstGuardEnds,
    /// The tasks that wait for the first reader are not woken.
    NeverWoken,
    /// A reader joins without regard to the state.
    JoinsAlways,
    DeleteForgotten,
}

pub(super) const MAX_HANDOFFS: u32 = 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Node {
    pub(super) id: u8,
    pub(super) tenure: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum At {
    Start,
    Waiting(u64),
    HasSlot(u64, Option<Node>),
    Queued(u64, Node),
    /// Granted, and not marked as held yet.
    Unbound(u64, Node),
    Holding(u64, Node),
    Releasing(Node),
    Done,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Contender {
    Reader(u8),
    Writer,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Answer {
    Unknown,
    NoWriter,
    Writer,
}

/// What is known of one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Watcher {
    pub(super) node: Node,
    pub(super) is_asked: bool,
    pub(super) has_ended: bool,
    pub(super) has_reported_loss: bool,
    pub(super) answer: Answer,
    /// The readers that have joined since a writer may wait.
    pub(super) joins: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Step(usize),
    Watch(usize),
    ReportLoss(usize),
    EndWatcher(usize),
    EndIdleTime(usize),
    Tick,
    EnterWriter,
    LeaveWriter,
    Cancel(usize),
    Lose(Node),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct World {
    pub(super) state: SharingState<Node, usize>,
    pub(super) at: [At; 3],
    pub(super) rounds: [u8; 3],
    /// The node that was granted last, with its slot.
    pub(super) newest: Option<(u64, Node)>,
    pub(super) queue: Vec<Contender>,
    pub(super) watchers: Vec<Watcher>,
    pub(super) has_entered_writer: bool,
    pub(super) now: u64,
    pub(super) nodes: u8,
    pub(super) used: Faults,
    pub(super) violation: Option<&'static str>,
}

pub(super) type Effects = Vec<SharingEffect<Node, usize>>;

impl World {
    pub(super) fn new(scenario: &Scenario) -> Self {
        let policy = HandOffPolicy::default().max_handoffs(MAX_HANDOFFS).max_time(Duration::from_secs(2));
        Self {
            state: SharingState::new(policy.idle_time(Duration::from_secs(1)), SharingForm::Readers),
            at: [At::Start; 3],
            rounds: scenario.rounds,
            newest: None,
            queue: Vec::new(),
            watchers: Vec::new(),
            has_entered_writer: false,
            now: 0,
            nodes: 0,
            used: NO_FAULTS,
            violation: None,
        }
    }

    pub(super) fn progress(&self, actions: &mut Vec<Action>) {
        for (task, at) in self.at.iter().enumerate() {
            let is_enabled = match *at {
                At::Waiting(_) | At::Done => false,
                At::Queued(_, node) => self.is_granted(node) || !self.exists(node),
                _ => true,
            };
            if is_enabled {
                actions.push(Action::Step(task));
            }
        }
        if self.queue.first() == Some(&Contender::Writer) {
            actions.push(Action::LeaveWriter);
        }
        for (number, watcher) in self.watchers.iter().enumerate() {
            let exists = self.exists(watcher.node);
            if !exists && !watcher.has_reported_loss && !watcher.has_ended {
                actions.push(Action::ReportLoss(number));
            }
            let seen =
                if self.queue.contains(&Contender::Writer) { Answer::Writer } else { Answer::NoWriter };
            let can_answer = watcher.answer != Answer::Writer && watcher.answer != seen;
            if watcher.is_asked && !watcher.has_ended && exists && can_answer {
                actions.push(Action::Watch(number));
            }
            match self.state.idle_until(watcher.node.tenure) {
                Some(until) if until.as_secs() > self.now => actions.push(Action::Tick),
                Some(_) => actions.push(Action::EndIdleTime(number)),
                None => {}
            }
        }
    }

    pub(super) fn chance(&self, scenario: &Scenario, actions: &mut Vec<Action>) {
        let (used, faults) = (self.used, scenario.faults);
        if scenario.writer != Writer::None && !self.has_entered_writer {
            actions.push(Action::EnterWriter);
        }
        for (task, at) in self.at.iter().enumerate() {
            let can_cancel = matches!(at, At::Waiting(_) | At::HasSlot(..) | At::Queued(..));
            if can_cancel && used.cancels < faults.cancels {
                actions.push(Action::Cancel(task));
            }
        }
        for (number, watcher) in self.watchers.iter().enumerate() {
            if self.exists(watcher.node) && used.losses < faults.losses {
                actions.push(Action::Lose(watcher.node));
            }
            if !watcher.has_ended && used.blinds < faults.blinds {
                actions.push(Action::EndWatcher(number));
            }
        }
    }

    pub(super) fn step(&mut self, scenario: &Scenario, action: Action) {
        match action {
            Action::Step(task) => self.step_task(scenario, task),
            Action::Watch(number) => {
                let has_writer = self.queue.contains(&Contender::Writer);
                let watcher = &mut self.watchers[number];
                watcher.answer = if has_writer { Answer::Writer } else { Answer::NoWriter };
                let tenure = watcher.node.tenure;
                self.change(scenario, |state, now| match has_writer {
                    true => state.mark_contended(tenure, now),
                    false => {
                        state.set_alone(tenure, true, now);
                        Vec::new()
                    }
                });
            }
            Action::ReportLoss(number) => {
                self.watchers[number].has_reported_loss = true;
                let tenure = self.watchers[number].node.tenure;
                self.change(scenario, |state, _| state.mark_lost(tenure));
            }
            Action::EndWatcher(number) => {
                self.used.blinds += 1;
                self.watchers[number].has_ended = true;
                let tenure = self.watchers[number].node.tenure;
                self.change(scenario, |state, _| state.end_sharing(tenure));
            }
            Action::EndIdleTime(number) => {
                let tenure = self.watchers[number].node.tenure;
                self.change(scenario, |state, now| state.end_idle_time(tenure, now));
            }
            Action::Tick => self.now += 1,
            Action::EnterWriter => {
                self.has_entered_writer = true;
                if scenario.writer == Writer::OfThisProcess {
                    self.watchers.iter_mut().for_each(|watcher| watcher.answer = Answer::Writer);
                    self.change(scenario, |state, _| state.end_all_sharing());
                }
                self.queue.push(Contender::Writer);
            }
            Action::LeaveWriter => drop(self.queue.remove(0)),
            Action::Cancel(task) => {
                self.used.cancels += 1;
                match std::mem::replace(&mut self.at[task], At::Done) {
                    At::Waiting(number) => drop(self.state.cancel_wait(number)),
                    At::HasSlot(slot, node) => self.change(scenario, |state, _| state.end_slot(slot, node)),
                    At::Queued(slot, node) => {
                        self.delete(node);
                        self.change(scenario, |state, _| state.end_slot(slot, None));
                    }
                    at => panic!("{at:?} has nothing to cancel"),
                }
            }
            Action::Lose(node) => {
                self.used.losses += 1;
                self.delete(node);
            }
        }
    }

    pub(super) fn step_task(&mut self, scenario: &Scenario, task: usize) {
        self.at[task] = match self.at[task] {
            At::Start if self.rounds[task] == 0 => At::Done,
            At::Start => self.begin(scenario, task),
            At::HasSlot(slot, Some(node)) if self.exists(node) => At::Unbound(slot, node),
            At::HasSlot(slot, _) => {
                self.nodes += 1;
                self.queue.push(Contender::Reader(self.nodes));
                At::Queued(slot, Node { id: self.nodes, tenure: 0 })
            }
            At::Queued(slot, node) if !self.exists(node) => At::HasSlot(slot, None),
            At::Queued(slot, Node { id, .. }) => {
                let node = Node { id, tenure: self.state.begin_tenure(slot) };
                let (is_asked, has_ended, has_reported_loss) = (false, false, false);
                let (answer, joins) = (Answer::Unknown, 0);
                self.watchers.push(Watcher { node, is_asked, has_ended, has_reported_loss, answer, joins });
                At::Unbound(slot, node)
            }
            At::Unbound(slot, node) => {
                self.newest = Some((slot, node));
                self.change(scenario, |state, now| state.mark_held(slot, now));
                if !self.exists(node) {
                    self.change(scenario, |state, _| state.mark_lost(node.tenure));
                }
                At::Holding(slot, node)
            }
            At::Holding(slot, node) => self.end_guard(scenario, task, slot, node),
            At::Releasing(node) => {
                self.delete(node);
                self.end_round(task)
            }
            at @ (At::Waiting(_) | At::Done) => at,
        };
    }

    /// Joins, takes a slot, or waits, in one step.
    pub(super) fn begin(&mut self, scenario: &Scenario, task: usize) -> At {
        let mut joinable = None;
        self.change(scenario, |state, now| {
            let (slot, effect) = state.join(now);
            joinable = slot;
            Vec::from_iter(effect)
        });
        if scenario.mistake == Some(Mistake::JoinsAlways) {
            joinable = self.newest.map(|(slot, _)| slot);
        }
        if let Some((slot, node)) = self.newest.filter(|(slot, _)| joinable == Some(*slot))
            && self.guards(slot) > 0
            && self.exists(node)
        {
            self.count_join(node);
            return At::Holding(slot, node);
        }
        if let Some((slot, node)) = self.state.take_slot() {
            return At::HasSlot(slot, node);
        }
        let mut number = 0;
        self.change(scenario, |state, now| {
            let (waiter, effects) = state.wait(task, now);
            number = waiter;
            effects
        });
        At::Waiting(number)
    }

    pub(super) fn end_guard(&mut self, scenario: &Scenario, task: usize, slot: u64, node: Node) -> At {
        let is_last = self.guards(slot) == 1 || scenario.mistake == Some(Mistake::FirstGuardEnds);
        if !is_last {
            return self.end_round(task);
        }
        let (exists, mut is_detached) = (self.exists(node), false);
        self.at[task] = At::Releasing(node);
        self.change(scenario, |state, now| {
            state.end_hold(slot, true, now, || {
                is_detached = exists;
                exists.then_some(node)
            })
        });
        if is_detached { self.end_round(task) } else { At::Releasing(node) }
    }

    pub(super) fn end_round(&mut self, task: usize) -> At {
        self.rounds[task] -= 1;
        if self.rounds[task] == 0 { At::Done } else { At::Start }
    }
}
