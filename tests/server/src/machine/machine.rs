use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;

use bytes::Bytes;

use super::client::Client;
use super::replica::{Replica, Txn};
use super::sessions::Sessions;
use super::{ClientId, Output, Settings};
use crate::tree::{Acl, Change, Permissions, Stat, Tree};

/// One ensemble: a tree, its sessions, and the servers in front of it.
///
/// Times are milliseconds since the epoch, given by the caller, and must not go backwards.
#[derive(Debug, Clone)]
pub struct Machine {
    pub(super) settings: Settings,
    pub(super) tree: Tree,
    pub(super) sessions: Sessions,
    pub(super) clients: BTreeMap<ClientId, Client>,
    pub(super) replicas: Vec<Replica>,
    /// The server that keeps the sessions; `None` while the ensemble does not serve.
    pub(super) leader: Option<usize>,
    /// A transaction was committed that no server can read. All have stopped for ever.
    pub(super) is_ruined: bool,
    pub(super) zxid: i64,
    pub(super) late_writes: u64,
    pub(super) counts_ahead: bool,
    pub(super) ahead: HashMap<String, i32>,
    next_client: u64,
    pub(super) next_reaping: i64,
    pub(super) next_relay: i64,
}

impl Machine {
    /// A machine with an empty tree.
    pub fn new(settings: Settings, now: i64) -> Self {
        Self {
            tree: Tree::new(settings.first_sequence, settings.like_clickhouse),
            sessions: Sessions::new(settings.tick, settings.first_session, settings.secret),
            clients: BTreeMap::new(),
            replicas: vec![Replica::default(); settings.servers.max(1)],
            leader: Some(0),
            is_ruined: false,
            zxid: 0,
            late_writes: 0,
            counts_ahead: false,
            ahead: HashMap::new(),
            next_client: 1,
            next_reaping: now + settings.container_interval,
            next_relay: now + settings.tick / 2,
            settings,
        }
    }

    /// A connection is made to a server (counted from 0) from that address.
    pub fn open(&mut self, server: usize, address: &str) -> ClientId {
        let id = ClientId(self.next_client);
        self.next_client += 1;
        self.clients.insert(id, Client::new(server.min(self.replicas.len() - 1), address));
        id
    }

    /// A connection has ended. Its session lives until it expires.
    pub fn disconnect(&mut self, client: ClientId) {
        if let Some(gone) = self.clients.remove(&client)
            && let Some(replica) = self.replicas.get_mut(gone.server)
        {
            replica.watches.remove_client(client);
        }
    }

    pub(super) fn may_write(&self, session: i64, server: usize) -> bool {
        self.sessions.server(session) == Some(server)
    }

    /// The newest transaction that server has applied.
    pub(super) fn seen(&self, server: usize) -> i64 {
        let past = self.replicas.get(server).and_then(|replica| replica.past.as_ref());
        past.map_or(self.zxid, |past| past.zxid)
    }

    /// Applies a transaction and sends the events of watches at every server that is connected.
    pub(super) fn commit(&mut self, txn: Txn, out: &mut Vec<Output>) -> Vec<Option<Stat>> {
        let mut stats = Vec::new();
        for change in &txn.changes {
            let (stat, effect) = self.tree.apply(change, txn.zxid, txn.time);
            if let Change::Delete { path } = change {
                self.ahead.remove(path);
            }
            stats.push(stat);
            for replica in self.replicas.iter_mut().filter(|replica| replica.past.is_none()) {
                let mut events =
                    replica.watches.trigger(&effect, |client, acl| may_read(&self.clients, client, acl));
                if self.settings.like_clickhouse {
                    events
                        .iter_mut()
                        .for_each(|(client, event)| replica.watches.name_watched(*client, event));
                }
                let zxid = if self.settings.event_zxids { txn.zxid } else { -1 };
                out.extend(events.into_iter().map(|(client, event)| Output::Event { client, event, zxid }));
            }
        }
        for past in self.replicas.iter_mut().filter_map(|replica| replica.past.as_mut()) {
            past.missed.push(txn.clone());
        }
        stats
    }

    /// Sets the number that the next sequential child of that node gets. Says whether the node exists.
    pub fn set_sequence(&mut self, path: &str, next: i32) -> bool {
        for past in self.replicas.iter_mut().filter_map(|replica| replica.past.as_mut()) {
            past.tree.set_sequence(path, next);
        }
        self.ahead.remove(path);
        self.tree.set_sequence(path, next)
    }

    /// Sets the version of the data of that node. Says whether the node exists.
    pub fn set_version(&mut self, path: &str, version: i32) -> bool {
        for past in self.replicas.iter_mut().filter_map(|replica| replica.past.as_mut()) {
            past.tree.set_version(path, version);
        }
        self.tree.set_version(path, version)
    }

    /// Lists the servers of an ensemble in `/zookeeper/config`, by the addresses at which they take clients.
    ///
    /// Servers of a quorum talk to each other at two ports of their own. These have none, so the usual ones
    /// are listed.
    pub fn set_members(&mut self, addresses: &[SocketAddr], now: i64) {
        let member = |(index, address): (usize, &SocketAddr)| {
            format!("server.{}={}:2888:3888:participant;{address}\n", index + 1, address.ip())
        };
        let mut text: String = addresses.iter().enumerate().map(member).collect();
        text.push_str("version=0");
        let data = Bytes::from(text);
        for past in self.replicas.iter_mut().filter_map(|replica| replica.past.as_mut()) {
            past.tree.set_config(data.clone(), now);
        }
        self.tree.set_config(data, now);
    }

    /// The tree as the quorum has it.
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// The newest transaction.
    pub fn zxid(&self) -> i64 {
        self.zxid
    }

    /// The open sessions.
    pub fn sessions(&self) -> Vec<i64> {
        self.sessions.ids().collect()
    }

    /// The session of a connection, once it has one.
    pub fn session_of(&self, client: ClientId) -> Option<i64> {
        self.clients.get(&client)?.session
    }

    /// Number of connections to that server.
    pub fn client_count(&self, server: usize) -> usize {
        self.clients.values().filter(|client| client.server == server).count()
    }

    /// Number of watches that clients hold at that server.
    pub fn watch_count(&self, server: usize) -> usize {
        self.replicas.get(server).map_or(0, |replica| replica.watches.len())
    }

    /// Number of servers.
    pub fn servers(&self) -> usize {
        self.replicas.len()
    }
}

pub(super) fn may_read(clients: &BTreeMap<ClientId, Client>, client: ClientId, acl: &[Acl]) -> bool {
    clients.get(&client).is_some_and(|client| Acl::permit(acl, Permissions::READ, &client.identities))
}
