//! One node of this session in the queue.

use crate::queue::rule::ContenderKind;

/// The id of a node within its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct NodeId(pub(crate) u64);

/// A node and its place in the queue.
///
/// Both, since a directory that was removed and created again gives its sequence numbers a second time.
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
    /// A request that deletes the node may be in flight: the node may be gone, and its directory with it.
    pub(super) is_leaving: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum EntryState {
    Waiting,
    /// A hand-off made it the head. Its contender has not taken the hold yet, and may still give it up.
    Granted,
    Held,
}

/// What a contender waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Predecessor {
    /// Not known here: a node of another session, or a list has to tell.
    Unknown,
    /// The node of this session with this sequence number.
    Own(i32),
    /// Nothing in front has to be waited for.
    None,
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
        self.predecessor == Predecessor::None
    }

    #[cfg(test)]
    pub(super) fn is_consistent(&self) -> bool {
        !self.is_head() || self.has_no_predecessor()
    }
}
