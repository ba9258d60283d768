//! The hand-off in memory: which successors of a released head are granted when its delete is sent.

use super::contender_kind::ContenderKind;
use super::entry::{Entry, EntryKey, EntryState, NodeId, Predecessor};
use super::local_queue::{Effect, LocalQueue};
use super::released_head::ReleasedHead;

/// How many successors one release grants, at most: the same multi checks the node of each.
const HAND_OFF_MAX: usize = 32;

/// A node that a request is about to delete. It ends by [`LocalQueue::finish_release`].
#[derive(Debug, PartialEq, Eq, Hash)]
#[cfg_attr(test, derive(Clone))]
#[must_use]
pub(crate) struct ReleaseInFlight<P> {
    key: EntryKey,
    /// The node is released as the head.
    pub(super) head: Option<ReleasedHead<P>>,
    /// The successors that the release grants. The request checks their nodes.
    pub(crate) checks: Vec<NodeId>,
}

impl<P: Clone> LocalQueue<P> {
    /// Whether a successor of this node may be about to register: its create was sent before `order`, and no
    /// other successor waits. If the release waits for the registration, it can check the successor's node.
    /// If it does not wait, that successor has to list.
    pub(crate) fn expects_successor(&self, key: EntryKey, order: u64) -> bool {
        let hands_off = |entry: &Entry| entry.is_head() && entry.kind != ContenderKind::Read;
        self.entry(key).is_some_and(hands_off)
            && self.successors_of(key.sequence).is_empty()
            && self.pending_creates.first().is_some_and(|oldest| *oldest <= order)
    }

    /// The greatest order so far: that of the last request.
    pub(crate) fn last_order(&self) -> u64 {
        self.last_order
    }

    /// The caller deletes the node by `multi[check(each of checks), delete(node)]`, and finishes the release
    /// under the same lock.
    ///
    /// `connection` is the one that carries the request. There is none while disconnected, if the node is
    /// lost, or if a transaction that rests on it may still be committed: then nothing is handed off.
    ///
    /// A check that fails shows that this successor's node was deleted by hand: the caller
    /// [abandons](Self::abandon) the successor, which has lost its node, and sends the rest again.
    pub(crate) fn begin_release(&mut self, key: EntryKey, connection: Option<u64>) -> ReleaseInFlight<P> {
        let is_leaving = self.entry(key).is_some_and(|entry| entry.is_leaving);
        let Some((connection, granted)) = connection.filter(|_| !is_leaving).zip(self.hand_off_to(key))
        else {
            return ReleaseInFlight { key, head: None, checks: Vec::new() };
        };
        let checks = granted.iter().filter_map(|sequence| self.node_at(*sequence)).collect();
        ReleaseInFlight { key, head: self.released_now(key, connection), checks }
    }

    /// As [`begin_release`](Self::begin_release), by a transaction whose reply the caller awaits. It ends by
    /// [`finish_release`](Self::finish_release) if the transaction is committed, and by
    /// [`cancel_exchange`](Self::cancel_exchange) if not.
    pub(crate) fn begin_exchange(&mut self, key: EntryKey, connection: Option<u64>) -> ReleaseInFlight<P> {
        let kind = self.entry(key).map(|entry| entry.kind);
        // A reader's node may replace a writer's.
        let release =
            self.begin_release(key, connection.filter(|_| matches!(kind, Some(ContenderKind::Lock(_)))));
        self.mark_leaving(key);
        release
    }

    /// Records that a request is sent that deletes the node and checks no successor.
    pub(crate) fn mark_leaving(&mut self, key: EntryKey) {
        if let Some(entry) = self.entry_mut(key) {
            entry.is_leaving = true;
        }
    }

    /// The connection that carried the hand-off broke before the contender took its hold. So the answer to
    /// the check of its node is lost, and a list decides.
    pub(crate) fn withdraw_grant(&mut self, key: EntryKey) {
        if let Some(entry) = self.entry_mut(key).filter(|entry| entry.state == EntryState::Granted) {
            entry.state = EntryState::Waiting;
            self.set_predecessor(key.sequence, Predecessor::Unknown);
        }
    }

    /// Records that the transaction was not committed, and cannot be any more.
    pub(crate) fn cancel_exchange(&mut self, release: &ReleaseInFlight<P>) {
        if let Some(entry) = self.entry_mut(release.key) {
            entry.is_leaving = false;
        }
    }

    /// Records that the request that deletes the node was sent, or that the transaction is committed. If the
    /// connection is not the one on which the release began, the request may not have been sent: then the
    /// successors list.
    pub(crate) fn finish_release(
        &mut self,
        release: ReleaseInFlight<P>,
        connection: Option<u64>,
        payload: Option<P>,
    ) -> Vec<Effect<P>> {
        let ReleaseInFlight { key, head, checks } = release;
        let mut effects = Vec::new();
        let head = head.filter(|head| connection == Some(head.connection));
        if let Some((head, mut granted)) = head.and_then(|head| Some((head, self.hand_off_to(key)?))) {
            granted.retain(|sequence| self.node_at(*sequence).is_some_and(|node| checks.contains(&node)));
            effects = self.grant(granted, &head, payload.clone());
            self.remember(ReleasedHead { payload, ..head });
        }
        effects.extend(self.abandon(key));
        effects
    }

    /// The whole proof of a hand-off: the successors that become the head as soon as the delete of `head` is
    /// sent. Returns `None` if `head` is not released as the head.
    ///
    /// 1. The node at `head` is in the queue: it is neither lost, nor known to be deleted, nor released
    ///    before. No earlier request that deletes it may be in flight.
    /// 2. It is the head: its contender holds, or a hand-off granted it. So no node ahead of it blocks its
    ///    successors, and none can appear there later.
    /// 3. No transaction that rests on it is open: such a transaction might be committed under the next hold.
    ///    The caller passes no connection if there is one.
    /// 4. A successor waits for this very node, and has done so since a list, or its sequence number, showed
    ///    that no node between the two blocks it.
    /// 5. The kinds allow it. A writer never holds without a list, neither after a reader nor after a writer.
    /// 6. The request that deletes the head checks the node of each successor, of [`HAND_OFF_MAX`] at most.
    ///    If one was deleted by hand, the head's node stays, and all contenders behind it wait, until that
    ///    successor is abandoned.
    /// 7. The delete is sent before the successor is granted, over a connection that is up before and after
    ///    the request is sent: all requests of the successor are sent later. If the session ends, both nodes
    ///    are deleted with it.
    fn hand_off_to(&self, head: EntryKey) -> Option<Vec<i32>> {
        let entry = self.entry(head).filter(|entry| entry.is_head())?;
        let mut granted = self.successors_of(head.sequence);
        granted.retain(|successor| {
            let successor = self.entries.get(successor);
            successor.is_some_and(|successor| entry.kind.hands_off_to(successor.kind))
        });
        granted.truncate(HAND_OFF_MAX);
        Some(granted)
    }

    fn grant(&mut self, granted: Vec<i32>, head: &ReleasedHead<P>, payload: Option<P>) -> Vec<Effect<P>> {
        let (connection, since) = (head.connection, head.order);
        let mut effects = Vec::new();
        for sequence in granted {
            self.set_predecessor(sequence, Predecessor::None { since });
            if let Some(entry) = self.entries.get_mut(&sequence) {
                entry.state = EntryState::Granted;
                effects.push(Effect::Grant { node: entry.node, connection, payload: payload.clone() });
            }
        }
        effects
    }
}
