use crate::protocol::Op;
use crate::tree::EventKind;

/// A message that a rule may match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// A request has come, the connect request included.
    Request(Op),
    /// An event is about to be sent.
    Event(EventKind),
}

/// A request or event that a fault may hit.
#[derive(Debug, Clone)]
pub struct Occasion<'a> {
    /// Request or event.
    pub subject: Subject,
    /// The paths it names; several for a transaction.
    pub paths: Vec<&'a str>,
    /// The session it belongs to; for a connect request the one it asks for; 0 if none.
    pub session: i64,
    /// The server that handles it, counted from 0.
    pub server: usize,
}
