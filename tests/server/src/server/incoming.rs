use crate::fault::Gate;
use crate::protocol::{ConnectRequest, Request};

/// A frame that was read.
#[derive(Debug, Clone)]
pub(super) enum Incoming {
    Connect(ConnectRequest),
    Request(i32, Request),
}

/// The treatment of the answer to a request.
#[derive(Debug, Clone)]
pub(super) enum Fate {
    /// It is sent.
    Sent,
    /// It is sent later.
    Gated(Gate),
    /// It is not sent, but events before it are.
    Dropped,
    /// Nothing of what the request causes is sent to its sender.
    Silenced,
}
