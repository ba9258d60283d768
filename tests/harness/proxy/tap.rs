//! The shared state of the proxies of one client: rules, log, sessions.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::ledger::Ledger;
use super::liar::{Liar, Lie};
use super::record::{Fate, Record};
use super::rule::Rule;
use super::{Log, RelayedSession};
use crate::error::HarnessError;
use crate::wire::{ConnectResponse, OpCode, Reply, Request};

/// Shared by all connections of a [`Proxies`](super::Proxies). A message is first judged and then either
/// passed or dropped.
#[derive(Debug, Default)]
pub(crate) struct Tap {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    rules: Vec<Arc<Rule>>,
    log: Log,
    messages: u64,
    sessions: Vec<RelayedSession>,
    ledgers: BTreeMap<u64, Ledger>,
    connections: u64,
    liar: Option<Arc<Liar>>,
}

/// A message that has been read, and the rule that strikes it.
#[derive(Debug)]
pub(crate) struct Judged<M> {
    pub(crate) message: M,
    pub(crate) rule: Option<Arc<Rule>>,
    /// A request's rule for its reply.
    later: Option<Arc<Rule>>,
}

impl Tap {
    pub(crate) fn arm(&self, rule: Arc<Rule>) {
        self.state.lock().rules.push(rule);
    }

    pub(crate) fn disarm_all(&self) {
        let mut state = self.state.lock();
        state.rules.clear();
    }

    pub(crate) fn log(&self) -> Log {
        self.state.lock().log.clone()
    }

    pub(crate) fn clear_log(&self) {
        self.state.lock().log = Log::default();
    }

    pub(crate) fn sessions(&self) -> Vec<RelayedSession> {
        self.state.lock().sessions.clone()
    }

    pub(crate) fn forget_session(&self, session: i64) {
        self.state.lock().sessions.retain(|known| known.id != session);
    }

    pub(crate) fn lie(&self, liar: Option<Liar>) -> Vec<Lie> {
        let before = std::mem::replace(&mut self.state.lock().liar, liar.map(Arc::new));
        before.map_or_else(Vec::new, |liar| liar.lies())
    }

    pub(crate) fn liar(&self) -> Option<Arc<Liar>> {
        self.state.lock().liar.clone()
    }

    /// A connection begins; yields its number.
    pub(crate) fn opened(&self, server: usize) -> u64 {
        let mut state = self.state.lock();
        state.connections += 1;
        let connection = state.connections;
        state.ledgers.insert(connection, Ledger::new(server));
        connection
    }

    /// A connection has ended.
    pub(crate) fn closed(&self, connection: u64) {
        self.state.lock().ledgers.remove(&connection);
    }

    /// Reads a request and checks whether a rule strikes it, or will strike its reply.
    pub(crate) fn judge_request(
        &self,
        connection: u64,
        message: &[u8],
    ) -> Result<Judged<Request>, HarnessError> {
        let mut state = self.state.lock();
        let ledger = state.ledger(connection)?;
        let (server, session) = (ledger.server, ledger.session);
        let message = ledger.read_request(message)?;
        let rule = state.strike(&message, session, server);
        Ok(match rule {
            Some(rule) if rule.action().is_on_reply() => Judged { message, rule: None, later: Some(rule) },
            rule => Judged { message, rule, later: None },
        })
    }

    /// Reads a reply or event and checks whether a rule strikes it.
    pub(crate) fn judge_reply(&self, connection: u64, message: &[u8]) -> Result<Judged<Reply>, HarnessError> {
        let mut state = self.state.lock();
        let ledger = state.ledger(connection)?;
        let (server, session) = (ledger.server, ledger.session);
        let message = ledger.read_reply(message)?;
        let rule = match &message.event {
            None => ledger.request_of(&message).and_then(|unanswered| unanswered.rule.clone()),
            Some(path) => state.strike(&Request::event(path), session, server),
        };
        Ok(Judged { message, rule, later: None })
    }

    /// A request that is held back, as it will be logged later.
    pub(crate) fn arriving_request(
        &self,
        connection: u64,
        judged: &Judged<Request>,
    ) -> Result<Record, HarnessError> {
        let mut state = self.state.lock();
        Ok(Record::of_request(state.ledger(connection)?, connection, &judged.message, Fate::Passed))
    }

    /// A reply or event that is held back, as it will be logged later.
    pub(crate) fn arriving_reply(
        &self,
        connection: u64,
        judged: &Judged<Reply>,
    ) -> Result<Record, HarnessError> {
        let mut state = self.state.lock();
        Ok(Record::of_reply(state.ledger(connection)?, connection, &judged.message, Fate::Passed))
    }

    /// A message that was held back will never pass.
    pub(crate) fn dropped(&self, record: Record) -> Record {
        self.state.lock().note(Record { fate: Fate::Dropped, ..record })
    }

    /// A request is forwarded to the server, or not.
    pub(crate) fn request(
        &self,
        connection: u64,
        judged: &Judged<Request>,
        fate: Fate,
    ) -> Result<Record, HarnessError> {
        let mut state = self.state.lock();
        let ledger = state.ledger(connection)?;
        let record = Record::of_request(ledger, connection, &judged.message, fate);
        if fate == Fate::Passed {
            ledger.passed_request(judged.message.clone(), judged.later.clone());
        }
        Ok(state.note(record))
    }

    /// A reply or event is forwarded to the client, or not.
    pub(crate) fn reply(
        &self,
        connection: u64,
        judged: &Judged<Reply>,
        message: &[u8],
        fate: Fate,
    ) -> Result<Record, HarnessError> {
        let mut state = self.state.lock();
        let ledger = state.ledger(connection)?;
        let reply = &judged.message;
        let mut record = Record::of_reply(ledger, connection, reply, fate);
        if ledger.passed_reply(reply) {
            let granted = ConnectResponse::decode(message)?;
            if granted.is_granted() {
                ledger.session = granted.session;
                record.session = granted.session;
                let server = ledger.server;
                state.learn(granted, server);
            }
        }
        if record.op == OpCode::CloseSession && record.error == 0 {
            state.sessions.retain(|known| known.id != record.session);
        }
        Ok(state.note(record))
    }
}

impl State {
    fn ledger(&mut self, connection: u64) -> Result<&mut Ledger, HarnessError> {
        self.ledgers
            .get_mut(&connection)
            .ok_or_else(|| HarnessError::malformed("a connection that has ended"))
    }

    /// The first rule that chooses this message, which is thereby spent. All others count it.
    fn strike(&mut self, request: &Request, session: i64, server: usize) -> Option<Arc<Rule>> {
        let mut striking = None;
        for (place, rule) in self.rules.iter().enumerate() {
            if rule.chooses(request, session, server) && striking.is_none() {
                striking = Some(place);
            }
        }
        striking.map(|place| self.rules.remove(place))
    }

    fn learn(&mut self, granted: ConnectResponse, server: usize) {
        self.sessions.retain(|known| known.id != granted.session);
        let ConnectResponse { timeout, session: id, password } = granted;
        self.sessions.push(RelayedSession { id, password, timeout, server });
    }

    fn note(&mut self, mut record: Record) -> Record {
        record.at = self.messages;
        self.messages += 1;
        self.log.push(record.clone());
        record
    }
}
