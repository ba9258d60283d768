//! How the world carries out effects, and the rules that it has to keep.

use std::time::Duration;

use super::Scenario;
use super::world::{Action, Answer, At, Contender, Effects, MAX_HANDOFFS, Mistake, Node, World};
use crate::sharing::decide::{SharingEffect, SharingState};

impl World {
    pub(super) fn count_join(&mut self, node: Node) {
        let Some(watcher) = self.watchers.iter_mut().find(|watcher| watcher.node == node) else { return };
        if watcher.has_ended {
            self.violation = Some("a reader joins a node that is not watched");
        }
        match watcher.answer {
            Answer::NoWriter => watcher.joins = 0,
            Answer::Writer => self.violation = Some("a reader joins while a writer waits"),
            Answer::Unknown => {
                watcher.joins += 1;
                if watcher.joins > MAX_HANDOFFS {
                    self.violation = Some("more readers join than the policy allows");
                }
            }
        }
    }

    /// Changes the state, and carries out the effects.
    pub(super) fn change(
        &mut self,
        scenario: &Scenario,
        change: impl FnOnce(&mut SharingState<Node, usize>, Duration) -> Effects,
    ) {
        for effect in change(&mut self.state, Duration::from_secs(self.now)) {
            match effect {
                SharingEffect::TryAgain { .. } if scenario.mistake == Some(Mistake::NeverWoken) => {}
                SharingEffect::TryAgain { wake } => self.at[wake] = At::Start,
                SharingEffect::SendSlot { wake, slot, node } => self.at[wake] = At::HasSlot(slot, node),
                SharingEffect::WatchContenders { tenure } => {
                    self.watchers.iter_mut().for_each(|of| of.is_asked |= of.node.tenure == tenure);
                }
                SharingEffect::TimeIdle { .. } => {}
                SharingEffect::Delete(_) if scenario.mistake == Some(Mistake::DeleteForgotten) => {}
                SharingEffect::Delete(node) => self.delete(node),
                SharingEffect::EnterQueue { .. } | SharingEffect::LeaveQueue => {
                    self.violation = Some("a reader enters the queue itself");
                }
            }
        }
    }

    pub(super) fn delete(&mut self, node: Node) {
        self.queue.retain(|contender| *contender != Contender::Reader(node.id));
    }

    pub(super) fn exists(&self, node: Node) -> bool {
        self.queue.contains(&Contender::Reader(node.id))
    }

    /// No writer is ahead.
    pub(super) fn is_granted(&self, node: Node) -> bool {
        let ahead = self.queue.iter().take_while(|contender| **contender != Contender::Reader(node.id));
        self.exists(node) && ahead.copied().all(|contender| contender != Contender::Writer)
    }

    pub(super) fn guards(&self, slot: u64) -> usize {
        self.at.iter().filter(|at| matches!(at, At::Holding(of, _) if *of == slot)).count()
    }

    pub(super) fn excludes(&self) -> bool {
        let reads = |at: &At| matches!(at, At::Holding(_, node) if self.exists(*node));
        self.queue.first() != Some(&Contender::Writer) || !self.at.iter().any(reads)
    }

    /// Whether each guard whose loss is not due to a fault has a node, and each node has a task that deletes
    /// it.
    pub(super) fn owns_its_nodes(&self, scenario: &Scenario) -> bool {
        let is_held = |id: u8| {
            self.at.iter().any(|at| match *at {
                At::HasSlot(_, Some(node))
                | At::Queued(_, node)
                | At::Unbound(_, node)
                | At::Holding(_, node)
                | At::Releasing(node) => node.id == id,
                _ => false,
            })
        };
        let is_idle = |id: u8| {
            self.watchers.iter().any(|of| of.node.id == id && self.state.idle_until(of.node.tenure).is_some())
        };
        let has_node = |at: &At| !matches!(at, At::Holding(_, node) if !self.exists(*node));
        let are_owned = self.queue.iter().all(|contender| match *contender {
            Contender::Reader(id) => is_held(id) != is_idle(id),
            Contender::Writer => true,
        });
        are_owned && (scenario.faults.losses > 0 || self.at.iter().all(has_node))
    }

    pub(super) fn hangs(&self) -> bool {
        let mut actions = Vec::new();
        self.progress(&mut actions);
        // A watch that nobody waits for.
        actions.retain(|action| !matches!(action, Action::ReportLoss(_)));
        actions.is_empty() && !(self.at == [At::Done; 3] && self.queue.is_empty())
    }
}
