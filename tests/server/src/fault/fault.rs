use std::time::Duration;

use crate::protocol::ErrorCode;

/// The effect on a chosen request, reply or event.
///
/// The order on one connection is always kept: messages after a held or delayed one wait with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// The connection is closed, the request is never applied. Earlier replies are still sent.
    DropConnectionBefore,
    /// The request is applied, then the connection is closed; neither the reply nor events that it causes for
    /// its own sender are sent. Of an event: it is sent, and then the connection is closed.
    DropConnectionAfter,
    /// The request waits, unapplied, until [`ArmedFault::release`](super::ArmedFault::release).
    ///
    /// If its connection has ended by then, it is applied all the same, late, as a server may do that had
    /// read it already; unless its session is over.
    HoldRequest,
    /// The request waits that long before it is applied.
    DelayRequest(Duration),
    /// The request is applied, but its reply (or the event) waits until
    /// [`ArmedFault::release`](super::ArmedFault::release).
    HoldReply,
    /// The request is applied at once, but its reply (or the event) is sent that much later.
    DelayReply(Duration),
    /// The request is applied, but its reply (or the event) is never sent.
    DropReply,
    /// The request is not applied and gets this error. A connect request gets the answer of an expired
    /// session.
    Refuse(ErrorCode),
    /// A connect request that wants its old session back gets a new one, without a word, as ClickHouse Keeper
    /// does. The old session stays until its time is up. Nothing to any other request.
    SwapSession,
}
