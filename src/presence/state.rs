use std::fmt::{self, Display, Formatter};

use crate::error::Refusal;
use crate::time::boot::BootInstant;
use crate::znode::zxid::Zxid;

/// Whether the node of a registration exists, as far as is known.
///
/// While the connection is down, the state is the last one known: the node exists until the session ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PresenceState {
    /// The node exists, and the current session owns it.
    Registered {
        /// The id of the transaction that created the node.
        czxid: Zxid,
    },
    /// There is no node of the current session. The node is being created.
    Missing {
        /// When this was noticed.
        since: BootInstant,
    },
    /// The node exists, and is not ours. Ours is created as soon as that one is deleted.
    Conflict {
        /// The session that owns the node; 0 if the node is not ephemeral. It is our own session if another
        /// registration of the same manager has the path.
        owner_session: i64,
    },
    /// The server refuses to create or to read the node. The next attempt follows after a session timeout.
    Refused(Refusal),
    /// Another client deleted the node, and the policy is [`OnDeletion::End`]. Final.
    Deleted,
    /// The registration was released, or the manager was shut down. Final.
    Closed,
}

impl PresenceState {
    /// Whether the node exists and is ours.
    #[must_use]
    pub fn is_registered(self) -> bool {
        matches!(self, Self::Registered { .. })
    }

    /// Whether no other state follows.
    #[must_use]
    pub fn is_final(self) -> bool {
        matches!(self, Self::Deleted | Self::Closed)
    }
}

impl Display for PresenceState {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Registered { czxid } => write!(formatter, "registered by transaction {czxid}"),
            Self::Missing { .. } => formatter.write_str("missing"),
            Self::Conflict { owner_session: 0 } => {
                formatter.write_str("in conflict with a node that belongs to no session")
            }
            Self::Conflict { owner_session } => {
                write!(formatter, "in conflict with a node of session {owner_session:#x}")
            }
            Self::Refused(refusal) => write!(formatter, "refused: {refusal}"),
            Self::Deleted => formatter.write_str("deleted by another client"),
            Self::Closed => formatter.write_str("closed"),
        }
    }
}

/// The reaction to another client's delete of the node of a registration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnDeletion {
    /// The node is created again.
    #[default]
    Recreate,
    /// The registration ends, in the state [`Deleted`](PresenceState::Deleted): an operator deletes the node
    /// to take a process out of service.
    ///
    /// A process that is cut off, and whose session expires before it is connected again, cannot know that
    /// its node was deleted by hand: it registers again.
    End,
}
