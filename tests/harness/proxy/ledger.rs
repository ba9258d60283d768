//! The requests of one connection that have no reply yet.

use std::collections::VecDeque;
use std::sync::Arc;

use super::rule::Rule;
use crate::error::HarnessError;
use crate::wire::{OpCode, Reply, Request};

/// The record of a connection at a proxy.
#[derive(Debug)]
pub(crate) struct Ledger {
    pub(crate) server: usize,
    /// 0 before the handshake is answered.
    pub(crate) session: i64,
    asked: bool,
    answered: bool,
    unanswered: VecDeque<Unanswered>,
}

/// A request that was forwarded.
#[derive(Clone, Debug)]
pub(crate) struct Unanswered {
    pub(crate) request: Request,
    /// The fault for its reply.
    pub(crate) rule: Option<Arc<Rule>>,
}

impl Ledger {
    pub(crate) fn new(server: usize) -> Self {
        Self { server, session: 0, asked: false, answered: false, unanswered: VecDeque::new() }
    }

    /// Reads what a client sends: first the handshake, then requests.
    pub(crate) fn read_request(&self, message: &[u8]) -> Result<Request, HarnessError> {
        if self.asked { Request::decode(message) } else { Ok(Request::handshake()) }
    }

    /// Reads what a server sends: first the handshake, then replies and events.
    pub(crate) fn read_reply(&self, message: &[u8]) -> Result<Reply, HarnessError> {
        if self.answered {
            Reply::decode(message)
        } else {
            Ok(Reply { xid: 0, zxid: 0, error: 0, event: None })
        }
    }

    /// The request that `reply` answers. Some have an xid in common (pings: −2), and are answered in order.
    pub(crate) fn request_of(&self, reply: &Reply) -> Option<&Unanswered> {
        self.unanswered.iter().find(|unanswered| unanswered.request.xid == reply.xid)
    }

    /// How many requests of callers wait for their reply.
    pub(crate) fn in_flight(&self) -> usize {
        self.unanswered.iter().filter(|unanswered| unanswered.request.op != OpCode::Ping).count()
    }

    pub(crate) fn passed_request(&mut self, request: Request, rule: Option<Arc<Rule>>) {
        self.asked = true;
        self.unanswered.push_back(Unanswered { request, rule });
    }

    /// Yields whether this was the handshake.
    pub(crate) fn passed_reply(&mut self, reply: &Reply) -> bool {
        let first = !self.answered;
        self.answered = true;
        let place = self.unanswered.iter().position(|unanswered| unanswered.request.xid == reply.xid);
        place.map(|place| self.unanswered.remove(place));
        first
    }
}
