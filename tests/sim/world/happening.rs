use lockkeeper_testserver::machine::Origin;
use lockkeeper_testserver::machine::{ClientId, Output};
use lockkeeper_testserver::protocol::{ConnectRequest, Request};

use super::state::State;

/// An event of the simulation.
pub(super) enum Happening {
    Dial(usize),
    ToServer(ClientId, ToServer),
    ToClient(ClientId, Output),
    /// The server notices the end of the client's connection.
    HangUp(ClientId),
    /// The client's timers.
    Tick(usize),
    Advance,
    Late(Origin, Request),
    Strike,
    Thaw(usize),
    CatchUp(usize),
    Rejoin(usize),
    NewLeader,
    DeleteByHand(String),
    ClearByHand(String),
    ClearCounter,
    /// A tool restores this node, if it does not exist.
    Restore(String),
    /// Somebody deletes the node that a tool has made.
    RemoveRestored(String),
    /// The next step of Curator's client in a directory of leases.
    Curator(String),
    Calm,
}

/// A message of a client.
pub(super) enum ToServer {
    Connect(ConnectRequest),
    Request(i32, Request),
}

impl State {
    pub(super) fn happen(&mut self, happening: Happening) {
        let now = self.server_time();
        let Some(happening) = self.defer(happening) else { return };
        match happening {
            Happening::Dial(number) => self.dial(number),
            Happening::Tick(number) => self.tick(number),
            Happening::ToClient(client, output) => self.receive(client, output),
            Happening::ToServer(client, message) => self.deliver(client, message, now),
            Happening::HangUp(client) => self.hang_up(client),
            Happening::Advance => {
                self.next_advance = u64::MAX;
                let outputs = self.machine.advance(now);
                self.emit(outputs);
            }
            Happening::Late(origin, request) => {
                self.note(|| format!("late: {request:?}"));
                let outputs = self.machine.late_write(&origin, request, now);
                self.emit(outputs);
            }
            Happening::Strike => self.strike(),
            Happening::Thaw(process) => {
                self.note(|| format!("process {process} continues"));
                self.processes[process].thaw();
                // Its tasks may run before it reads the messages that have arrived.
                let wait = self.rng.between(0, 2);
                self.after(wait, Happening::CatchUp(process));
            }
            Happening::CatchUp(process) => {
                for late in self.backlogs.remove(&process).unwrap_or_default() {
                    self.happen(late);
                }
            }
            Happening::Rejoin(server) => {
                self.note(|| format!("server {server} is back"));
                let outputs = self.machine.heal(server, now);
                self.emit(outputs);
                self.give_crashed_time();
            }
            Happening::NewLeader => {
                self.machine.renew_sessions(now);
                self.give_crashed_time();
            }
            Happening::DeleteByHand(path) => self.delete_by_hand(&path),
            Happening::ClearByHand(directory) => self.clear_by_hand(&directory),
            Happening::ClearCounter if self.is_healing => {}
            Happening::ClearCounter => self.clear_counter(),
            Happening::Restore(_) if self.is_healing => {}
            Happening::Restore(path) => self.restore(&path),
            Happening::RemoveRestored(path) => self.remove_restored(&path),
            Happening::Curator(directory) => self.advance_curator(&directory),
            Happening::Calm => {
                if !self.is_healing {
                    self.latency = self.plan.latency;
                }
                self.away.retain(|_, until| *until > self.now);
                self.partitioned.retain(|_, until| *until > self.now);
            }
        }
    }

    /// A paused process handles its events later, in order.
    fn defer(&mut self, happening: Happening) -> Option<Happening> {
        let process = match &happening {
            Happening::Dial(session) | Happening::Tick(session) => Some(&self.sessions[*session].process),
            Happening::ToClient(client, _) => {
                self.connections.get(client).map(|connection| &self.sessions[connection.session].process)
            }
            _ => None,
        };
        if let Some(process) = process
            && (process.is_frozen() || self.backlogs.contains_key(&process.number))
        {
            let number = process.number;
            self.backlogs.entry(number).or_default().push(happening);
            return None;
        }
        Some(happening)
    }

    fn deliver(&mut self, client: ClientId, message: ToServer, now: i64) {
        let Some(connection) = self.connections.get(&client).filter(|known| known.at_server) else { return };
        if self.away.contains_key(&connection.server) {
            return;
        }
        let Some(message) = self.hold_transaction(client, message) else { return };
        let list = match &message {
            ToServer::Request(_, Request::GetChildren { path, with_stat: true, .. }) => Some(path.clone()),
            _ => None,
        };
        let outputs = match message {
            ToServer::Connect(request) => self.machine.connect(client, request, now),
            ToServer::Request(xid, request) => self.request(client, xid, request, now),
        };
        match list {
            Some(directory) => self.emit_list(client, &directory, outputs),
            None => self.emit(outputs),
        }
    }
}
