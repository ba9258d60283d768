//! How the world carries out effects, and the rules that it has to keep.

use std::time::Duration;

use super::Scenario;
use super::world::{Action, Answer, At, Contender, MAX_TIME, Mistake, Node, Watcher, World};
use crate::sharing::decide::{SharingEffect, SharingState};

impl World {
    /// Changes the state, and carries out the effects. Returns whether a slot is sent.
    pub(super) fn change(
        &mut self,
        scenario: &Scenario,
        change: impl FnOnce(&mut SharingState<Node, usize>, Duration) -> Vec<SharingEffect<Node, usize>>,
    ) -> bool {
        let now = Duration::from_secs(self.now);
        let effects = self.state.as_mut().map(|state| change(state, now)).unwrap_or_default();
        let mut is_sent = false;
        for effect in effects {
            match effect {
                SharingEffect::SendSlot { wake, slot, node } => {
                    is_sent = true;
                    self.send(scenario, wake, slot, node);
                }
                SharingEffect::WatchContenders { tenure } => {
                    self.handoffs = Some((0, self.now));
                    self.watcher(tenure).is_asked = true;
                }
                SharingEffect::TimeIdle { tenure } => self.watcher(tenure).is_timing = true,
                SharingEffect::Delete(_) if scenario.mistake == Some(Mistake::DeleteForgotten) => {}
                SharingEffect::Delete(node) => self.delete(node.id),
                SharingEffect::EnterQueue { .. }
                | SharingEffect::LeaveQueue
                | SharingEffect::TryAgain { .. } => {
                    self.violation = Some("a task enters the queue itself");
                }
            }
        }
        is_sent
    }

    fn send(&mut self, scenario: &Scenario, mut task: usize, slot: u64, node: Option<Node>) {
        if let (Some(Mistake::LastFirst), Some(last)) = (scenario.mistake, self.arrivals.last()) {
            task = *last;
        }
        match self.arrivals.iter().position(|waiting| *waiting == task) {
            Some(0) => drop(self.arrivals.remove(0)),
            _ => self.violation = Some("a task was served before one that waited for longer"),
        }
        self.last_slot = slot;
        self.sending.push((task, slot, node));
    }

    pub(super) fn deliver(&mut self, scenario: &Scenario) {
        let (task, slot, node) = self.sending.remove(0);
        match self.at[task] {
            At::Waiting(_) => self.at[task] = At::Sent(slot, node),
            _ if scenario.mistake == Some(Mistake::LostSlot) => {}
            _ => self.end_slot(scenario, slot, node),
        }
    }

    pub(super) fn end_slot(&mut self, scenario: &Scenario, slot: u64, node: Option<Node>) {
        match (&self.state, node) {
            (None, Some(node)) => self.delete(node.id),
            _ => drop(self.change(scenario, |state, _| state.end_slot(slot, node))),
        }
    }

    /// The watching task sees the queue, or a change of it.
    pub(super) fn watch(&mut self, scenario: &Scenario, tenure: u64) {
        let is_contended = self.is_contended();
        let watcher = self.watcher(tenure);
        let is_alone = !is_contended;
        if is_contended && watcher.answer == Answer::None {
            watcher.answer = Answer::Contended;
            self.change(scenario, |state, now| {
                if scenario.mistake == Some(Mistake::BudgetAnew) {
                    state.set_alone(tenure, true, now);
                }
                state.mark_contended(tenure, now)
            });
            return;
        }
        watcher.answer = if is_alone { Answer::Alone } else { Answer::None };
        if Some(tenure) == u64::try_from(self.watchers.len()).ok() {
            self.handoffs = (!is_alone).then_some((0, self.now));
        }
        self.change(scenario, |state, now| {
            state.set_alone(tenure, is_alone, now);
            Vec::new()
        });
    }

    pub(super) fn count_handoff(&mut self, scenario: &Scenario) {
        let Some((count, since)) = &mut self.handoffs else { return };
        *count += 1;
        if *count > scenario.max_handoffs {
            self.violation = Some("more hand-offs than the policy allows");
        }
        if self.now >= *since + MAX_TIME {
            self.violation = Some("a hand-off after the time of the policy");
        }
    }

    pub(super) fn delete(&mut self, node: u8) {
        self.queue.retain(|contender| *contender != Contender::Own(node));
    }

    /// The last clone is dropped, and no task uses the state at this moment.
    pub(super) fn drop_unused_state(&mut self) {
        let is_used = self.at.iter().any(|at| matches!(at, At::Ending(..))) || !self.sending.is_empty();
        if is_used || self.has_clone.contains(&true) {
            return;
        }
        let idle = (1..).zip(&self.watchers).find(|(tenure, _)| self.idle_until(*tenure).is_some());
        if let Some(node) = idle.map(|(_, watcher)| watcher.node) {
            self.delete(node);
        }
        self.state = None;
    }

    pub(super) fn watcher(&mut self, tenure: u64) -> &mut Watcher {
        &mut self.watchers[usize::try_from(tenure).unwrap() - 1]
    }

    pub(super) fn exists(&self, node: u8) -> bool {
        self.queue.contains(&Contender::Own(node))
    }

    pub(super) fn is_contended(&self) -> bool {
        self.queue.contains(&Contender::Foreign)
    }

    pub(super) fn idle_until(&self, tenure: u64) -> Option<u64> {
        Some(self.state.as_ref()?.idle_until(tenure)?.as_secs())
    }

    /// The nodes that a task has, or that are on their way to one.
    fn nodes_of_tasks(&self) -> impl Iterator<Item = Node> {
        let sending = self.sending.iter().filter_map(|(_, _, node)| *node);
        let tasks = self.at.iter().filter_map(|at| match *at {
            At::Sent(_, node) | At::HasSlot(_, node) => node,
            At::Queued(_, node)
            | At::Unbound(_, node)
            | At::Marked(_, node)
            | At::Holding(_, node)
            | At::Ending(_, node)
            | At::Releasing(node) => Some(node),
            At::Start | At::Waiting(_) | At::Done => None,
        });
        sending.chain(tasks)
    }

    /// Whether the node of the tenure is not given up.
    pub(super) fn has_tenure(&self, tenure: u64) -> bool {
        let is_releasing = |at: &At| matches!(at, At::Releasing(node) if node.tenure == tenure);
        let is_with_task = self.nodes_of_tasks().any(|node| node.tenure == tenure);
        is_with_task && !self.at.iter().any(is_releasing) || self.idle_until(tenure).is_some()
    }

    pub(super) fn has_one_slot(&self) -> bool {
        let has_slot = |at: &&At| match at {
            At::Sent(..) | At::HasSlot(..) | At::Queued(..) | At::Unbound(..) => true,
            // The guard of a lost node may last, while the next task has the slot.
            At::Marked(_, node) | At::Holding(_, node) | At::Ending(_, node) => self.exists(node.id),
            _ => false,
        };
        self.sending.len() + self.at.iter().filter(has_slot).count() <= 1
    }

    /// Whether each node that exists has one task that deletes it: that of a guard or slot, or, while it is
    /// idle, the watching task.
    pub(super) fn owns_its_nodes(&self) -> bool {
        self.queue.iter().all(|contender| {
            let Contender::Own(node) = *contender else { return true };
            let tasks = self.nodes_of_tasks().filter(|of| of.id == node).count();
            let watchers = (1..).zip(&self.watchers).filter(|(tenure, watcher)| {
                watcher.node == node && watcher.is_alive && self.idle_until(*tenure).is_some()
            });
            tasks + watchers.count() == 1
        })
    }

    /// Nothing happens any more, and a contender waits or a node exists; or the guard of a lost node blocks.
    pub(super) fn hangs(&self) -> bool {
        let mut actions: Vec<Action> = Vec::new();
        self.progress(&mut actions);
        let is_over = self.at == [At::Done; 3] && self.queue.is_empty() && self.state.is_none();
        actions.is_empty() && !is_over || self.is_blocked_by_lost()
    }

    /// A task waits for the guard of a node whose loss is known.
    fn is_blocked_by_lost(&self) -> bool {
        let is_known_lost =
            |node: &Node| self.watchers.iter().any(|of| of.node == node.id && of.has_reported_loss);
        let is_blocker = |at: &At| matches!(at, At::Holding(_, node) if is_known_lost(node));
        let can_serve = |at: &At| {
            !matches!(at, At::Waiting(_) | At::Start | At::Done | At::Releasing(_)) && !is_blocker(at)
        };
        let is_waiting = !self.arrivals.is_empty() && self.sending.is_empty();
        is_waiting && self.at.iter().any(is_blocker) && !self.at.iter().any(can_serve)
    }
}
