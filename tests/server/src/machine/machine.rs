use std::collections::BTreeMap;

use super::client::Client;
use super::replica::{Past, Replica, Txn, Waiting};
use super::sessions::Sessions;
use super::{ClientId, Isolation, Output, Settings};
use crate::protocol::{ConnectRequest, ConnectResponse, ErrorCode, Reply, Request};
use crate::tree::{Acl, Change, Identity, Permissions, Stat, Tree};

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
    pub(super) zxid: i64,
    next_client: u64,
    next_reaping: i64,
    next_relay: i64,
}

impl Machine {
    /// A machine with an empty tree.
    pub fn new(settings: Settings, now: i64) -> Self {
        Self {
            tree: Tree::new(settings.first_sequence),
            sessions: Sessions::new(settings.tick, settings.first_session, settings.secret),
            clients: BTreeMap::new(),
            replicas: vec![Replica::default(); settings.servers.max(1)],
            zxid: 0,
            next_client: 1,
            next_reaping: now + settings.container_interval,
            next_relay: now + settings.tick / 2,
            settings,
        }
    }

    /// A connection is made to a server (counted from 0) by someone at that address.
    pub fn open(&mut self, server: usize, address: &str) -> ClientId {
        let id = ClientId(self.next_client);
        self.next_client += 1;
        self.clients.insert(id, Client::new(server.min(self.replicas.len() - 1), address));
        id
    }

    /// A connection is gone. Its session lives on until it ends by time.
    pub fn disconnect(&mut self, client: ClientId) {
        if let Some(gone) = self.clients.remove(&client)
            && let Some(replica) = self.replicas.get_mut(gone.server)
        {
            replica.watches.remove_client(client);
        }
    }

    /// A client asks for a session, or for its old one.
    pub fn connect(&mut self, client: ClientId, request: ConnectRequest, now: i64) -> Vec<Output> {
        let mut out = Vec::new();
        let Some(known) = self.clients.get_mut(&client) else { return out };
        if let Some(past) = self.replicas.get_mut(known.server).and_then(|replica| replica.past.as_mut()) {
            known.waiting += 1;
            past.waiting.push_back((client, Waiting::Connect(request)));
            return out;
        }
        self.attach(client, &request, now, &mut out);
        out
    }

    fn attach(&mut self, client: ClientId, request: &ConnectRequest, now: i64, out: &mut Vec<Output>) {
        let Some(server) = self.clients.get(&client).map(|client| client.server) else { return };
        if request.last_zxid > self.zxid {
            // A client must never see time run backwards; it tries the next server.
            out.push(Output::Close { client });
            return;
        }
        let timeout = request.timeout.max(self.settings.min_timeout).min(self.settings.max_timeout);
        let with_read_only = request.read_only.is_some();
        let session = if request.session == 0 {
            self.zxid += 1;
            self.commit(Txn { zxid: self.zxid, time: now, changes: Vec::new(), ended: None }, out);
            self.sessions.open(server, timeout, now)
        } else {
            // The old connection goes before the password is looked at, as in the real server.
            let same = |(id, other): (&ClientId, &Client)| {
                (other.session == Some(request.session) && other.server == server && *id != client)
                    .then_some(*id)
            };
            out.extend(self.clients.iter().filter_map(same).map(|client| Output::Close { client }));
            let right = self.sessions.password(request.session) == request.password;
            if !right || !self.sessions.touch(request.session, timeout, now) {
                let response = ConnectResponse::expired(with_read_only);
                out.extend([Output::Connected { client, response }, Output::Close { client }]);
                return;
            }
            self.sessions.move_to(request.session, server);
            request.session
        };
        if let Some(client) = self.clients.get_mut(&client) {
            client.session = Some(session);
            client.timeout = timeout;
        }
        let password = self.sessions.password(session);
        let response = ConnectResponse { timeout, session, password, with_read_only };
        out.push(Output::Connected { client, response });
    }

    /// A client asks for something. The answer may come later, when its server is cut off.
    pub fn request(&mut self, client: ClientId, xid: i32, request: Request, now: i64) -> Vec<Output> {
        let mut out = Vec::new();
        let Some((server, session, timeout)) = self.attached(client) else {
            // A client may send on before its connect request is answered.
            if !self.wait_behind_connect(client, xid, request) {
                out.push(Output::Close { client });
            }
            return out;
        };
        self.touch(server, session, timeout, now);
        let Some(known) = self.clients.get_mut(&client) else { return out };
        if let Some(past) = self.replicas.get_mut(server).and_then(|replica| replica.past.as_mut()) {
            let goes_to_leader = request.is_write()
                || matches!(request, Request::Sync { .. }) && past.isolation == Isolation::Stale;
            let keeps_its_turn =
                known.waiting > 0 && !matches!(request, Request::Ping | Request::Auth { .. });
            if goes_to_leader || keeps_its_turn {
                known.waiting += 1;
                past.waiting.push_back((client, Waiting::Request(xid, request)));
                return out;
            }
        }
        self.serve(client, xid, request, now, &mut out);
        out
    }

    fn wait_behind_connect(&mut self, client: ClientId, xid: i32, request: Request) -> bool {
        let Some(known) = self.clients.get_mut(&client).filter(|known| known.waiting > 0) else {
            return false;
        };
        let past = self.replicas.get_mut(known.server).and_then(|replica| replica.past.as_mut());
        let Some(past) = past else { return false };
        known.waiting += 1;
        past.waiting.push_back((client, Waiting::Request(xid, request)));
        true
    }

    fn attached(&self, client: ClientId) -> Option<(usize, i64, i32)> {
        let client = self.clients.get(&client)?;
        Some((client.server, client.session?, client.timeout))
    }

    fn touch(&mut self, server: usize, session: i64, timeout: i32, now: i64) {
        let Some(replica) = self.replicas.get_mut(server) else { return };
        if replica.past.is_some() {
            // Nobody hears a server that is cut off.
            return;
        }
        if self.settings.relay_touches && server != 0 {
            replica.touched.insert(session, timeout);
        } else {
            self.sessions.touch(session, timeout, now);
        }
    }

    fn serve(&mut self, client: ClientId, xid: i32, request: Request, now: i64, out: &mut Vec<Output>) {
        let Some((server, session, _)) = self.attached(client) else { return };
        match request {
            Request::Ping => {
                out.push(Output::Reply { client, xid: -2, zxid: self.seen(server), result: Ok(Reply::Done) })
            }
            Request::Auth { scheme, credentials } => {
                self.authenticate(client, xid, &scheme, &credentials, out)
            }
            Request::Unknown { .. } => {
                out.push(Output::Reply { client, xid, zxid: -1, result: Err(ErrorCode::Unimplemented) });
                out.push(Output::Close { client });
            }
            Request::CloseSession => {
                self.end(session, now, out);
                out.push(Output::Reply { client, xid, zxid: self.zxid, result: Ok(Reply::Done) });
                self.close_clients(session, None, out);
            }
            Request::Sync { path } => {
                if self.may_write(session, server) || self.is_cut_off(server) {
                    out.push(Output::Reply {
                        client,
                        xid,
                        zxid: self.seen(server),
                        result: Ok(Reply::Path(path)),
                    });
                } else {
                    out.push(Output::Close { client });
                }
            }
            write if write.is_write() => {
                let Some(origin) = self.origin(client) else { return };
                match self.write(&origin, write, now, out) {
                    Some(result) => out.push(Output::Reply { client, xid, zxid: self.zxid, result }),
                    // The session is attached elsewhere: this connection is a thing of the past.
                    None => out.push(Output::Close { client }),
                }
            }
            read => {
                let result = self.read(client, read, out);
                out.push(Output::Reply { client, xid, zxid: self.seen(server), result });
            }
        }
    }

    fn authenticate(
        &mut self,
        client: ClientId,
        xid: i32,
        scheme: &str,
        secret: &[u8],
        out: &mut Vec<Output>,
    ) {
        let identity = match scheme {
            "digest" => Some(Identity::digest(&String::from_utf8_lossy(secret))),
            // The address was taken when the connection was made.
            "ip" => None,
            _ => {
                out.push(Output::Reply { client, xid, zxid: 0, result: Err(ErrorCode::AuthFailed) });
                out.push(Output::Close { client });
                return;
            }
        };
        if let (Some(client), Some(identity)) = (self.clients.get_mut(&client), identity)
            && !client.identities.contains(&identity)
        {
            client.identities.push(identity);
        }
        out.push(Output::Reply { client, xid, zxid: 0, result: Ok(Reply::Done) });
    }

    pub(super) fn may_write(&self, session: i64, server: usize) -> bool {
        self.sessions.server(session) == Some(server)
    }

    /// The newest transaction that server has applied.
    pub(super) fn seen(&self, server: usize) -> i64 {
        let past = self.replicas.get(server).and_then(|replica| replica.past.as_ref());
        past.map_or(self.zxid, |past| past.zxid)
    }

    /// Applies a transaction and tells the watchers at every server that is connected.
    pub(super) fn commit(&mut self, txn: Txn, out: &mut Vec<Output>) -> Vec<Option<Stat>> {
        let mut stats = Vec::new();
        for change in &txn.changes {
            let (stat, effect) = self.tree.apply(change, txn.zxid, txn.time);
            stats.push(stat);
            for replica in self.replicas.iter_mut().filter(|replica| replica.past.is_none()) {
                let events =
                    replica.watches.trigger(&effect, |client, acl| may_read(&self.clients, client, acl));
                out.extend(events.into_iter().map(|(client, event)| Output::Event { client, event }));
            }
        }
        for past in self.replicas.iter_mut().filter_map(|replica| replica.past.as_mut()) {
            past.missed.push(txn.clone());
        }
        stats
    }

    /// Ends a session and deletes its nodes. Its connections at connected servers are closed by the caller or by
    /// [`Machine::expire`].
    fn end(&mut self, session: i64, now: i64, out: &mut Vec<Output>) {
        self.zxid += 1;
        let changes =
            self.tree.ephemerals(session).map(|path| Change::Delete { path: path.to_owned() }).collect();
        self.sessions.close(session);
        self.commit(Txn { zxid: self.zxid, time: now, changes, ended: Some(session) }, out);
    }

    /// Ends a session now, as if its time were up. Says nothing if it is not open.
    pub fn expire(&mut self, session: i64, now: i64) -> Vec<Output> {
        let mut out = Vec::new();
        if self.sessions.is_open(session) {
            self.end(session, now, &mut out);
            self.close_clients(session, None, &mut out);
        }
        out
    }

    /// Gives every session its whole timeout anew, as a new leader does.
    pub fn renew_sessions(&mut self, now: i64) {
        self.sessions.renew(now);
    }

    fn close_clients(&self, session: i64, at: Option<usize>, out: &mut Vec<Output>) {
        for (id, client) in &self.clients {
            let here = at.map_or_else(|| !self.is_cut_off(client.server), |server| server == client.server);
            if client.session == Some(session) && here {
                out.push(Output::Close { client: *id });
            }
        }
    }

    /// Time has passed: ends sessions whose time is up and removes containers.
    pub fn advance(&mut self, now: i64) -> Vec<Output> {
        let mut out = Vec::new();
        if self.next_relay <= now {
            self.next_relay = now + self.settings.tick / 2;
            for replica in &mut self.replicas {
                for (session, timeout) in std::mem::take(&mut replica.touched) {
                    self.sessions.touch(session, timeout, now);
                }
            }
        }
        while let Some(session) = self.sessions.first_due(now) {
            out.extend(self.expire(session, now));
        }
        if self.next_reaping <= now {
            self.next_reaping = now + self.settings.container_interval;
            out.extend(self.reap(now));
        }
        out
    }

    /// Removes empty containers and TTL nodes now, whenever the next search is due.
    pub fn reap(&mut self, now: i64) -> Vec<Output> {
        let mut out = Vec::new();
        for path in self.tree.reapable(now, self.settings.container_max_never_used) {
            self.zxid += 1;
            let changes = vec![Change::Delete { path }];
            self.commit(Txn { zxid: self.zxid, time: now, changes, ended: None }, &mut out);
        }
        out
    }

    /// When [`Machine::advance`] is next needed.
    pub fn next_deadline(&self) -> i64 {
        let relay =
            self.replicas.iter().any(|replica| !replica.touched.is_empty()).then_some(self.next_relay);
        [self.sessions.next_end(), relay].into_iter().flatten().fold(self.next_reaping, i64::min)
    }

    /// Cuts a server off from the others: from now on it shows the past.
    pub fn cut_off(&mut self, server: usize, isolation: Isolation) {
        let (tree, zxid) = (&self.tree, self.zxid);
        if let Some(replica) = self.replicas.get_mut(server) {
            replica.touched.clear();
            match &mut replica.past {
                Some(past) => past.isolation = isolation,
                None => {
                    let (missed, waiting) = Default::default();
                    replica.past = Some(Past { isolation, tree: tree.clone(), zxid, missed, waiting });
                }
            }
        }
    }

    /// Whether that server is cut off.
    pub fn is_cut_off(&self, server: usize) -> bool {
        self.replicas.get(server).is_some_and(|replica| replica.past.is_some())
    }

    /// Connects a server that was cut off: it catches up, tells its watchers, and then serves what waited.
    pub fn heal(&mut self, server: usize, now: i64) -> Vec<Output> {
        let mut out = Vec::new();
        let Some(replica) = self.replicas.get_mut(server) else { return out };
        let Some(mut past) = replica.past.take() else { return out };
        let mut ended = Vec::new();
        for txn in past.missed {
            for change in &txn.changes {
                let (_, effect) = past.tree.apply(change, txn.zxid, txn.time);
                let events =
                    replica.watches.trigger(&effect, |client, acl| may_read(&self.clients, client, acl));
                out.extend(events.into_iter().map(|(client, event)| Output::Event { client, event }));
            }
            ended.extend(txn.ended);
        }
        for session in ended {
            self.close_clients(session, Some(server), &mut out);
        }
        for (client, waiting) in past.waiting {
            let Some(known) = self.clients.get_mut(&client) else { continue };
            known.waiting = known.waiting.saturating_sub(1);
            if out.contains(&Output::Close { client }) {
                continue;
            }
            match waiting {
                Waiting::Connect(request) => self.attach(client, &request, now, &mut out),
                Waiting::Request(xid, request) => out.extend(self.request(client, xid, request, now)),
            }
        }
        out
    }

    /// Sets the number that the next sequential child of that node gets. Says whether the node exists.
    pub fn set_sequence(&mut self, path: &str, next: i32) -> bool {
        for past in self.replicas.iter_mut().filter_map(|replica| replica.past.as_mut()) {
            past.tree.set_sequence(path, next);
        }
        self.tree.set_sequence(path, next)
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

fn may_read(clients: &BTreeMap<ClientId, Client>, client: ClientId, acl: &[Acl]) -> bool {
    clients.get(&client).is_some_and(|client| Acl::permit(acl, Permissions::READ, &client.identities))
}
