//! What can go wrong, and the end of it.

use lockkeeper_testserver::machine::{ClientId, Isolation, Output};

use super::happening::{Happening, ToServer};
use super::state::State;
use crate::fault::Fault;

impl State {
    pub(super) fn strike(&mut self) {
        if self.is_healing {
            return;
        }
        let wait = self.dice.between(1, self.plan.between_faults * 2);
        self.after(wait, Happening::Strike);
        if self.plan.faults.is_empty() {
            return;
        }
        let fault = self.plan.faults[self.dice.index(self.plan.faults.len())];
        let timeout = self.plan.timeout;
        let span = match self.dice.index(3) {
            0 => self.dice.between(1, timeout / 10),
            1 => self.dice.between(1, timeout),
            _ => self.dice.between(timeout, timeout * 2),
        };
        let open: Vec<ClientId> = self
            .connections
            .iter()
            .filter(|(_, connection)| connection.at_client && connection.at_server)
            .map(|(client, _)| *client)
            .collect();
        match fault {
            Fault::Cut | Fault::LoseReplies if open.is_empty() => {}
            Fault::Cut => {
                let client = open[self.dice.index(open.len())];
                self.note(|| format!("FAULT cut {client:?}"));
                self.cut(client);
            }
            Fault::LoseReplies => {
                let client = open[self.dice.index(open.len())];
                self.note(|| format!("FAULT {client:?} loses replies"));
                if let Some(connection) = self.connections.get_mut(&client) {
                    connection.loses_replies = true;
                }
            }
            Fault::Partition => {
                let process = self.dice.index(self.processes.len());
                self.note(|| format!("FAULT partition of process {process} for {span}"));
                self.partitioned.insert(process, self.now + span);
                for client in open {
                    if self.sessions[self.connections[&client].session].process.number == process {
                        self.cut(client);
                    }
                }
                self.after(span, Happening::Calm);
            }
            Fault::Restart => {
                let server = self.dice.index(self.plan.servers);
                self.note(|| format!("FAULT restart of server {server} for {span}"));
                self.away.insert(server, self.now + span);
                for client in open {
                    if self.connections[&client].server == server {
                        self.hang_up(client);
                        let way = self.way();
                        self.after(way, Happening::ToClient(client, Output::Close { client }));
                    }
                }
                self.after(span, Happening::Calm);
            }
            Fault::Stale | Fault::Depose => {
                let server = self.dice.index(self.plan.servers);
                let others = (0..self.plan.servers).filter(|other| *other != server);
                if others.into_iter().any(|other| self.machine.is_cut_off(other)) {
                    return;
                }
                let isolation = if fault == Fault::Stale { Isolation::Stale } else { Isolation::Deposed };
                self.note(|| format!("FAULT server {server} {isolation:?} for {span}"));
                self.machine.cut_off(server, isolation);
                if fault == Fault::Depose && self.dice.percent(50) {
                    let election = self.dice.between(1, self.plan.tick);
                    self.after(election, Happening::NewLeader);
                }
                self.after(span, Happening::Rejoin(server));
            }
            Fault::Freeze => {
                let process = self.dice.index(self.processes.len());
                if self.processes[process].is_frozen() {
                    return;
                }
                self.note(|| format!("FAULT process {process} stands still for {span}"));
                self.processes[process].freeze();
                self.after(span, Happening::Thaw(process));
            }
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
            Fault::DeleteByHand => self.delete_by_hand(),
        }
    }

    pub(super) fn delete_by_hand(&mut self) {
        let sessions = self.machine.sessions();
        let paths: Vec<String> = sessions
            .iter()
            .flat_map(|session| self.machine.tree().ephemerals(*session))
            .map(str::to_owned)
            .collect();
        if paths.is_empty() {
            return;
        }
        let path = &paths[self.dice.index(paths.len())];
        self.deleted_by_hand.insert(path.clone());
        self.note(|| format!("FAULT delete by hand {path}"));
        let outputs = self.machine.delete_node(path, self.server_time());
        self.emit(outputs);
    }

    /// Both ends are apart from now on. What the client sent may still reach the server, be it later than what it
    /// sends on its next connection; what the server sent is lost.
    pub(super) fn cut(&mut self, client: ClientId) {
        if self.dice.percent(50) {
            self.break_up(client);
        } else {
            // What is on its way is lost, or is applied when the connection is long gone.
            let late = self.dice.percent(50).then(|| self.machine.origin(client)).flatten();
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
                    let wait = self.dice.between(1, self.plan.timeout / 4);
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
        for process in 0..self.processes.len() {
            if self.processes[process].is_frozen() {
                self.after(0, Happening::Thaw(process));
            }
        }
    }
}
