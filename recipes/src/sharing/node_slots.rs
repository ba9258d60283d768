//! The slots of the tasks that share nodes: pure.

use std::time::Duration;

use super::known_contenders::KnownContenders;

/// The slots, in the order of their numbers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct NodeSlots<N> {
    /// The number of the last slot.
    last: u64,
    slots: Vec<NodeSlot<N>>,
}

/// The right to hold, or to enter the server's queue; or an idle node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct NodeSlot<N> {
    pub(super) number: u64,
    pub(super) phase: SlotPhase<N>,
    /// The tenure of its node, if it has one.
    pub(super) tenure: Option<Tenure>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum SlotPhase<N> {
    /// For all waiting tasks, in the server's queue.
    Entering,
    /// A task has the slot, and no guard yet.
    Taken,
    /// A guard holds the node.
    Held,
    /// The node is idle until this time: the next acquire of this process takes it.
    Idle(N, Duration),
}

/// The time of one node in this process, from its grant until its release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Tenure {
    pub(super) number: u64,
    pub(super) contenders: KnownContenders,
}

impl<N> Default for NodeSlots<N> {
    fn default() -> Self {
        Self { last: 0, slots: Vec::new() }
    }
}

impl<N> NodeSlots<N> {
    pub(super) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Adds a slot. Returns its number.
    pub(super) fn open(&mut self, phase: SlotPhase<N>, tenure: Option<Tenure>) -> u64 {
        self.last += 1;
        self.slots.push(NodeSlot { number: self.last, phase, tenure });
        self.last
    }

    pub(super) fn get(&self, number: u64) -> Option<&NodeSlot<N>> {
        self.slots.get(self.position(number)?)
    }

    pub(super) fn get_mut(&mut self, number: u64) -> Option<&mut NodeSlot<N>> {
        let position = self.position(number)?;
        self.slots.get_mut(position)
    }

    pub(super) fn close(&mut self, number: u64) -> Option<NodeSlot<N>> {
        self.position(number).map(|position| self.slots.remove(position))
    }

    /// The last slot whose node a guard holds.
    pub(super) fn held(&self) -> Option<u64> {
        self.slots.iter().rev().find(|slot| matches!(slot.phase, SlotPhase::Held)).map(|slot| slot.number)
    }

    pub(super) fn has_entering(&self) -> bool {
        self.slots.iter().any(|slot| matches!(slot.phase, SlotPhase::Entering))
    }

    /// Whether a task has a slot and no guard yet.
    pub(super) fn has_unheld(&self) -> bool {
        self.slots.iter().any(|slot| matches!(slot.phase, SlotPhase::Entering | SlotPhase::Taken))
    }

    pub(super) fn has_tenure(&self) -> bool {
        self.slots.iter().any(|slot| slot.tenure.is_some())
    }

    pub(super) fn of_tenure(&self, tenure: u64) -> Option<&NodeSlot<N>> {
        self.slots.iter().find(|slot| slot.tenure.is_some_and(|of| of.number == tenure))
    }

    pub(super) fn tenures_mut(&mut self) -> impl Iterator<Item = &mut Tenure> {
        self.slots.iter_mut().filter_map(|slot| slot.tenure.as_mut())
    }

    /// Takes the node that has been idle for the shortest time: those that are not needed stay idle until
    /// their time is over.
    pub(super) fn take_idle(&mut self) -> Option<(N, Tenure)> {
        let at = self.slots.iter().rposition(|slot| matches!(slot.phase, SlotPhase::Idle(..)))?;
        match self.slots.remove(at) {
            NodeSlot { phase: SlotPhase::Idle(node, _), tenure: Some(tenure), .. } => Some((node, tenure)),
            _ => None,
        }
    }

    /// Removes the idle nodes of these tenures.
    pub(super) fn end_idle(&mut self, is_of: impl Fn(&Tenure) -> bool) -> Vec<N> {
        let is_ended = |slot: &NodeSlot<N>| {
            matches!(slot.phase, SlotPhase::Idle(..)) && slot.tenure.as_ref().is_some_and(&is_of)
        };
        let (ended, slots): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.slots).into_iter().partition(is_ended);
        self.slots = slots;
        ended
            .into_iter()
            .filter_map(|slot| if let SlotPhase::Idle(node, _) = slot.phase { Some(node) } else { None })
            .collect()
    }

    fn position(&self, number: u64) -> Option<usize> {
        self.slots.binary_search_by_key(&number, |slot| slot.number).ok()
    }
}
