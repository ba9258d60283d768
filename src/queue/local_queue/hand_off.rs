//! The hand-off in memory: which successors of a released head are granted when its delete is sent.

use super::released::ReleasedHead;
use super::{ContenderKind, Effect, EntryKey, EntryState, LocalQueue, NodeId, Predecessor};

/// How many successors one release grants, at most: the same multi checks the node of each.
const HAND_OFF_MAX: usize = 32;

/// How a node is released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Release {
    /// As the head of the queue.
    HandOff,
    /// In any other way. Its successors list.
    Abandoned,
}

/// How the node of a release is deleted.
///
/// The caller sends `multi[check(each of checks), delete(node)]` under the lock of the queue, and then does
/// the effects. A check that fails shows that this successor's node was deleted by hand: the caller
/// [abandons](LocalQueue::abandon) the successor, which has lost its node, and sends the rest again.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) struct DeletePlan<P> {
    pub(crate) release: Release,
    /// The nodes that the request checks.
    pub(crate) checks: Vec<NodeId>,
    pub(crate) effects: Vec<Effect<P>>,
}

/// A head that a transaction is about to delete, whose answer is waited for.
#[derive(Debug, PartialEq, Eq, Hash)]
#[cfg_attr(test, derive(Clone))]
#[must_use]
pub(crate) struct ReleaseInFlight<P> {
    key: EntryKey,
    head: Option<ReleasedHead<P>>,
    /// The successor whose node the transaction checks, so that it is granted when the transaction is
    /// committed.
    pub(crate) check: Option<NodeId>,
}

impl<P: Clone> LocalQueue<P> {
    /// The caller deletes the node now, under the lock of the queue. `connection` is the present one.
    pub(crate) fn release(&mut self, key: EntryKey, connection: Option<u64>) -> DeletePlan<P> {
        let Some(granted) = self.hand_off_to(key) else {
            return DeletePlan {
                release: Release::Abandoned,
                checks: Vec::new(),
                effects: self.abandon(key),
            };
        };
        if let (Some(connection), Some(kind)) = (connection, self.entry(key).map(|entry| entry.kind)) {
            let head = self.released_now(key.sequence, kind, connection);
            self.remember(head);
        }
        let checks = granted.iter().filter_map(|sequence| self.node_at(*sequence)).collect();
        let mut effects = self.grant(granted, None);
        effects.extend(self.abandon(key));
        DeletePlan { release: Release::HandOff, checks, effects }
    }

    /// The caller is about to delete the node by a transaction. The transaction checks `check`.
    pub(crate) fn begin_exchange(&mut self, key: EntryKey, connection: Option<u64>) -> ReleaseInFlight<P> {
        let kind = self.entry(key).map(|entry| entry.kind);
        // A reader's node may take a writer's place.
        let (Some(ContenderKind::Lock), Some(connection)) = (kind, connection) else {
            return ReleaseInFlight { key, head: None, check: None };
        };
        let head = Some(self.released_now(key.sequence, ContenderKind::Lock, connection));
        let successor = self.successors_of(key.sequence).first().copied();
        ReleaseInFlight { key, head, check: successor.and_then(|sequence| self.node_at(sequence)) }
    }

    /// The transaction is committed. Its delete is done, so only the successor that it checked is granted.
    pub(crate) fn exchange_committed(
        &mut self,
        release: ReleaseInFlight<P>,
        payload: Option<P>,
    ) -> Vec<Effect<P>> {
        let ReleaseInFlight { key, head, check } = release;
        let is_head = self.entry(key).is_some_and(|entry| entry.state == EntryState::Held);
        if let Some(head) = head.filter(|_| is_head) {
            self.remember(ReleasedHead { payload: payload.clone(), ..head });
        }
        let mut granted = self.hand_off_to(key).unwrap_or_default();
        granted.retain(|sequence| check.is_some() && self.node_at(*sequence) == check);
        let mut effects = self.grant(granted, payload);
        effects.extend(self.abandon(key));
        effects
    }

    /// The whole proof of a hand-off: the successors that are the head as soon as the delete of `head` is
    /// sent; `None` if `head` is not released as the head.
    ///
    /// 1. The node at `head` is in the queue: it is neither lost, nor known to be deleted, nor released
    ///    before.
    /// 2. It is the head: its contender holds, or was granted by a hand-off itself. So nothing is in front of
    ///    it that its successors wait for, and nothing can appear there later.
    /// 3. No transaction that rests on it is open: such a transaction might be committed under the next hold.
    /// 4. A successor waits for this very node, and has done so since a list, or its sequence number, showed
    ///    that nothing is between the two that it waits for.
    /// 5. The kinds allow it. A writer never holds without a list, neither after a reader nor after a writer.
    /// 6. The request that deletes the head checks the node of each successor, of [`HAND_OFF_MAX`] at most.
    ///    If one was deleted by hand, the head's node stays, and with it everything behind waits, until that
    ///    successor is abandoned.
    /// 7. The delete is sent before the successor is told, over the same session: what the successor sends
    ///    comes later. If the session ends, both nodes go with it. That is up to the caller.
    fn hand_off_to(&self, head: EntryKey) -> Option<Vec<i32>> {
        let entry = self.entry(head)?;
        if !entry.is_head() || entry.open_transactions > 0 {
            return None;
        }
        let mut granted = self.successors_of(head.sequence);
        granted.retain(|successor| {
            let successor = self.entries.get(successor);
            successor.is_some_and(|successor| entry.kind.hands_off_to(successor.kind))
        });
        granted.truncate(HAND_OFF_MAX);
        Some(granted)
    }

    fn grant(&mut self, granted: Vec<i32>, payload: Option<P>) -> Vec<Effect<P>> {
        let mut effects = Vec::new();
        for sequence in granted {
            self.set_predecessor(sequence, Predecessor::None);
            if let Some(entry) = self.entries.get_mut(&sequence) {
                entry.state = EntryState::Granted;
                effects.push(Effect::Grant { node: entry.node, payload: payload.clone() });
            }
        }
        effects
    }
}
