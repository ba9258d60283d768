//! The requests of this session for one directory, from the moment each is sent.

use super::entry::NodeId;
use super::prediction::Prediction;

/// A create of this session, from the moment it is sent. It ends when it is judged or
/// forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[must_use = "a create that never ends keeps later ones waiting"]
pub(crate) struct CreateInFlight {
    /// The position of this create in the order of this session's requests for this directory.
    pub(super) order: u64,
    /// The connection that carried the create.
    pub(super) connection: u64,
    pub(crate) prediction: Prediction,
}

/// A list of the directory, from the moment it is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ListInFlight {
    pub(super) order: u64,
    pub(super) connection: u64,
}

impl ListInFlight {
    pub(crate) fn connection(&self) -> u64 {
        self.connection
    }

    /// Whether the list shows the node of this create, unless the node is deleted: it was sent later, over
    /// the same connection.
    pub(crate) fn shows(&self, create: &CreateInFlight) -> bool {
        create.connection == self.connection && create.order < self.order
    }
}

/// A new node whose predecessor may be about to register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct SequenceWaiter {
    pub(super) order: u64,
    pub(super) node: NodeId,
}
