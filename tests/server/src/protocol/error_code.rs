use thiserror::Error;

/// Why a request was not done, with ZooKeeper's number for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum ErrorCode {
    /// An operation of a failed transaction that was not tried, because an earlier one failed.
    #[error("not tried: an earlier operation of the transaction failed")]
    RuntimeInconsistency,
    /// The bytes of the request make no sense.
    #[error("the request could not be decoded")]
    MarshallingError,
    /// This server does not know that operation.
    #[error("unknown operation")]
    Unimplemented,
    /// An argument is out of range or a path malformed.
    #[error("bad arguments")]
    BadArguments,
    /// The node is not there.
    #[error("no such node")]
    NoNode,
    /// The requester lacks the permission.
    #[error("not permitted")]
    NoAuth,
    /// The node does not have the expected version.
    #[error("version does not match")]
    BadVersion,
    /// The parent is ephemeral.
    #[error("ephemeral nodes may not have children")]
    NoChildrenForEphemerals,
    /// The node is already there.
    #[error("node exists")]
    NodeExists,
    /// The node has children.
    #[error("node has children")]
    NotEmpty,
    /// The session is over.
    #[error("session expired")]
    SessionExpired,
    /// The access list is empty or has an entry without a meaning.
    #[error("invalid ACL")]
    InvalidAcl,
    /// The credentials were not accepted.
    #[error("authentication failed")]
    AuthFailed,
    /// There is no such watch.
    #[error("no such watch")]
    NoWatcher,
    /// Reconfiguration is off.
    #[error("reconfiguration is disabled")]
    ReconfigDisabled,
    /// Any other number, for tests of clients.
    #[error("error {0}")]
    Other(i32),
}

impl ErrorCode {
    /// The number on the wire.
    pub fn code(self) -> i32 {
        match self {
            Self::RuntimeInconsistency => -2,
            Self::MarshallingError => -5,
            Self::Unimplemented => -6,
            Self::BadArguments => -8,
            Self::NoNode => -101,
            Self::NoAuth => -102,
            Self::BadVersion => -103,
            Self::NoChildrenForEphemerals => -108,
            Self::NodeExists => -110,
            Self::NotEmpty => -111,
            Self::SessionExpired => -112,
            Self::InvalidAcl => -114,
            Self::AuthFailed => -115,
            Self::NoWatcher => -121,
            Self::ReconfigDisabled => -123,
            Self::Other(code) => code,
        }
    }
}
