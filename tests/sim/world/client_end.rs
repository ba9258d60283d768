//! The client's end of the network, as the real client keeps it.

use lockkeeper_core::LossReason;
use lockkeeper_core::simulation::{Link, WireError};
use lockkeeper_testserver::machine::{ClientId, Output};
use lockkeeper_testserver::protocol::{ConnectRequest, ErrorCode, Request, WriteOp};
use lockkeeper_testserver::tree::WatchKind;
use tokio::sync::oneshot;

use super::connection::Connection;
use super::happening::{Happening, ToServer};
use super::state::State;
use crate::oracle::NUMBER;
use crate::session::{Call, ClientSession, Untaken, Watched};

/// The nodes that a request deletes, and whether it also makes some.
fn deletes(request: &Request) -> (Vec<String>, bool) {
    let writes = match request {
        Request::Write(write) => std::slice::from_ref(write),
        Request::Multi(writes) => writes,
        _ => &[],
    };
    let deleted = writes.iter().filter_map(|write| match write {
        WriteOp::Delete { path, .. } => Some(path.clone()),
        _ => None,
    });
    (deleted.collect(), writes.iter().any(|write| matches!(write, WriteOp::Create { .. })))
}

impl State {
    pub(super) fn call(&mut self, number: usize, call: Call) {
        let (deletes, is_exchange) = deletes(&call.request);
        if !is_exchange {
            self.given_up.extend(deletes.iter().cloned());
        }
        self.leaving.extend(deletes);
        let session = &mut self.sessions[number];
        if session.has_ended() {
            let _ = call.reply.send(Err(WireError::SessionEnded(LossReason::SessionExpired)));
        } else if session.link == Link::Up {
            self.transmit(number, call);
        } else {
            session.queued.push_back(call);
        }
    }

    /// The server that a client is connected to gets a request.
    pub(super) fn request(&mut self, client: ClientId, xid: i32, request: Request, now: i64) -> Vec<Output> {
        let is_write_of_number = matches!(request, Request::Multi(_)) && request.paths().contains(&NUMBER);
        // A server answers in order: it has answered what came before.
        if self.refuses_next && is_write_of_number && self.is_oldest_in_flight(client, xid) {
            self.refuses_next = false;
            self.note(|| format!("FAULT refused is #{xid} of {client:?}"));
            let (zxid, result) = (self.machine.zxid(), Err(ErrorCode::NoAuth));
            return vec![Output::Reply { client, xid, zxid, result }];
        }
        let (mut deleted, is_exchange) = deletes(&request);
        let exists = |state: &Self, path: &String| state.machine.tree().node(path).is_some();
        deleted.retain(|path| !is_exchange && exists(self, path));
        let outputs = self.machine.request(client, xid, request, now);
        deleted.retain(|path| !exists(self, path));
        self.released.extend(deleted);
        outputs
    }

    fn is_oldest_in_flight(&self, client: ClientId, xid: i32) -> bool {
        let oldest = |session: &ClientSession| session.in_flight.front().map(|(oldest, _)| *oldest);
        let mut of_client = self.sessions.iter().filter(|session| session.connection == Some(client));
        of_client.any(|session| oldest(session) == Some(xid))
    }

    pub(super) fn transmit(&mut self, number: usize, call: Call) {
        let session = &mut self.sessions[number];
        let Some(connection) = session.connection else { return };
        let xid = session.next_xid;
        session.next_xid += 1;
        session.last_sent = self.now;
        let request = call.request.clone();
        self.note(|| format!("s{number} {connection:?} -> #{xid} {request:?}"));
        self.sessions[number].in_flight.push_back((xid, call));
        self.forward(connection, ToServer::Request(xid, request));
    }

    pub(super) fn forward(&mut self, client: ClientId, message: ToServer) {
        let way = self.way();
        let Some(connection) = self.connections.get_mut(&client) else { return };
        let at = (self.now + way).max(connection.to_server_from);
        connection.to_server_from = at;
        self.at(at, Happening::ToServer(client, message));
    }

    pub(super) fn unwatch(&mut self, number: usize, watched: &Watched) {
        let session = &mut self.sessions[number];
        // Others may wait for it, or are about to; and what is not connected sets its watches anew.
        let is_asked_for = session.in_flight.iter().any(|(_, call)| call.watched.as_ref() == Some(watched));
        let is_wanted = is_asked_for || session.watched().contains(watched);
        if session.is_ending() || session.link != Link::Up || is_wanted {
            return;
        }
        let (path, kind) = match watched.clone() {
            Watched::Data(path) => (path, WatchKind::Data),
            Watched::Children(path) => (path, WatchKind::Children),
        };
        let (reply, _) = oneshot::channel();
        self.call(number, Call { request: Request::RemoveWatches { path, kind }, watched: None, reply });
    }

    /// Removes the watch that stays on a path, if no task follows it any more.
    pub(super) fn unfollow(&mut self, number: usize, path: &str) {
        let session = &mut self.sessions[number];
        if session.is_ending() || session.link != Link::Up || session.poll_followed(path) {
            return;
        }
        let (reply, _) = oneshot::channel();
        let request = Request::RemoveWatches { path: path.to_owned(), kind: WatchKind::Any };
        self.call(number, Call { request, watched: None, reply });
    }

    pub(super) fn close(&mut self, number: usize) {
        if self.sessions[number].has_ended() || self.sessions[number].is_closing {
            return;
        }
        self.note(|| format!("s{number} closes"));
        let session = &mut self.sessions[number];
        session.is_closing = true;
        if session.opened.is_some() {
            let client = session.connection;
            session.end();
            if let Some(client) = client {
                self.break_up(client);
            }
            return;
        }
        let (reply, _) = oneshot::channel();
        self.call(number, Call { request: Request::CloseSession, watched: None, reply });
    }

    pub(super) fn dial(&mut self, number: usize) {
        let session = &self.sessions[number];
        if session.has_ended() || session.connection.is_some() {
            return;
        }
        let process = session.process.number;
        let drawn = self.rng.index(self.plan.servers);
        // A transaction that is held is refused once its session is at another server.
        let server = self.server_of_held(number).unwrap_or(drawn);
        let (wait, again) = (self.way(), self.rng.between(10, 10 + self.plan.timeout / 20));
        if self.away.contains_key(&server) || self.partitioned.contains_key(&process) {
            return self.after(wait + again, Happening::Dial(number));
        }
        let client = self.machine.open(server, "10.0.0.1");
        self.note(|| format!("s{number} dials server {server}: {client:?}"));
        let connection = Connection {
            session: number,
            server,
            to_server_from: 0,
            to_client_from: 0,
            loses_replies: false,
            at_server: true,
            at_client: true,
        };
        self.connections.insert(client, connection);
        let timeout = i32::try_from(self.plan.timeout).unwrap();
        let swapped = std::mem::take(&mut self.swaps_next) && self.sessions[number].id != 0;
        if swapped {
            self.note(|| format!("FAULT s{number} gets another session"));
        }
        let session = &mut self.sessions[number];
        session.connection = Some(client);
        session.last_sent = self.now;
        let request = ConnectRequest {
            last_zxid: session.seen,
            timeout,
            session: if swapped { 0 } else { session.attached },
            password: session.password.clone(),
            read_only: Some(false),
        };
        self.forward(client, ToServer::Connect(request));
    }

    /// The client's end of a connection has closed.
    pub(super) fn lose_connection(&mut self, client: ClientId) {
        let Some(connection) = self.connections.get_mut(&client).filter(|connection| connection.at_client)
        else {
            return;
        };
        connection.at_client = false;
        let number = connection.session;
        let session = &mut self.sessions[number];
        if session.has_ended() || session.connection != Some(client) {
            return;
        }
        session.disconnect();
        self.note(|| format!("s{number} {client:?} disconnected"));
        if self.sessions[number].opened.is_some() && self.sessions[number].id != 0 {
            self.sessions[number].end();
            return;
        }
        let wait = self.rng.between(1, 1 + self.plan.timeout / 40);
        self.after(wait, Happening::Dial(number));
    }

    pub(super) fn tick(&mut self, number: usize) {
        let timeout = self.plan.timeout;
        let session = &mut self.sessions[number];
        if session.has_ended() {
            return;
        }
        let silent = self.now - session.last_heard;
        if session.link != Link::Up && session.id != 0 && silent > timeout * 7 / 5 {
            self.note(|| format!("s{number} abandons its connection after {silent} ms of silence"));
            let client = self.sessions[number].connection;
            self.sessions[number].end();
            if let Some(client) = client {
                self.break_up(client);
            }
            return;
        }
        let since_sent = self.now - session.last_sent;
        match (session.connection, session.link) {
            (Some(client), Link::Up) if silent > timeout * 2 / 5 => self.break_up(client),
            (Some(client), Link::Down) if since_sent > timeout / 5 => self.break_up(client),
            (Some(client), Link::Up) if since_sent > timeout * 3 / 20 => {
                session.last_sent = self.now;
                self.forward(client, ToServer::Request(-2, Request::Ping));
            }
            _ => {}
        }
        self.after(timeout / 20, Happening::Tick(number));
    }

    /// The client hangs up; the server notices in time.
    pub(super) fn break_up(&mut self, client: ClientId) {
        self.lose_connection(client);
        let notice = self.rng.between(1, self.plan.timeout / 5);
        self.after(notice, Happening::HangUp(client));
    }

    pub(super) fn receive(&mut self, client: ClientId, output: Output) {
        let Some(connection) = self.connections.get(&client).filter(|connection| connection.at_client) else {
            return;
        };
        if connection.loses_replies {
            return;
        }
        let number = connection.session;
        self.sessions[number].last_heard = self.now;
        match output {
            Output::Connected { response, .. } => {
                let session = &mut self.sessions[number];
                if response.session == 0 {
                    self.note(|| format!("s{number} learns that it has expired"));
                    self.sessions[number].end();
                    return;
                }
                session.attached = response.session;
                if session.id == 0 {
                    session.id = response.session;
                }
                session.password = response.password;
                session.set_link(Link::Up);
                if let Some(opened) = session.opened.take() {
                    let _ = opened.send(Ok(()));
                }
                let id = session.id;
                self.note(|| format!("s{number} {client:?} connected, session {id:#x}"));
                self.set_watches(number);
                for call in std::mem::take(&mut self.sessions[number].queued) {
                    self.transmit(number, call);
                }
                // Asked for before the last connection broke.
                if self.sessions[number].is_closing && !self.sessions[number].asks_to_close() {
                    let (reply, _) = oneshot::channel();
                    self.call(number, Call { request: Request::CloseSession, watched: None, reply });
                }
            }
            Output::Reply { xid: -2, zxid, .. } => {
                let session = &mut self.sessions[number];
                session.seen = session.seen.max(zxid);
            }
            Output::Reply { xid, zxid, result, .. } => {
                self.note(|| format!("s{number} {client:?} <- #{xid} {zxid} {result:?}"));
                let session = &mut self.sessions[number];
                let is_write = session.in_flight.front().is_some_and(|(_, call)| call.request.is_write());
                let untaken = session.answer(xid, zxid, result);
                if session.is_closing && session.in_flight.is_empty() && session.queued.is_empty() {
                    session.was_closed = !session.has_ended();
                    session.end();
                }
                // As the client crate does when the future of such a request was dropped.
                match untaken {
                    Some(Untaken::Watch(watched)) => self.unwatch(number, &watched),
                    Some(Untaken::Follower(path)) => self.unfollow(number, &path),
                    None => {}
                }
                if is_write && std::mem::take(&mut self.strands_next) {
                    let process = self.sessions[number].process.number;
                    let span = self.rng.between(self.plan.timeout, self.plan.timeout * 2);
                    self.part(process, span);
                }
            }
            Output::Event { event, .. } => {
                self.note(|| format!("s{number} {client:?} <- {event:?}"));
                self.sessions[number].event(&event.path, event.kind);
            }
            Output::Close { .. } => self.lose_connection(client),
        }
    }

    pub(super) fn set_watches(&mut self, number: usize) {
        let session = &mut self.sessions[number];
        let (mut data, mut children) = (Vec::new(), Vec::new());
        for watched in session.watched() {
            match watched {
                Watched::Data(path) => data.push(path),
                Watched::Children(path) => children.push(path),
            }
        }
        if data.is_empty() && children.is_empty() {
            return;
        }
        let seen = session.seen;
        let request = Request::SetWatches { seen, data, absent: Vec::new(), children, persistent: None };
        let (reply, _) = oneshot::channel();
        self.transmit(number, Call { request, watched: None, reply });
    }
}
