//! A released head, and a watch on its directory.

use super::contender_kind::ContenderKind;

/// A head of this session whose delete was sent.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct ReleasedHead<P> {
    pub(super) sequence: i32,
    pub(super) kind: ContenderKind,
    /// The connection that carried its delete.
    pub(super) connection: u64,
    /// The position of its delete in the order of this session's requests for this directory.
    pub(super) order: u64,
    /// The order from which on it was the head.
    pub(super) clear_since: u64,
    /// The watch on the directory that was set, and had not fired, when the delete was sent.
    pub(super) covered_by: Option<WatchId>,
    /// The payload that it passes to the next holder.
    pub(super) payload: Option<P>,
}

/// The id of one watch on the directory: the position of its request in that order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct WatchId(pub(super) u64);

impl WatchId {
    pub(super) fn order(self) -> u64 {
        self.0
    }
}

/// A watch on the directory. A directory that was created again counts its sequence numbers from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum DirectoryWatchState {
    #[default]
    None,
    Requested {
        id: WatchId,
        connection: u64,
    },
    Set {
        id: WatchId,
        connection: u64,
    },
}

impl DirectoryWatchState {
    /// The watch, if it was set over this connection and has not fired. A watch of an earlier connection does
    /// not count: the client re-arms it, but does not report a server's refusal to do so.
    pub(super) fn set_on(self, connection: u64) -> Option<WatchId> {
        match self {
            Self::Set { id, connection: on } if on == connection => Some(id),
            _ => None,
        }
    }

    pub(super) fn is_asked_on(self, connection: u64) -> bool {
        match self {
            Self::None => false,
            Self::Requested { connection: on, .. } | Self::Set { connection: on, .. } => on == connection,
        }
    }
}
