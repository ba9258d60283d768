//! The time from a create's request until the sequence numbers of all earlier creates are known.

use super::contender_kind::ContenderKind;
use super::entry::EntryKey;
use super::in_flight::{CreateInFlight, ListInFlight, SequenceWaiter};
use super::local_queue::{Effect, LocalQueue};
use super::prediction::BeforeCreate;

impl<P: Clone> LocalQueue<P> {
    /// Records a create. The caller sends it now, under the lock of the queue: every later request gets a
    /// greater sequence number.
    pub(crate) fn send_create(&mut self, kind: ContenderKind, connection: u64) -> CreateInFlight {
        let last = self.history.last_sequence(connection);
        let prediction = self.history.predict(BeforeCreate {
            kind,
            connection,
            has_pending: !self.pending_creates.is_empty(),
            last_exists: last.is_some_and(|last| self.entries.contains_key(&last)),
            directory_unchanged: last.is_some_and(|last| self.directory_unchanged(last, connection)),
        });
        let order = self.next_order();
        self.pending_creates.insert(order);
        self.unsequenced.insert(order);
        CreateInFlight { order, connection, prediction }
    }

    /// Records a list. The caller sends it now, under the lock of the queue.
    pub(crate) fn send_list(&mut self, connection: u64) -> ListInFlight {
        ListInFlight { order: self.next_order(), connection }
    }

    /// Records that the create has its sequence number. The caller [registers](Self::register) the node
    /// first, if its number determines the order.
    pub(crate) fn mark_created(&mut self, create: &CreateInFlight) -> Vec<Effect<P>> {
        self.end_waits_for_create(create.order)
    }

    /// Records whether the list that was sent with the create showed a predecessor.
    pub(crate) fn record_list(&mut self, contended: bool) {
        self.history.record_list(contended);
    }

    /// Ends a create that is judged, or that no contender waits for any more: it failed, its reply was lost,
    /// or its contender was cancelled.
    pub(crate) fn forget_create(&mut self, create: CreateInFlight) -> Vec<Effect<P>> {
        self.pending_creates.remove(&create.order);
        self.end_waits_for_create(create.order)
    }

    /// Whether the node's predecessor may be the node of an earlier create that has its reply but is not
    /// registered.
    ///
    /// The reply to that create arrived earlier, so its task is about to run. The contender waits for
    /// [`Effect::JudgeBySequence`], but only briefly: the task may never be polled again.
    pub(crate) fn awaits_predecessor(&mut self, create: &CreateInFlight, key: EntryKey) -> bool {
        let has_earlier = self.unsequenced.first().is_some_and(|oldest| *oldest < create.order);
        let Some(before) = key.sequence.checked_sub(1).filter(|_| has_earlier) else {
            return false;
        };
        if self.is_known(before, create.connection) {
            return false;
        }
        self.sequence_waiters.insert(before, SequenceWaiter { order: create.order, node: key.node });
        true
    }

    /// Ends the contender's wait.
    pub(super) fn forget_waiter(&mut self, key: EntryKey) {
        let Some(before) = key.sequence.checked_sub(1) else { return };
        if self.sequence_waiters.get(&before).is_some_and(|waiter| waiter.node == key.node) {
            self.sequence_waiters.remove(&before);
        }
    }

    /// The create has its sequence number, or will never get one.
    fn end_waits_for_create(&mut self, order: u64) -> Vec<Effect<P>> {
        self.unsequenced.remove(&order);
        let oldest = self.unsequenced.first().copied().unwrap_or(u64::MAX);
        let mut effects = Vec::new();
        // A create that was sent later gets a greater number, so it is no predecessor.
        while let Some(first) = self.sequence_waiters.first_entry() {
            if first.get().order >= oldest {
                break;
            }
            effects.push(Effect::JudgeBySequence { node: first.remove().node });
        }
        effects
    }
}
