//! One node of this session in the queue.

use super::contender_kind::ContenderKind;

/// The id of a node within its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct NodeId(pub(crate) u64);

/// A node and its position in the queue.
///
/// Both, since a directory that was deleted and created again gives its sequence numbers a second time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct EntryKey {
    pub(crate) sequence: i32,
    pub(crate) node: NodeId,
}

/// A node of this session that exists, as far as is known.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Entry {
    pub(super) node: NodeId,
    pub(super) kind: ContenderKind,
    pub(super) state: EntryState,
    pub(super) predecessor: Predecessor,
    /// A request that deletes the node may be in flight: the node may be deleted already, and its directory
    /// with it.
    pub(super) is_leaving: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum EntryState {
    Waiting,
    /// A hand-off made the node the head. Its contender has not taken the hold yet, and may still abandon it.
    Granted,
    Held,
}

/// The node that a contender waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Predecessor {
    /// Unknown here: a node of another session, or one that only a list can show.
    Unknown,
    /// The node of this session with this sequence number.
    Own(i32),
    /// The contender waits for no node, from the request with this order on: whatever was sent later finds it
    /// at the head, if its node exists.
    None { since: u64 },
}

impl Entry {
    pub(super) fn new(node: NodeId, kind: ContenderKind) -> Self {
        let (state, predecessor) = (EntryState::Waiting, Predecessor::Unknown);
        Self { node, kind, state, predecessor, is_leaving: false }
    }

    pub(super) fn is_head(&self) -> bool {
        matches!(self.state, EntryState::Granted | EntryState::Held)
    }

    pub(super) fn has_no_predecessor(&self) -> bool {
        self.clear_since().is_some()
    }

    /// The order from which on the contender waits for no node.
    pub(super) fn clear_since(&self) -> Option<u64> {
        match self.predecessor {
            Predecessor::None { since } => Some(since),
            Predecessor::Unknown | Predecessor::Own(_) => None,
        }
    }
}
