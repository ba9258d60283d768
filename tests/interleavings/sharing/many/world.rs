//! Three tasks that share permits, the contender that waits for them, and the server's queue.

use std::time::Duration;

use super::Scenario;
use crate::sharing::HandOffPolicy;
use crate::sharing::decide::{SharingForm, SharingState};

/// How often each fault strikes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Faults {
    pub(super) cancels: u8,
    pub(super) losses: u8,
    /// Watches that end with their runtime.
    pub(super) blinds: u8,
    /// Contenders in the queue that fail, or that end with their runtime.
    pub(super) failures: u8,
}

pub(super) const NO_FAULTS: Faults = Faults { cancels: 0, losses: 0, blinds: 0, failures: 0 };

/// A mistake of the code around the state, so that the exploration is seen to find it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mistake {
    /// A slot that cannot be sent does not end.
    LostSlot,
    /// A contender that has failed ends without a word.
    FailsSilently,
    DeleteForgotten,
    /// A node is granted without regard to the limit.
    LimitIgnored,
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
    /// The slot was sent to the task, which has not seen it yet.
    Sent(u64, Node),
    HasSlot(u64, Node),
    /// Marked as held. The task has not checked yet whether the node is lost.
    Marked(u64, Node),
    Holding(u64, Node),
    Releasing(Node),
    Done,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Contender {
    Own(u64),
    Foreign,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Lease {
    Own(Node),
    Foreign,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Answer {
    Unknown,
    Alone,
    Contended,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Step(usize),
    /// A slot arrives at its task, or the task has ended.
    Deliver,
    /// The contender enters the queue.
    Enter(u64),
    /// The contender is granted a node.
    Grant(u64),
    /// The contender is asked whether a task still waits.
    Retire(u64),
    /// The contender fails; its runtime has ended.
    Fail(u64, bool),
    Watch,
    EndWatch,
    ReportLoss(Node),
    EndIdleTime(Node),
    Tick,
    EnterForeign,
    GrantForeign,
    LeaveForeign,
    Cancel(usize),
    Lose(Node),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct World {
    pub(super) state: SharingState<Node, usize>,
    pub(super) at: [At; 3],
    pub(super) rounds: [u8; 3],
    /// A slot that is being sent, without the lock of the state.
    pub(super) sending: Vec<(usize, u64, Node)>,
    /// The contenders of this process that have not entered the queue yet.
    pub(super) entering: Vec<u64>,
    pub(super) is_asked_to_leave: bool,
    pub(super) queue: Vec<Contender>,
    pub(super) leases: Vec<Lease>,
    /// Lost nodes whose loss is not reported yet.
    pub(super) lost: Vec<Node>,
    pub(super) watch: Option<(u64, Answer)>,
    /// The hand-offs of each node since another contender was seen.
    pub(super) handoffs: Vec<(u8, u32)>,
    pub(super) has_entered_foreign: bool,
    pub(super) now: u64,
    pub(super) nodes: u8,
    pub(super) used: Faults,
    /// The waiting tasks in the order of their calls.
    pub(super) arrivals: Vec<usize>,
    pub(super) violation: Option<&'static str>,
}

pub(super) type State = SharingState<Node, usize>;

impl World {
    pub(super) fn new(scenario: &Scenario) -> Self {
        let policy = HandOffPolicy::default().max_handoffs(MAX_HANDOFFS).max_time(Duration::from_secs(2));
        Self {
            state: SharingState::new(policy.idle_time(Duration::from_secs(1)), SharingForm::Many),
            at: [At::Start; 3],
            rounds: scenario.rounds,
            sending: Vec::new(),
            entering: Vec::new(),
            is_asked_to_leave: false,
            queue: Vec::new(),
            leases: Vec::new(),
            lost: Vec::new(),
            watch: None,
            handoffs: Vec::new(),
            has_entered_foreign: false,
            now: 0,
            nodes: 0,
            used: NO_FAULTS,
            arrivals: Vec::new(),
            violation: None,
        }
    }

    pub(super) fn progress(&self, scenario: &Scenario, actions: &mut Vec<Action>) {
        for (task, at) in self.at.iter().enumerate() {
            if !matches!(at, At::Waiting(_) | At::Done) {
                actions.push(Action::Step(task));
            }
        }
        if !self.sending.is_empty() {
            actions.push(Action::Deliver);
        }
        actions.extend(self.entering.iter().map(|slot| Action::Enter(*slot)));
        let has_room =
            self.leases.len() < scenario.permits || scenario.mistake == Some(Mistake::LimitIgnored);
        match self.queue.first() {
            Some(Contender::Own(slot)) if has_room => actions.push(Action::Grant(*slot)),
            Some(Contender::Foreign) if has_room => actions.push(Action::GrantForeign),
            _ => {}
        }
        if self.is_asked_to_leave {
            actions.extend(self.own_contenders().map(Action::Retire));
        }
        if self.leases.contains(&Lease::Foreign) {
            actions.push(Action::LeaveForeign);
        }
        let seen = if self.is_contended(scenario) { Answer::Contended } else { Answer::Alone };
        if self.watch.is_some_and(|(_, answer)| answer != seen) {
            actions.push(Action::Watch);
        }
        actions.extend(self.lost.iter().map(|node| Action::ReportLoss(*node)));
        for (node, until) in self.idle() {
            actions.push(if until > self.now { Action::Tick } else { Action::EndIdleTime(node) });
        }
    }

    pub(super) fn chance(&self, scenario: &Scenario, actions: &mut Vec<Action>) {
        let (used, faults) = (self.used, scenario.faults);
        if scenario.has_foreign && !self.has_entered_foreign {
            actions.push(Action::EnterForeign);
        }
        for (task, at) in self.at.iter().enumerate() {
            let can_cancel = matches!(at, At::Waiting(_) | At::Sent(..) | At::HasSlot(..));
            if can_cancel && used.cancels < faults.cancels {
                actions.push(Action::Cancel(task));
            }
        }
        if used.losses < faults.losses {
            actions.extend(self.own_leases().map(Action::Lose));
        }
        if used.blinds < faults.blinds && self.watch.is_some() {
            actions.push(Action::EndWatch);
        }
        if used.failures < faults.failures {
            actions.extend(
                self.own_contenders().flat_map(|slot| [Action::Fail(slot, false), Action::Fail(slot, true)]),
            );
        }
    }

    pub(super) fn step(&mut self, scenario: &Scenario, action: Action) {
        match action {
            Action::Step(task) => self.step_task(scenario, task),
            Action::Deliver => {
                let (task, slot, node) = self.sending.remove(0);
                match self.at[task] {
                    At::Waiting(_) => self.at[task] = At::Sent(slot, node),
                    _ if scenario.mistake == Some(Mistake::LostSlot) => {}
                    _ => self.change(scenario, |state, _| state.end_slot(slot, Some(node))),
                }
            }
            Action::Enter(slot) => {
                self.entering.retain(|entering| *entering != slot);
                self.queue.push(Contender::Own(slot));
            }
            Action::Grant(slot) => {
                self.queue.remove(0);
                self.nodes += 1;
                let node = Node { id: self.nodes, tenure: self.state.begin_tenure(slot) };
                self.leases.push(Lease::Own(node));
                self.change(scenario, |state, _| state.end_slot(slot, Some(node)));
            }
            Action::Retire(slot) => {
                self.is_asked_to_leave = false;
                if self.state.retire_entry(slot) {
                    self.leave(slot);
                }
            }
            Action::Fail(slot, has_runtime) => self.fail(scenario, slot, has_runtime),
            Action::Watch => self.look(scenario),
            Action::EndWatch => {
                self.used.blinds += 1;
                if let Some((watch, _)) = self.watch.take() {
                    self.change(scenario, |state, _| state.mark_all_blind(watch));
                }
            }
            Action::ReportLoss(node) => {
                self.lost.retain(|lost| *lost != node);
                self.change(scenario, |state, _| state.mark_lost(node.tenure));
            }
            Action::EndIdleTime(node) => {
                self.change(scenario, |state, now| state.end_idle_time(node.tenure, now));
            }
            Action::Tick => self.now += 1,
            Action::EnterForeign => {
                self.has_entered_foreign = true;
                self.queue.push(Contender::Foreign);
            }
            Action::GrantForeign => {
                self.queue.remove(0);
                self.leases.push(Lease::Foreign);
            }
            Action::LeaveForeign => self.leases.retain(|lease| *lease != Lease::Foreign),
            Action::Cancel(task) => self.cancel(scenario, task),
            Action::Lose(node) => {
                self.used.losses += 1;
                self.delete(node);
                self.lost.push(node);
            }
        }
    }

    pub(super) fn step_task(&mut self, scenario: &Scenario, task: usize) {
        self.at[task] = match self.at[task] {
            At::Start if self.rounds[task] == 0 => At::Done,
            At::Start => match self.state.take_slot() {
                Some((slot, Some(node))) => At::HasSlot(slot, node),
                Some((_, None)) => panic!("a task enters the queue itself"),
                None => self.wait(scenario, task),
            },
            At::Sent(slot, node) => At::HasSlot(slot, node),
            At::HasSlot(slot, node) if self.exists(node) => {
                self.change(scenario, |state, now| state.mark_held(slot, now));
                At::Marked(slot, node)
            }
            At::HasSlot(slot, _) => {
                self.change(scenario, |state, _| state.end_slot(slot, None));
                At::Start
            }
            At::Marked(slot, node) => {
                if !self.exists(node) {
                    self.change(scenario, |state, _| state.mark_lost(node.tenure));
                }
                At::Holding(slot, node)
            }
            At::Holding(slot, node) => self.end_hold(scenario, task, slot, node),
            At::Releasing(node) => {
                self.delete(node);
                self.end_round(task)
            }
            at @ (At::Waiting(_) | At::Done) => at,
        };
    }

    pub(super) fn wait(&mut self, scenario: &Scenario, task: usize) -> At {
        self.arrivals.push(task);
        let mut number = 0;
        self.change(scenario, |state, now| {
            let (waiter, effects) = state.wait(task, now);
            number = waiter;
            effects
        });
        At::Waiting(number)
    }

    pub(super) fn end_hold(&mut self, scenario: &Scenario, task: usize, slot: u64, node: Node) -> At {
        let (exists, mut is_detached, waited_for) = (self.exists(node), false, self.arrivals.len());
        self.change(scenario, |state, now| {
            state.end_hold(slot, true, now, || {
                is_detached = exists;
                exists.then_some(node)
            })
        });
        if is_detached && self.arrivals.len() < waited_for {
            self.count_handoff(node);
        }
        if is_detached { self.end_round(task) } else { At::Releasing(node) }
    }

    pub(super) fn end_round(&mut self, task: usize) -> At {
        self.rounds[task] -= 1;
        if self.rounds[task] == 0 { At::Done } else { At::Start }
    }

    pub(super) fn cancel(&mut self, scenario: &Scenario, task: usize) {
        self.used.cancels += 1;
        match std::mem::replace(&mut self.at[task], At::Done) {
            At::Waiting(number) => {
                if self.state.cancel_wait(number) {
                    self.arrivals.retain(|waiting| *waiting != task);
                }
                self.is_asked_to_leave = true;
            }
            At::Sent(slot, node) | At::HasSlot(slot, node) => {
                self.change(scenario, |state, _| state.end_slot(slot, Some(node)));
            }
            at => panic!("{at:?} has nothing to cancel"),
        }
    }

    pub(super) fn fail(&mut self, scenario: &Scenario, slot: u64, has_runtime: bool) {
        self.used.failures += 1;
        self.leave(slot);
        if scenario.mistake == Some(Mistake::FailsSilently) {
            return;
        }
        let failed = match has_runtime {
            true => self.state.fail_entry(slot).into_iter().collect(),
            false => self.state.abort_entry(slot),
        };
        for task in failed {
            self.arrivals.retain(|waiting| *waiting != task);
            if matches!(self.at[task], At::Waiting(_)) {
                self.at[task] = At::Done;
            }
        }
        if has_runtime {
            self.change(scenario, |state, _| state.end_slot(slot, None));
        }
    }
}
