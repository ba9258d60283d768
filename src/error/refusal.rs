use std::fmt::{self, Display, Formatter};

use thiserror::Error;

/// An operation of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Operation {
    /// Create a node.
    Create,
    /// Delete a node.
    Delete,
    /// Read a node.
    Read,
    /// Write a node's data.
    Write,
    /// List children.
    List,
    /// Check the version of a node.
    Check,
    /// Commit a transaction.
    Commit,
}

impl Operation {
    pub(crate) fn is_read(self) -> bool {
        matches!(self, Self::Read | Self::List)
    }
}

impl Display for Operation {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Create => "create",
            Self::Delete => "delete",
            Self::Read => "read",
            Self::Write => "write",
            Self::List => "list",
            Self::Check => "check",
            Self::Commit => "commit a transaction on",
        })
    }
}

/// A definite refusal, by the server unless the variant says otherwise: nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The node, or the parent of a new node, does not exist.
    #[error("there is no such node")]
    NoNode,
    /// The node exists already.
    #[error("the node exists already")]
    NodeExists,
    /// The node has another version than the expected one.
    #[error("the node has another version")]
    BadVersion,
    /// The access list forbids the operation.
    #[error("the access list forbids it; check the ACL and the authentication")]
    NoAuth,
    /// The access list of a new node is not valid.
    #[error("the access list given is not valid; creator_only() needs an authentication")]
    InvalidAcl,
    /// The node has children.
    #[error("the node has children")]
    NotEmpty,
    /// An ephemeral node cannot have children.
    #[error("its parent is ephemeral, and ephemeral nodes have no children")]
    EphemeralParent,
    /// A quota is exhausted.
    #[error("a quota is exhausted")]
    QuotaExceeded,
    /// The server is overloaded.
    #[error("the server has too much to do")]
    Throttled,
    /// The server is read-only: it is cut off from its quorum.
    #[error("the server is read-only")]
    ReadOnly,
    /// The server does not know the operation.
    #[error("the server does not know the operation")]
    Unimplemented,
    /// The server cannot process the request.
    #[error("the request is not valid")]
    BadRequest,
    /// The session has no room for another ephemeral node. It is this library that refuses: nothing was sent.
    /// See [`node_bytes_max`](crate::ConnectionManagerBuilder::node_bytes_max).
    #[error(
        "the ephemeral nodes of this session would exceed its node_bytes_max; release some, use shorter \
         paths, or spread the locks over the sessions of a ConnectionPool"
    )]
    SessionFull,
    /// The session moved to another server, which has not received the request.
    #[error("the session moved to another server")]
    SessionMoved,
    /// A refusal by a code that this library has no name for.
    #[error("the server answered with the error code {0}{hint}", hint = hint(*.0))]
    Code(i32),
}

/// What to do about a refusal that has no name.
fn hint(code: i32) -> &'static str {
    match code {
        -120 => {
            ": the session is a local one, which owns no ephemeral nodes; set localSessionsUpgradingEnabled \
             on the servers"
        }
        _ => "",
    }
}

impl Refusal {
    /// The side that refuses.
    pub(crate) fn by(self) -> &'static str {
        if self == Self::SessionFull { "this client" } else { "the server" }
    }

    /// Whether the server may accept the same request later.
    #[must_use]
    pub fn is_transient(self) -> bool {
        matches!(self, Self::Throttled | Self::ReadOnly | Self::SessionMoved)
    }
}
