//! Kinds of node.

use super::OpCode;

/// How long a node lives and how it is named (`CreateMode`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CreateMode {
    /// Until it is deleted.
    Persistent,
    /// As long as its session.
    Ephemeral,
    /// Until it is deleted, with a sequence number behind its name.
    PersistentSequential,
    /// As long as its session, with a sequence number behind its name.
    EphemeralSequential,
    /// Until some time after its last child.
    Container,
}

impl CreateMode {
    pub(crate) fn flags(self) -> i32 {
        match self {
            Self::Persistent => 0,
            Self::Ephemeral => 1,
            Self::PersistentSequential => 2,
            Self::EphemeralSequential => 3,
            Self::Container => 4,
        }
    }

    /// Containers have a request of their own; the answers are alike.
    pub(crate) fn op(self) -> OpCode {
        match self {
            Self::Container => OpCode::CreateContainer,
            _ => OpCode::Create2,
        }
    }
}
