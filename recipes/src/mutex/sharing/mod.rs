//! A node that the guards of one process share: which task holds next, and when the node is deleted.
//!
//! One task at a time has the [`AcquireSlot`]: it waits in the server's queue for all tasks, or it holds. The
//! other tasks wait here, in the order of their calls, and have no nodes. When a guard ends, the next task
//! gets its node, as long as [`Contention`] allows the hand-off.

mod acquire_slot;
mod contention;
mod shared_hold;

use std::collections::VecDeque;
use std::fmt::{self, Debug, Formatter};
use std::sync::{Arc, Weak};

use lockkeeper_core::{Deadline, DetachedNode, Error, Hold, LockQueue, count_of};
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tracing::Instrument;

use self::acquire_slot::{AcquireSlot, SlotWait};
use self::contention::{Contention, NodeTenure};
pub(super) use self::shared_hold::{Remainder, SharedHold};
use super::hand_off_policy::HandOffPolicy;

/// The state that the clones of one mutex share.
#[derive(Clone, Debug)]
pub(super) struct SharingHandle {
    sharing: Arc<NodeSharing>,
    /// Counts the clones of the mutex. A task that only uses [`NodeSharing`] for a moment is not counted.
    _clones: Arc<()>,
}

/// Keeps the node between two guards.
pub(super) struct NodeSharing {
    policy: HandOffPolicy,
    /// Without a clone of the mutex, no task can acquire an idle node any more.
    clones: Weak<()>,
    state: Mutex<SharingState>,
}

struct SharingState {
    /// The number of the last slot that a task got.
    slot: u64,
    occupancy: Occupancy,
    /// The waiting tasks. The one that has waited longest is first.
    waiting: VecDeque<Waiter>,
    arrivals: u64,
}

enum Occupancy {
    /// No task has the slot or waits for it.
    Vacant,
    /// A task has the slot, and no guard yet.
    Taken,
    /// A guard holds a node with this contention.
    Held(Arc<Contention>),
    /// The node is idle: the next acquire of this process takes it.
    Idle(DetachedNode, Arc<NodeTenure>, Deadline),
}

struct Waiter {
    number: u64,
    wake: oneshot::Sender<AcquireSlot>,
}

/// A node without a guard, and its tenure in this process.
type IdleNode = (DetachedNode, Arc<NodeTenure>);

impl SharingHandle {
    pub(super) fn new(policy: HandOffPolicy) -> Self {
        let clones = Arc::new(());
        let state =
            SharingState { slot: 0, occupancy: Occupancy::Vacant, waiting: VecDeque::new(), arrivals: 0 };
        let sharing = NodeSharing { policy, clones: Arc::downgrade(&clones), state: Mutex::new(state) };
        Self { sharing: Arc::new(sharing), _clones: clones }
    }

    pub(super) async fn acquire(&self, queue: LockQueue, deadline: Deadline) -> Result<SharedHold, Error> {
        self.sharing.acquire(queue, deadline).await
    }

    pub(super) async fn try_acquire(
        &self,
        queue: LockQueue,
        limit: Deadline,
    ) -> Result<Option<SharedHold>, Error> {
        self.sharing.try_acquire(queue, limit).await
    }
}

impl NodeSharing {
    async fn acquire(self: &Arc<Self>, queue: LockQueue, deadline: Deadline) -> Result<SharedHold, Error> {
        let span = queue.acquire_span(deadline);
        let slot = match self.slot_or_wait() {
            Ok(slot) => Ok(slot),
            Err(waiting) => waiting.slot(span.queue(), deadline).instrument(span.span()).await,
        };
        let mut slot = match slot {
            Ok(slot) => slot,
            Err(error) => {
                span.failed(&error);
                return Err(error);
            }
        };
        if let Some(hold) = self.take_idle(&mut slot) {
            span.granted(&hold.hold);
            return Ok(hold.with(slot));
        }
        let hold = span.acquire().await?;
        Ok(self.begin(hold).with(slot))
    }

    async fn try_acquire(
        self: &Arc<Self>,
        queue: LockQueue,
        limit: Deadline,
    ) -> Result<Option<SharedHold>, Error> {
        let span = queue.acquire_span(Deadline::immediate());
        let Some(mut slot) = self.slot_if_free() else {
            span.busy();
            return Ok(None);
        };
        if let Some(hold) = self.take_idle(&mut slot) {
            span.granted(&hold.hold);
            return Ok(Some(hold.with(slot)));
        }
        let hold = span.try_acquire(limit).await?;
        Ok(hold.map(|hold| self.begin(hold).with(slot)))
    }

    /// Attaches the idle node that came with the slot, if there is one and it still exists.
    fn take_idle(&self, slot: &mut AcquireSlot) -> Option<Unbound> {
        let (detached, tenure) = slot.idle_node.take()?;
        let hold = detached.attach().ok()?;
        Some(Unbound { hold, tenure })
    }

    /// Starts the tenure of a node that was granted.
    fn begin(self: &Arc<Self>, hold: Hold) -> Unbound {
        let tenure = contention::start_watcher(self, self.policy, &hold);
        Unbound { hold, tenure }
    }

    /// Returns the slot, if no task has it.
    fn slot_if_free(self: &Arc<Self>) -> Option<AcquireSlot> {
        self.state.lock().slot_if_free(self)
    }

    fn slot_or_wait(self: &Arc<Self>) -> Result<AcquireSlot, SlotWait<'_>> {
        let mut state = self.state.lock();
        state.slot_if_free(self).ok_or_else(|| {
            let (wake, slot) = oneshot::channel();
            state.arrivals += 1;
            let number = state.arrivals;
            if let Occupancy::Held(contention) = &state.occupancy {
                contention.mark_needed();
            }
            state.waiting.push_back(Waiter { number, wake });
            SlotWait::new(self, number, slot)
        })
    }

    /// The number of tasks ahead of this waiter, including the task that has the slot.
    fn ahead(&self, number: u64) -> u32 {
        let state = self.state.lock();
        let at = state.waiting.binary_search_by_key(&number, |waiter| waiter.number);
        count_of(at.unwrap_or_else(|at| at)).saturating_add(1)
    }

    /// Removes a waiter.
    fn cancel_wait(&self, number: u64) {
        let mut state = self.state.lock();
        if let Ok(at) = state.waiting.binary_search_by_key(&number, |waiter| waiter.number) {
            state.waiting.remove(at);
        }
    }

    /// Ends the slot of this number. Its idle node is handed off, or dropped.
    fn end_slot(self: &Arc<Self>, number: u64, idle_node: Option<IdleNode>) {
        let mut state = self.state.lock();
        let remainder = if state.slot == number { state.advance(self, idle_node) } else { idle_node };
        drop(state);
        drop(remainder);
    }

    /// Hands the node of a guard off, or keeps it idle. Otherwise returns the remainder, which the caller
    /// releases.
    fn give_back(self: &Arc<Self>, number: u64, hold: Hold, tenure: &Arc<NodeTenure>) -> Option<Remainder> {
        let mut state = self.state.lock();
        if state.slot != number {
            // The hold was lost, and another task has got the slot since then.
            return Some(Remainder::Hold(Box::new(hold)));
        }
        let is_waited_for = !state.waiting.is_empty();
        let may_stay = match is_waited_for {
            true => tenure.may_hand_off(),
            false => self.clones.strong_count() > 0 && tenure.may_idle(),
        };
        let detached = if may_stay { hold.detach() } else { Err(Box::new(hold)) };
        let detached = match detached {
            Ok(detached) => detached,
            Err(hold) => {
                state.advance(self, None);
                return Some(Remainder::Hold(hold));
            }
        };
        let (detached, tenure) = state.advance(self, Some((detached, Arc::clone(tenure))))?;
        if !tenure.may_idle() {
            return Some(Remainder::Detached(Box::new(detached)));
        }
        tenure.start_idle();
        state.occupancy = Occupancy::Idle(detached, tenure, Deadline::after(self.policy.idle_time));
        None
    }

    /// Records that a guard holds a node with this contention.
    fn mark_held(self: &Arc<Self>, number: u64, contention: &Arc<Contention>) {
        let mut state = self.state.lock();
        if state.slot == number {
            state.occupancy = Occupancy::Held(Arc::clone(contention));
            if !state.waiting.is_empty() {
                contention.mark_needed();
            }
        }
    }

    /// Records that the node is lost: its guard does not block the next task of this process.
    fn mark_lost(self: &Arc<Self>, contention: &Arc<Contention>) {
        let mut state = self.state.lock();
        if matches!(&state.occupancy, Occupancy::Held(held) if Arc::ptr_eq(held, contention)) {
            state.advance(self, None);
        }
    }

    /// The end of the idle time of this node, if it is idle.
    fn idle_until(&self, contention: &Arc<Contention>) -> Option<Deadline> {
        match &self.state.lock().occupancy {
            Occupancy::Idle(_, tenure, until) if tenure.is_watched_by(contention) => Some(*until),
            _ => None,
        }
    }

    /// Drops this node if it is idle. With `only_if_over`, only if its idle time is over.
    fn end_idle(&self, contention: &Arc<Contention>, only_if_over: bool) {
        let mut state = self.state.lock();
        let is_to_go = matches!(&state.occupancy, Occupancy::Idle(_, tenure, until)
            if tenure.is_watched_by(contention) && (!only_if_over || until.has_passed()));
        if is_to_go {
            let remainder = std::mem::replace(&mut state.occupancy, Occupancy::Vacant);
            drop(state);
            drop(remainder);
        }
    }
}

impl SharingState {
    fn slot_if_free(&mut self, sharing: &Arc<NodeSharing>) -> Option<AcquireSlot> {
        let idle_node = match std::mem::replace(&mut self.occupancy, Occupancy::Taken) {
            Occupancy::Vacant => None,
            Occupancy::Idle(detached, tenure, _) => Some((detached, tenure)),
            busy => {
                self.occupancy = busy;
                return None;
            }
        };
        self.slot += 1;
        Some(AcquireSlot::new(sharing, self.slot, idle_node))
    }

    /// Gives the slot to the next waiter, with the idle node. Returns the node if no task waits.
    fn advance(&mut self, sharing: &Arc<NodeSharing>, mut idle_node: Option<IdleNode>) -> Option<IdleNode> {
        self.slot += 1;
        while let Some(next) = self.waiting.pop_front() {
            match next.wake.send(AcquireSlot::new(sharing, self.slot, idle_node)) {
                Ok(()) => {
                    self.occupancy = Occupancy::Taken;
                    return None;
                }
                Err(slot) => idle_node = slot.taken_back(),
            }
        }
        self.occupancy = Occupancy::Vacant;
        idle_node
    }
}

/// A hold that is not bound to its slot yet.
struct Unbound {
    hold: Hold,
    tenure: Arc<NodeTenure>,
}

impl Unbound {
    fn with(self, slot: AcquireSlot) -> SharedHold {
        SharedHold::new(self.hold, self.tenure, slot)
    }
}

impl Debug for NodeSharing {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("NodeSharing").field("policy", &self.policy).finish_non_exhaustive()
    }
}
