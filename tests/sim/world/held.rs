//! A transaction that is applied late: after a list that does not show it, and long before its client gets
//! the answer to that list.

use lockkeeper_testserver::machine::{ClientId, Origin, Output};
use lockkeeper_testserver::protocol::{Request, WriteOp};

use super::happening::{Happening, ToServer};
use super::state::State;

/// So many transactions of a session are held at most, of one and the same create if it comes to that. After
/// eight broken connections in a row a client takes its create for the reason, and sends it no more; and
/// other faults break connections, too.
const HOLDS_MAX: u32 = 4;

/// A transaction in flight, of a connection that has ended.
pub(super) struct HeldTransaction {
    session: usize,
    origin: Origin,
    request: Request,
}

impl HeldTransaction {
    /// Whether the transaction creates a node in this directory.
    fn is_of(&self, directory: &str) -> bool {
        self.request.paths().iter().any(|path| path.rsplit_once('/').is_some_and(|(of, _)| of == directory))
    }
}

impl State {
    /// Holds the message if it is the chosen one; else returns it.
    pub(super) fn hold_transaction(&mut self, client: ClientId, message: ToServer) -> Option<ToServer> {
        let is_making = |writes: &[WriteOp]| writes.iter().any(|write| matches!(write, WriteOp::Create(_)));
        let is_it = matches!(&message, ToServer::Request(_, Request::Multi(writes)) if is_making(writes));
        let origin = self.machine.origin(client).filter(|_| is_it && self.holds_next && !self.is_healing);
        let (Some(origin), ToServer::Request(_, request)) = (origin, &message) else { return Some(message) };
        let session = self.connections[&client].session;
        let holds = self.holds.entry(session).or_default();
        if *holds == HOLDS_MAX {
            return Some(message);
        }
        *holds += 1;
        self.holds_next = false;
        self.note(|| format!("FAULT {client:?} is cut, and held is {request:?}"));
        self.held = Some(HeldTransaction { session, origin, request: request.clone() });
        self.lose_connection(client);
        self.hang_up(client);
        None
    }

    /// The server at which a transaction of this session is held.
    pub(super) fn server_of_held(&self, session: usize) -> Option<usize> {
        self.held
            .as_ref()
            .filter(|held| held.session == session && !self.is_healing)
            .map(|held| held.origin.server)
    }

    /// Sends the answer to a list of `directory`. Changes after the list may follow at once.
    pub(super) fn emit_list(&mut self, client: ClientId, directory: &str, outputs: Vec<Output>) {
        let session = self.connections.get(&client).map(|connection| connection.session);
        let is_behind = |held: &mut HeldTransaction| Some(held.session) == session && held.is_of(directory);
        let latency = self.latency;
        if let Some(held) = self.held.take_if(is_behind) {
            self.after(1, Happening::Late(held.origin, held.request));
            self.latency = latency.max(self.plan.timeout / 4);
        }
        self.emit(outputs);
        self.latency = latency;
        self.curator_follows(directory);
    }
}
