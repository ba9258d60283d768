use super::ClientId;
use crate::protocol::{ConnectResponse, ErrorCode, Reply};
use crate::tree::WatchEvent;

/// Something that leaves the server. Outputs of one call are in sending order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// The answer to a connect request.
    Connected {
        /// The receiver.
        client: ClientId,
        /// The answer; a [`Output::Close`] follows when the session has ended.
        response: ConnectResponse,
    },
    /// The answer to a request.
    Reply {
        /// The receiver.
        client: ClientId,
        /// The number the client gave the request.
        xid: i32,
        /// The newest transaction its server has applied.
        zxid: i64,
        /// The answer.
        result: Result<Reply, ErrorCode>,
    },
    /// A watch event.
    Event {
        /// The receiver.
        client: ClientId,
        /// The event.
        event: WatchEvent,
        /// The transaction that caused it; −1 if the server does not say.
        zxid: i64,
    },
    /// The server closes the connection.
    Close {
        /// The connection.
        client: ClientId,
    },
}

impl Output {
    /// The receiver.
    pub fn client(&self) -> ClientId {
        match self {
            Self::Connected { client, .. }
            | Self::Reply { client, .. }
            | Self::Event { client, .. }
            | Self::Close { client } => *client,
        }
    }
}
