//! A node that stays in the process: who of its tasks comes next, and when the node has to go.
//!
//! One task at a time has the [`AcquireSlot`]: it stands in the real line for all, or holds. The others wait here, in the order in
//! which they came, and have no nodes. A guard that ends gives its place to the next of them, for as long as
//! [`Contention`] allows it.

mod acquire_slot;
mod contention;
mod shared_hold;

use std::collections::VecDeque;
use std::fmt::{self, Debug, Formatter};
use std::sync::{Arc, Weak};

use lockkeeper_core::{Deadline, DetachedNode, Error, Hold, LockQueue};
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tracing::Instrument;

use self::acquire_slot::{AcquireSlot, SlotWait};
use self::contention::{Contention, NodeTenure};
pub(super) use self::shared_hold::{Remainder, SharedHold};
use super::hand_off_policy::HandOffPolicy;

/// What the clones of one mutex share.
#[derive(Clone, Debug)]
pub(super) struct SharingHandle {
    sharing: Arc<NodeSharing>,
    /// Held by the clones alone, and by nobody who only looks in for a moment.
    _clones: Arc<()>,
}

/// Keeps the node from one guard to the next.
pub(super) struct NodeSharing {
    policy: HandOffPolicy,
    /// Nobody can take what stays here once the last clone of the mutex is gone.
    clones: Weak<()>,
    state: Mutex<SharingState>,
}

struct SharingState {
    /// The number of the turn; that of whoever has it, if it is taken.
    slot: u64,
    occupancy: Occupancy,
    /// Who waits, first come first.
    waiting: VecDeque<Waiter>,
    arrivals: u64,
}

enum Occupancy {
    /// Nobody has the turn, and nobody waits for it.
    Vacant,
    /// Somebody has it, and no guard yet.
    Taken,
    /// A guard rests on a node that is seen so.
    Held(Arc<Contention>),
    /// The node stands for whoever comes next.
    Idle(DetachedNode, Arc<NodeTenure>, Deadline),
}

struct Waiter {
    number: u64,
    wake: oneshot::Sender<AcquireSlot>,
}

/// A place that is passed on, and its stay in this process.
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

    /// Holds what came with the turn, if something did and it still stands.
    fn take_idle(&self, slot: &mut AcquireSlot) -> Option<Unbound> {
        let (detached, tenure) = slot.idle_node.take()?;
        let hold = detached.attach().ok()?;
        Some(Unbound { hold, tenure })
    }

    /// A node of our own was granted: its stay here begins.
    fn begin(self: &Arc<Self>, hold: Hold) -> Unbound {
        let tenure = contention::start_watcher(self, self.policy, &hold);
        Unbound { hold, tenure }
    }

    /// The turn, if nobody has it.
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

    /// How many come before this waiter, whoever has the turn included.
    fn ahead(&self, number: u64) -> usize {
        let state = self.state.lock();
        state.waiting.binary_search_by_key(&number, |waiter| waiter.number).unwrap_or_else(|at| at) + 1
    }

    /// It waits no more.
    fn cancel_wait(&self, number: u64) {
        let mut state = self.state.lock();
        if let Ok(at) = state.waiting.binary_search_by_key(&number, |waiter| waiter.number) {
            state.waiting.remove(at);
        }
    }

    /// The turn with this number is over, and so is the place that came with it.
    fn end_slot(self: &Arc<Self>, number: u64, idle_node: Option<IdleNode>) {
        let mut state = self.state.lock();
        let remainder = if state.slot == number { state.advance(self, idle_node) } else { idle_node };
        drop(state);
        drop(remainder);
    }

    /// Passes the place of a guard on, or keeps it for who comes next, or tells what is left to be released.
    fn give_back(self: &Arc<Self>, number: u64, hold: Hold, tenure: &Arc<NodeTenure>) -> Option<Remainder> {
        let mut state = self.state.lock();
        if state.slot != number {
            // It was lost, and somebody else has had the turn since.
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

    /// A guard rests on this node now.
    fn mark_held(self: &Arc<Self>, number: u64, contention: &Arc<Contention>) {
        let mut state = self.state.lock();
        if state.slot == number {
            state.occupancy = Occupancy::Held(Arc::clone(contention));
            if !state.waiting.is_empty() {
                contention.mark_needed();
            }
        }
    }

    /// What is seen so is lost: whoever holds it keeps nobody waiting here.
    fn mark_lost(self: &Arc<Self>, contention: &Arc<Contention>) {
        let mut state = self.state.lock();
        if matches!(&state.occupancy, Occupancy::Held(held) if Arc::ptr_eq(held, contention)) {
            state.advance(self, None);
        }
    }

    /// Until when a node that is seen so lingers, if it does.
    fn idle_until(&self, contention: &Arc<Contention>) -> Option<Deadline> {
        match &self.state.lock().occupancy {
            Occupancy::Idle(_, tenure, until) if tenure.is_watched_by(contention) => Some(*until),
            _ => None,
        }
    }

    /// Gives a node that is seen so up if it lingers; `only_if_over`: if its time is over.
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

    /// The next one's turn, with the place; what is left of that when nobody waits.
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

/// A hold that is not bound to its turn yet.
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
