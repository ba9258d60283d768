//! How the world carries out effects, and the rules that it has to keep.

use std::time::Duration;

use super::Scenario;
use super::world::{Answer, At, Contender, Lease, MAX_HANDOFFS, Mistake, Node, State, World};
use crate::sharing::decide::SharingEffect;

impl World {
    pub(super) fn look(&mut self, scenario: &Scenario) {
        let Some((watch, _)) = self.watch else { return };
        if self.is_contended(scenario) {
            self.watch = Some((watch, Answer::Contended));
            self.change(scenario, |state, now| state.mark_all_contended(watch, now));
        } else {
            self.watch = Some((watch, Answer::Alone));
            self.handoffs.clear();
            self.change(scenario, |state, now| {
                state.set_all_alone(watch, true, now);
                Vec::new()
            });
        }
    }

    pub(super) fn count_handoff(&mut self, node: Node) {
        if !matches!(self.watch, Some((_, Answer::Contended))) {
            return;
        }
        let count = match self.handoffs.iter_mut().find(|(id, _)| *id == node.id) {
            Some((_, count)) => {
                *count += 1;
                *count
            }
            None => {
                self.handoffs.push((node.id, 1));
                1
            }
        };
        if count > MAX_HANDOFFS {
            self.violation = Some("more hand-offs than the policy allows");
        }
    }

    /// Changes the state, and carries out the effects.
    pub(super) fn change(
        &mut self,
        scenario: &Scenario,
        change: impl FnOnce(&mut State, Duration) -> Vec<SharingEffect<Node, usize>>,
    ) {
        let now = Duration::from_secs(self.now);
        let effects = change(&mut self.state, now);
        if self.state.end_needless_watch() {
            self.watch = None;
        }
        for effect in effects {
            match effect {
                SharingEffect::SendSlot { wake, slot, node } => {
                    match self.arrivals.iter().position(|waiting| *waiting == wake) {
                        Some(0) => drop(self.arrivals.remove(0)),
                        _ => self.violation = Some("a task was served before one that waited for longer"),
                    }
                    self.sending.extend(node.map(|node| (wake, slot, node)));
                }
                SharingEffect::EnterQueue { slot } => self.entering.push(slot),
                SharingEffect::LeaveQueue => self.is_asked_to_leave = true,
                SharingEffect::WatchContenders { .. } => {
                    if let Some(watch) = self.state.begin_common_watch(now) {
                        self.watch = Some((watch, Answer::Unknown));
                    }
                }
                SharingEffect::TimeIdle { .. } => {}
                SharingEffect::TryAgain { .. } => self.violation = Some("a permit is joined"),
                SharingEffect::Delete(_) if scenario.mistake == Some(Mistake::DeleteForgotten) => {}
                SharingEffect::Delete(node) => self.delete(node),
            }
        }
    }

    pub(super) fn is_contended(&self, scenario: &Scenario) -> bool {
        let is_full = self.leases.len() >= scenario.permits;
        is_full && self.queue.contains(&Contender::Foreign)
    }

    pub(super) fn leave(&mut self, slot: u64) {
        self.entering.retain(|entering| *entering != slot);
        self.queue.retain(|contender| *contender != Contender::Own(slot));
    }

    pub(super) fn delete(&mut self, node: Node) {
        self.leases.retain(|lease| *lease != Lease::Own(node));
    }

    pub(super) fn exists(&self, node: Node) -> bool {
        self.leases.contains(&Lease::Own(node))
    }

    pub(super) fn own_leases(&self) -> impl Iterator<Item = Node> {
        self.leases.iter().filter_map(|lease| if let Lease::Own(node) = lease { Some(*node) } else { None })
    }

    pub(super) fn own_contenders(&self) -> impl Iterator<Item = u64> {
        let queued =
            self.queue.iter().filter_map(|of| if let Contender::Own(slot) = of { Some(*slot) } else { None });
        self.entering.iter().copied().chain(queued)
    }

    pub(super) fn idle(&self) -> impl Iterator<Item = (Node, u64)> {
        let until = |node: Node| self.state.idle_until(node.tenure).map(|until| (node, until.as_secs()));
        self.own_leases().filter_map(until)
    }

    /// Whether each node that exists has one task that deletes it, and no other one has it.
    pub(super) fn owns_its_nodes(&self) -> bool {
        let with_tasks: Vec<Node> =
            self.sending.iter().map(|(_, _, node)| *node).chain(self.nodes_of_tasks()).collect();
        self.own_leases().all(|node| {
            let with_tasks = with_tasks.iter().filter(|of| **of == node).count();
            with_tasks + usize::from(self.state.idle_until(node.tenure).is_some()) == 1
        })
    }

    pub(super) fn nodes_of_tasks(&self) -> impl Iterator<Item = Node> {
        self.at.iter().filter_map(|at| match *at {
            At::Sent(_, node)
            | At::HasSlot(_, node)
            | At::Marked(_, node)
            | At::Holding(_, node)
            | At::Releasing(node) => Some(node),
            At::Start | At::Waiting(_) | At::Done => None,
        })
    }

    /// The tasks that hold, by nodes that exist, and the holders of other processes.
    pub(super) fn holders(&self) -> usize {
        let is_held =
            |at: &&At| matches!(at, At::Marked(_, node) | At::Holding(_, node) if self.exists(*node));
        let foreign = self.leases.iter().filter(|lease| **lease == Lease::Foreign).count();
        self.at.iter().filter(is_held).count() + foreign
    }

    /// Nothing happens any more, and a task or a contender waits, or a node exists.
    pub(super) fn hangs(&self, scenario: &Scenario) -> bool {
        let mut actions = Vec::new();
        self.progress(scenario, &mut actions);
        let is_over = self.at == [At::Done; 3] && self.queue.is_empty() && self.leases.is_empty();
        actions.is_empty() && !is_over
    }
}
