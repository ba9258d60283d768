//! The faults, and their end.

use std::sync::Arc;

use lockkeeper_testserver::machine::{ClientId, Isolation, Output};
use lockkeeper_testserver::protocol::{ConnectRequest, Request, WriteOp};

use super::connection::Connection;
use super::happening::{Happening, ToServer};
use super::state::State;
use crate::fault::Fault;
use crate::oracle::{NUMBER, number_in, order};
use crate::wire::set_data;

impl State {
    pub(super) fn strike(&mut self) {
        if self.is_healing {
            return;
        }
        let wait = self.rng.between(1, self.plan.between_faults * 2);
        self.after(wait, Happening::Strike);
        if self.plan.faults.is_empty() {
            return;
        }
        let fault = self.plan.faults[self.rng.index(self.plan.faults.len())];
        let timeout = self.plan.timeout;
        let span = match self.rng.index(3) {
            0 => self.rng.between(1, timeout / 10),
            1 => self.rng.between(1, timeout),
            _ => self.rng.between(timeout, timeout * 2),
        };
        match fault {
            Fault::Cut => {
                if let Some(client) = self.some_client() {
                    self.note(|| format!("FAULT cut {client:?}"));
                    self.cut(client);
                }
            }
            Fault::LoseReplies => self.lose_replies(),
            Fault::Partition => {
                let process = self.rng.index(self.processes.len());
                self.part(process, span);
            }
            Fault::Restart => self.restart_server(span),
            Fault::Stale | Fault::Depose => self.cut_off_server(fault, span),
            Fault::Freeze => self.freeze_process(span),
            Fault::Slow => {
                self.note(|| format!("FAULT slow for {span}"));
                self.latency = timeout / 8;
                self.after(span, Happening::Calm);
            }
            Fault::Reap => {
                let outputs = self.machine.reap(self.server_time());
                self.emit(outputs);
            }
            Fault::Swap => self.swaps_next = true,
            Fault::Strand => self.strands_next = true,
            Fault::HoldTransaction => self.holds_next = true,
            Fault::CuratorsLease => self.curator_is_next = true,
            Fault::DeleteByHand => {
                if let Some(path) = self.some_contender() {
                    self.delete_by_hand(&path);
                }
            }
            Fault::Meddle => self.meddle(timeout),
            Fault::Clear => self.clear_directory(timeout, span),
            Fault::ClearCounter => {
                if self.rng.percent(50) {
                    self.lose_replies();
                }
                let wait = self.rng.between(1, timeout / 2);
                self.after(wait, Happening::ClearCounter);
            }
            Fault::RefuseChange => self.refuses_next = true,
            Fault::CountAhead => {
                self.counts_ahead = !self.counts_ahead;
                self.machine.count_ahead(self.counts_ahead);
            }
            Fault::Restore => self.restore_some(),
            Fault::Crash => self.crash_one(),
        }
    }

    /// The clients with a connection that both sides take for open.
    fn open_clients(&self) -> Vec<ClientId> {
        let is_open = |connection: &Connection| connection.at_client && connection.at_server;
        let open = self.connections.iter().filter(|(_, connection)| is_open(connection));
        open.map(|(client, _)| *client).collect()
    }

    fn some_client(&mut self) -> Option<ClientId> {
        let open = self.open_clients();
        (!open.is_empty()).then(|| open[self.rng.index(open.len())])
    }

    fn lose_replies(&mut self) {
        let Some(client) = self.some_client() else { return };
        self.note(|| format!("FAULT {client:?} loses replies"));
        if let Some(connection) = self.connections.get_mut(&client) {
            connection.loses_replies = true;
        }
    }

    fn restart_server(&mut self, span: u64) {
        let server = self.rng.index(self.plan.servers);
        self.note(|| format!("FAULT restart of server {server} for {span}"));
        self.away.insert(server, self.now + span);
        for client in self.open_clients() {
            if self.connections[&client].server == server {
                self.hang_up(client);
                let way = self.way();
                self.after(way, Happening::ToClient(client, Output::Close { client }));
            }
        }
        self.after(span, Happening::Calm);
    }

    fn cut_off_server(&mut self, fault: Fault, span: u64) {
        let server = self.rng.index(self.plan.servers);
        let others = (0..self.plan.servers).filter(|other| *other != server);
        if others.into_iter().any(|other| self.machine.is_cut_off(other)) {
            return;
        }
        let isolation = if fault == Fault::Stale { Isolation::Stale } else { Isolation::Deposed };
        self.note(|| format!("FAULT server {server} {isolation:?} for {span}"));
        self.machine.cut_off(server, isolation);
        if fault == Fault::Depose && self.rng.percent(50) {
            let election = self.rng.between(1, self.plan.tick);
            self.after(election, Happening::NewLeader);
        }
        self.after(span, Happening::Rejoin(server));
    }

    fn freeze_process(&mut self, span: u64) {
        let process = self.rng.index(self.processes.len());
        if self.processes[process].is_frozen() {
            return;
        }
        self.note(|| format!("FAULT process {process} is paused for {span}"));
        self.processes[process].freeze();
        self.after(span, Happening::Thaw(process));
    }

    /// Writes into a contender's node, and deletes it later.
    fn meddle(&mut self, timeout: u64) {
        if let Some(path) = self.some_contender() {
            self.write_by_hand(&path);
            let wait = self.rng.between(1, timeout / 5);
            self.after(wait, Happening::DeleteByHand(path));
        }
    }

    /// Deletes a directory with all contenders, while one process may be without a connection.
    fn clear_directory(&mut self, timeout: u64, span: u64) {
        if self.rng.percent(50) {
            let process = self.rng.index(self.processes.len());
            self.part(process, span);
        }
        if let Some(path) = self.some_contender() {
            let directory = path.rsplit_once('/').map(|(directory, _)| directory.to_owned());
            let wait = self.rng.between(1, timeout / 10);
            self.after(wait, Happening::ClearByHand(directory.unwrap_or_default()));
        }
    }

    /// From now on the process reaches no server for a time.
    pub(super) fn part(&mut self, process: usize, span: u64) {
        self.note(|| format!("FAULT partition of process {process} for {span}"));
        self.partitioned.insert(process, self.now + span);
        let is_its = |connection: &Connection| {
            connection.at_client
                && connection.at_server
                && self.sessions[connection.session].process.number == process
        };
        let its = self.connections.iter().filter(|(_, connection)| is_its(connection));
        for client in its.map(|(client, _)| *client).collect::<Vec<_>>() {
            self.cut(client);
        }
        self.after(span, Happening::Calm);
    }

    /// The node of a random contender.
    pub(super) fn some_contender(&mut self) -> Option<String> {
        let sessions = self.machine.sessions();
        let of =
            |session: &i64| self.machine.tree().ephemerals(*session).map(str::to_owned).collect::<Vec<_>>();
        let paths: Vec<String> = sessions.iter().flat_map(of).collect();
        (!paths.is_empty()).then(|| paths[self.rng.index(paths.len())].clone())
    }

    pub(super) fn delete_by_hand(&mut self, path: &str) {
        let tree = self.machine.tree();
        if tree.node(path).is_none() {
            return;
        }
        self.deleted_by_hand.insert(path.to_owned());
        // Past the end of the sequence, a client compares its predecessors one by one, and not by one list.
        if order::ahead(tree, path) > 0 && self.plan.first_sequence < i32::MAX / 2 {
            self.deleted_while_queued.insert(path.to_owned());
        }
        self.note(|| format!("FAULT delete by hand {path}"));
        let outputs = self.machine.delete_node(path, self.server_time());
        self.emit(outputs);
    }

    /// Starting with the last node, so that each node but the first has a predecessor when it is deleted.
    pub(super) fn clear_by_hand(&mut self, directory: &str) {
        let tree = self.machine.tree();
        let names = tree.node(directory).map(|node| node.children.clone()).unwrap_or_default();
        let paths = names.iter().map(|name| format!("{directory}/{name}"));
        let made_at = |path: String| {
            let stat = tree.node(&path)?.stat();
            (stat.ephemeral_owner != 0).then_some((stat.czxid, path))
        };
        let mut contenders: Vec<(i64, String)> = paths.filter_map(made_at).collect();
        contenders.sort();
        for (_, path) in contenders.iter().rev() {
            self.delete_by_hand(path);
        }
    }

    /// Deletes the counter, and everything below it, in one step.
    pub(super) fn clear_counter(&mut self) {
        let Some(node) = self.machine.tree().node(NUMBER) else { return };
        let below: Vec<String> = node.children.iter().map(|name| format!("{NUMBER}/{name}")).collect();
        let number = number_in(self.machine.tree()).unwrap_or_default();
        self.note(|| format!("FAULT the counter is deleted at {number}"));
        self.cleared_numbers.push(number);
        for path in below.iter().map(String::as_str).chain([NUMBER]) {
            let outputs = self.machine.delete_node(path, self.server_time());
            self.emit(outputs);
        }
    }

    fn write_by_hand(&mut self, path: &str) {
        self.note(|| format!("FAULT write by hand {path}"));
        self.write_as_admin(set_data(path, b"by hand", None));
    }

    /// Writes in a session of its own.
    pub(super) fn write_as_admin(&mut self, write: WriteOp) {
        let Some(server) = (0..self.plan.servers).find(|server| !self.machine.is_cut_off(*server)) else {
            return;
        };
        let now = self.server_time();
        let admin = self.machine.open(server, "10.0.0.3");
        let mut outputs = self.machine.connect(admin, ConnectRequest::default(), now);
        for (xid, request) in [(1, Request::Write(write)), (2, Request::CloseSession)] {
            outputs.extend(self.machine.request(admin, xid, request, now));
        }
        self.machine.disconnect(admin);
        self.emit(outputs);
    }

    /// One process crashes, if another remains.
    fn crash_one(&mut self) {
        let alive: Vec<_> =
            self.processes.iter().filter(|process| !process.is_crashed()).map(Arc::clone).collect();
        if alive.len() < 2 {
            return;
        }
        let process = &alive[self.rng.index(alive.len())];
        self.note(|| format!("FAULT process {} crashes", process.number));
        process.crash();
        let until = self.crashed_until();
        for number in 0..self.sessions.len() {
            let session = &self.sessions[number];
            if session.process.number != process.number || session.has_ended() {
                continue;
            }
            let (id, connection) = (session.id, session.connection);
            if let Some(client) = connection {
                self.cut(client);
            }
            self.sessions[number].end();
            self.crashed.insert(id, until);
        }
    }

    /// Promise 7: the session of a process that crashes now lives for its timeout and a tick at most; and its
    /// last messages may be in flight, and wait in a follower for half a tick.
    fn crashed_until(&self) -> u64 {
        let (timeout, tick) = (self.plan.timeout, self.plan.tick);
        let on_its_way = self.plan.latency.max(timeout / 8);
        self.now + on_its_way + tick / 2 + timeout + tick
    }

    /// The servers renew all sessions, so the time of the crashed processes begins anew.
    pub(super) fn give_crashed_time(&mut self) {
        let until = self.crashed_until();
        self.crashed.values_mut().for_each(|due| *due = until);
    }

    /// Disconnects both ends. The client's messages in flight may still reach the server, even later than
    /// messages of its next connection; those of the server are lost.
    pub(super) fn cut(&mut self, client: ClientId) {
        if self.rng.percent(50) {
            self.break_up(client);
        } else {
            // Messages in flight are lost, or are applied long after the end of the connection.
            let late = self.rng.percent(50).then(|| self.machine.origin(client)).flatten();
            let on_its_way: Vec<(u64, u64)> = self
                .queue
                .iter()
                .filter(|(_, queued)| matches!(queued, Happening::ToServer(to, _) if *to == client))
                .map(|(key, _)| *key)
                .collect();
            for key in on_its_way {
                if let (Some(Happening::ToServer(_, ToServer::Request(_, request))), Some(origin)) =
                    (self.queue.remove(&key), &late)
                {
                    let wait = self.rng.between(1, self.plan.timeout / 4);
                    self.after(wait, Happening::Late(origin.clone(), request));
                }
            }
            self.lose_connection(client);
            self.hang_up(client);
        }
    }

    pub(super) fn heal(&mut self) {
        self.note(|| "HEALING".to_owned());
        self.is_healing = true;
        self.swaps_next = false;
        self.strands_next = false;
        self.holds_next = false;
        self.refuses_next = false;
        self.curator_is_next = false;
        self.away.clear();
        self.partitioned.clear();
        self.latency = self.plan.latency_in_peace();
        let broken = self.connections.iter().filter(|(_, connection)| connection.loses_replies);
        for client in broken.map(|(client, _)| *client).collect::<Vec<_>>() {
            self.break_up(client);
        }
        for server in 0..self.plan.servers {
            if self.machine.is_cut_off(server) {
                let outputs = self.machine.heal(server, self.server_time());
                self.emit(outputs);
            }
        }
        self.remove_all_restored();
        self.give_crashed_time();
        for process in 0..self.processes.len() {
            if self.processes[process].is_frozen() && !self.processes[process].is_crashed() {
                self.after(0, Happening::Thaw(process));
            }
        }
    }
}
