//! One message that a proxy has seen.

use super::ledger::Ledger;
use crate::wire::{OpCode, Reply, Request};

/// A message that a proxy has forwarded or dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Record {
    /// Its position in the order of all messages of these proxies.
    pub at: u64,
    /// Whether it is a request, a reply or an event.
    pub message: Message,
    /// The request, or the request that is answered; [`OpCode::Event`] for a watch event.
    pub op: OpCode,
    /// The path of the request or event. A multi has its paths in `parts`, and a reply those of its request.
    pub path: Option<String>,
    /// The parts of a multi.
    pub parts: Vec<(OpCode, String)>,
    /// The session of the connection; 0 until the handshake is answered.
    pub session: i64,
    /// Index of the server.
    pub server: usize,
    /// The connection, numbered over all proxies.
    pub connection: u64,
    /// The client's number of the request.
    pub xid: i32,
    /// Of a reply: the last transaction the server had seen.
    pub zxid: i64,
    /// Of a reply: ZooKeeper's error code, 0 for none.
    pub error: i32,
    /// How many requests of this connection, pings aside, had passed without their reply having passed yet. A
    /// request with 1 or more was certainly sent without waiting. A reply counts its own request. (One with 0
    /// may have been slow to arrive: to be sure, [hold](super::Arming::hold_reply) the reply before it.)
    pub in_flight: usize,
    /// Whether the other side got it.
    pub fate: Fate,
}

impl Record {
    pub(crate) fn of_request(ledger: &Ledger, connection: u64, request: &Request, fate: Fate) -> Self {
        Self {
            at: 0,
            message: Message::Request,
            op: request.op,
            path: request.path.clone(),
            parts: request.parts.clone(),
            session: ledger.session,
            server: ledger.server,
            connection,
            xid: request.xid,
            zxid: 0,
            error: 0,
            in_flight: ledger.in_flight(),
            fate,
        }
    }

    pub(crate) fn of_reply(ledger: &Ledger, connection: u64, reply: &Reply, fate: Fate) -> Self {
        let asked = ledger.request_of(reply).map(|unanswered| unanswered.request.clone());
        let (message, request) = match (&reply.event, asked) {
            (Some(path), _) => (Message::Event, Request::event(path)),
            (None, Some(request)) => (Message::Reply, request),
            // A reply without a request; the tests may want to see it.
            (None, None) => {
                let op = OpCode::Other(0);
                (Message::Reply, Request { xid: reply.xid, op, path: None, parts: Vec::new() })
            }
        };
        let (xid, zxid, error) = (reply.xid, reply.zxid, reply.error);
        Self { message, xid, zxid, error, ..Self::of_request(ledger, connection, &request, fate) }
    }
}

/// The direction of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Message {
    /// From the client.
    Request,
    /// From the server, to a request.
    Reply,
    /// From the server, unasked.
    Event,
}

/// The treatment of a message by a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fate {
    /// Passed it on.
    Passed,
    /// Dropped it, and cut the connection.
    Dropped,
}
