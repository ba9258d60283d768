use thiserror::Error;

use crate::znode::whole_path::WholePath;

/// A hold that ended before it was released.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("lost {path}: {reason}")]
pub struct Lost {
    /// The path of the node that the hold rests on.
    pub path: WholePath,
    /// Why the hold is lost.
    pub reason: LossReason,
}

/// Why a hold, or a whole session, is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum LossReason {
    /// The server expired the session.
    #[error("the session expired")]
    SessionExpired,
    /// No server answered for longer than the session timeout, so the session was given up. Whether a server
    /// has expired it is not known.
    #[error("no server answered for longer than the session timeout, and may have ended the session")]
    NoAnswer,
    /// The server gave the connection to another session, or cannot show that it did not.
    #[error("the server replaced the session on reconnect")]
    SessionReplaced,
    /// The server may expire the session from now on: the ensemble has confirmed nothing for too long.
    #[error("the lease ran out: no confirmation from the ensemble within the session timeout")]
    LeaseRanOut,
    /// Another client deleted the node.
    #[error("another client deleted its node")]
    NodeDeleted,
    /// The node does not exist any more, and the cause is not known. Another client deleted it, or an
    /// exchange of this hold whose answer was lost, or it ended with its session, which a reconnect did not
    /// bring back.
    #[error(
        "its node does not exist: deleted by another client, by an exchange without an answer, \
         or with its session"
    )]
    NodeMissing,
    /// The manager was shut down.
    #[error("the connection manager was shut down")]
    Closed,
    /// The manager was not shut down, and its task has ended: with the runtime on which the manager was
    /// connected, or by a panic. The session, and its nodes, exist until the session timeout has passed.
    #[error("the runtime of the connection manager ended without a shutdown")]
    RuntimeEnded,
    /// The servers no longer accept the credentials.
    #[error("the servers refused the credentials")]
    AuthFailed,
}
