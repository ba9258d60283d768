//! The decisions of sharing: which task holds next, whether it gets the node, and when the node is deleted.
//! Pure: events go in, and effects come out. The caller measures the time and carries out the effects.

use std::collections::VecDeque;
use std::time::Duration;

use lockkeeper_core::count_of;

use super::super::hand_off_policy::HandOffPolicy;
use super::known_contenders::KnownContenders;

/// The state that the tasks of one mutex share. `N` is a node between two guards, `W` wakes a task.
///
/// Times count from an instant that the caller chooses once.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct SharingState<N, W> {
    policy: HandOffPolicy,
    /// The number of the last slot that a task got.
    slot: u64,
    occupancy: Occupancy<N>,
    /// The tenure of the node that is held, on its way to the next task, or idle.
    tenure: Option<Tenure>,
    /// The waiting tasks. The one that has waited longest is first.
    waiting: VecDeque<WaitingTask<W>>,
    arrivals: u64,
    tenures: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Occupancy<N> {
    /// No task has the slot or waits for it.
    Vacant,
    /// A task has the slot, and no guard yet.
    Taken,
    /// A guard holds the node.
    Held,
    /// The node is idle until this time: the next acquire of this process takes it.
    Idle(N, Duration),
}

/// The time of one node in this process, from its grant until its release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Tenure {
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
    /// Watch for other contenders, during the tenure that began last.
    WatchContenders,
    /// Measure the idle time, during the tenure that began last.
    TimeIdle,
    /// Delete the node.
    Delete(N),
}

impl<N, W> SharingState<N, W> {
    pub(super) fn new(policy: HandOffPolicy) -> Self {
        let (occupancy, waiting) = (Occupancy::Vacant, VecDeque::new());
        Self { policy, slot: 0, occupancy, tenure: None, waiting, arrivals: 0, tenures: 0 }
    }

    /// Returns the number of the slot and the idle node, if no task has the slot.
    pub(super) fn take_slot(&mut self) -> Option<(u64, Option<N>)> {
        let node = match std::mem::replace(&mut self.occupancy, Occupancy::Taken) {
            Occupancy::Vacant => None,
            Occupancy::Idle(node, _) => Some(node),
            busy => {
                self.occupancy = busy;
                return None;
            }
        };
        self.slot += 1;
        Some((self.slot, node))
    }

    /// A task waits for the slot. Returns its number.
    pub(super) fn wait(&mut self, wake: W, now: Duration) -> (u64, Vec<SharingEffect<N, W>>) {
        self.arrivals += 1;
        self.waiting.push_back(WaitingTask { number: self.arrivals, wake });
        (self.arrivals, self.watch_if_held(now))
    }

    /// Removes a waiting task. Returns false if a slot has been sent to it.
    pub(super) fn cancel_wait(&mut self, number: u64) -> bool {
        let position = self.position(number).ok();
        position.and_then(|position| self.waiting.remove(position)).is_some()
    }

    /// The number of tasks ahead of this one, including the task that has the slot.
    pub(super) fn ahead(&self, number: u64) -> u32 {
        let position = self.position(number).unwrap_or_else(|position| position);
        count_of(position).saturating_add(1)
    }

    /// The task with the slot has been granted a node. Returns the number of the tenure.
    pub(super) fn begin_tenure(&mut self) -> u64 {
        self.tenures += 1;
        self.tenure = Some(Tenure { number: self.tenures, contenders: KnownContenders::Unwatched });
        self.tenures
    }

    /// The task with this slot has a guard.
    pub(super) fn mark_held(&mut self, slot: u64, now: Duration) -> Vec<SharingEffect<N, W>> {
        if self.slot != slot {
            return Vec::new();
        }
        self.occupancy = Occupancy::Held;
        if self.waiting.is_empty() { Vec::new() } else { self.watch_if_held(now) }
    }

    /// The node is lost: its guard does not block the next task of this process.
    pub(super) fn mark_lost(&mut self, tenure: u64) -> Vec<SharingEffect<N, W>> {
        let is_held = matches!(self.occupancy, Occupancy::Held) && self.is_current(tenure);
        if is_held { self.delete_or_pass_slot(None) } else { Vec::new() }
    }

    /// The slot ends without a guard. The next task gets its node, or the node is deleted.
    pub(super) fn end_slot(&mut self, slot: u64, node: Option<N>) -> Vec<SharingEffect<N, W>> {
        if self.slot != slot {
            return node.into_iter().map(SharingEffect::Delete).collect();
        }
        self.delete_or_pass_slot(node)
    }

    /// A guard ends. Its node is handed off, or becomes idle while there is a clone of the mutex, if `detach`
    /// returns it. Otherwise the caller releases the hold.
    pub(super) fn end_hold(
        &mut self,
        slot: u64,
        has_clones: bool,
        now: Duration,
        detach: impl FnOnce() -> Option<N>,
    ) -> Vec<SharingEffect<N, W>> {
        if self.slot != slot {
            // The hold was lost, and another task has got the slot since then.
            return Vec::new();
        }
        let is_waited_for = !self.waiting.is_empty();
        let mut effects = Vec::new();
        if is_waited_for || has_clones && !self.policy.idle_time.is_zero() {
            effects = self.watch_if_held(now);
        }
        let may_stay = match is_waited_for {
            true => self.tenure.as_mut().is_some_and(|tenure| tenure.contenders.take_handoff(now)),
            false => has_clones && self.may_idle(),
        };
        let node = if may_stay { detach() } else { None };
        match self.pass_slot(node) {
            Ok(sent) => effects.push(sent),
            Err(Some(node)) => {
                let until = now.saturating_add(self.policy.idle_time);
                self.occupancy = Occupancy::Idle(node, until);
                effects.push(SharingEffect::TimeIdle);
            }
            Err(None) => {}
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

    /// Another contender waits.
    pub(super) fn mark_contended(&mut self, tenure: u64, now: Duration) -> Vec<SharingEffect<N, W>> {
        let policy = self.policy;
        let Some(contenders) = self.contenders_of(tenure) else { return Vec::new() };
        contenders.mark_contended(policy, now);
        self.end_idle()
    }

    /// The contenders are not watched any more.
    pub(super) fn mark_blind(&mut self, tenure: u64) -> Vec<SharingEffect<N, W>> {
        let Some(contenders) = self.contenders_of(tenure) else { return Vec::new() };
        *contenders = KnownContenders::WatchEnded;
        self.end_idle()
    }

    /// The end of the idle time of this tenure's node, if the node is idle.
    pub(super) fn idle_until(&self, tenure: u64) -> Option<Duration> {
        match self.occupancy {
            Occupancy::Idle(_, until) if self.is_current(tenure) => Some(until),
            _ => None,
        }
    }

    /// Ends the idle time of this tenure's node, if it is over.
    pub(super) fn end_idle_time(&mut self, tenure: u64, now: Duration) -> Vec<SharingEffect<N, W>> {
        let is_over = self.idle_until(tenure).is_some_and(|until| now >= until);
        if is_over { self.end_idle() } else { Vec::new() }
    }

    fn end_idle(&mut self) -> Vec<SharingEffect<N, W>> {
        match std::mem::replace(&mut self.occupancy, Occupancy::Vacant) {
            Occupancy::Idle(node, _) => {
                self.tenure = None;
                vec![SharingEffect::Delete(node)]
            }
            other => {
                self.occupancy = other;
                Vec::new()
            }
        }
    }

    /// A second guard needs the node that is held: from then on, other contenders are watched.
    fn watch_if_held(&mut self, now: Duration) -> Vec<SharingEffect<N, W>> {
        let (Occupancy::Held, Some(tenure)) = (&self.occupancy, &mut self.tenure) else { return Vec::new() };
        let has_to_start = tenure.contenders.ask(self.policy, now);
        has_to_start.then_some(SharingEffect::WatchContenders).into_iter().collect()
    }

    fn may_idle(&self) -> bool {
        let is_known = |tenure: &Tenure| tenure.contenders.may_idle();
        !self.policy.idle_time.is_zero() && self.tenure.as_ref().is_some_and(is_known)
    }

    fn delete_or_pass_slot(&mut self, node: Option<N>) -> Vec<SharingEffect<N, W>> {
        match self.pass_slot(node) {
            Ok(sent) => vec![sent],
            Err(node) => {
                self.tenure = None;
                node.into_iter().map(SharingEffect::Delete).collect()
            }
        }
    }

    /// Gives the slot to the next waiting task, with the node. Returns the node if no task waits.
    fn pass_slot(&mut self, node: Option<N>) -> Result<SharingEffect<N, W>, Option<N>> {
        self.slot += 1;
        if node.is_none() {
            self.tenure = None;
        }
        match self.waiting.pop_front() {
            Some(WaitingTask { wake, .. }) => {
                self.occupancy = Occupancy::Taken;
                Ok(SharingEffect::SendSlot { wake, slot: self.slot, node })
            }
            None => {
                self.occupancy = Occupancy::Vacant;
                Err(node)
            }
        }
    }

    fn position(&self, number: u64) -> Result<usize, usize> {
        self.waiting.binary_search_by_key(&number, |task| task.number)
    }

    fn is_current(&self, tenure: u64) -> bool {
        self.tenure.is_some_and(|current| current.number == tenure)
    }

    fn contenders_of(&mut self, tenure: u64) -> Option<&mut KnownContenders> {
        self.tenure.as_mut().filter(|current| current.number == tenure).map(|current| &mut current.contenders)
    }
}
