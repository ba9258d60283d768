//! Which message a fault strikes.

use crate::wire::{OpCode, Request};

/// Chooses one message: the n-th that fits, from the moment the fault is armed.
///
/// Without [`Match::op`] every request fits but pings and handshakes; watch events and these two have to be
/// named.
#[derive(Clone, Debug)]
#[must_use = "a match strikes nothing before it is given to `Proxies::on`"]
pub struct Match {
    ops: Vec<OpCode>,
    path: Option<String>,
    session: Option<i64>,
    server: Option<usize>,
    nth: usize,
}

impl Default for Match {
    fn default() -> Self {
        Self { ops: Vec::new(), path: None, session: None, server: None, nth: 1 }
    }
}

impl Match {
    /// The next request, whatever it is.
    pub fn new() -> Self {
        Self::default()
    }

    /// Only requests of this kind, or of any given kind if called again. [`OpCode::Event`] means a watch
    /// event.
    pub fn op(mut self, op: OpCode) -> Self {
        self.ops.push(op);
        self
    }

    /// Only those whose path, or one of whose paths in a multi, contains `text`.
    pub fn path_contains(mut self, text: impl Into<String>) -> Self {
        self.path = Some(text.into());
        self
    }

    /// Only those of one session.
    pub fn session(mut self, session: i64) -> Self {
        self.session = Some(session);
        self
    }

    /// Only those to or from one server.
    pub fn server(mut self, server: usize) -> Self {
        self.server = Some(server);
        self
    }

    /// The n-th that fits, counted over all connections from 1. Default 1.
    pub fn nth(mut self, nth: usize) -> Self {
        self.nth = nth;
        self
    }

    pub(crate) fn position(&self) -> usize {
        self.nth
    }

    pub(crate) fn fits(&self, request: &Request, session: i64, server: usize) -> bool {
        let op = match self.ops.as_slice() {
            [] => !matches!(request.op, OpCode::Ping | OpCode::Connect | OpCode::Event),
            ops => ops.contains(&request.op),
        };
        let path = self.path.as_ref().is_none_or(|text| {
            let mut paths = request.path.iter().chain(request.parts.iter().map(|(_, path)| path));
            paths.any(|path| path.contains(text))
        });
        op && path
            && self.session.is_none_or(|only| only == session)
            && self.server.is_none_or(|only| only == server)
    }
}
