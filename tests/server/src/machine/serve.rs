use super::replica::Waiting;
use super::{ClientId, Isolation, Machine, Output};
use crate::protocol::{ErrorCode, Op, Reply, Request};
use crate::tree::Identity;

impl Machine {
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
        if !self.is_serving(server) {
            out.push(Output::Close { client });
            return out;
        }
        if !self.is_unseen_by_leader(server, &request) {
            self.touch(server, session, timeout, now);
        }
        let Some(known) = self.clients.get_mut(&client) else { return out };
        if let Some(past) = self.replicas.get_mut(server).and_then(|replica| replica.past.as_mut()) {
            let goes_to_leader =
                request.is_write() || request.op() == Op::Sync && past.isolation == Isolation::Stale;
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

    /// A follower of ClickHouse Keeper answers reads, and no other server learns of them
    /// (ClickHouse/ClickHouse#111102).
    fn is_unseen_by_leader(&self, server: usize, request: &Request) -> bool {
        let is_read = !request.is_write() && !matches!(request.op(), Op::Ping | Op::Sync | Op::Auth);
        self.settings.like_clickhouse && self.leader != Some(server) && is_read
    }

    fn touch(&mut self, server: usize, session: i64, timeout: i32, now: i64) {
        let Some(replica) = self.replicas.get_mut(server) else { return };
        if replica.past.is_some() {
            // No other server receives the messages of a server that is cut off.
            return;
        }
        if self.settings.relay_touches && self.leader != Some(server) {
            replica.touched.insert(session, timeout);
        } else {
            self.sessions.touch(session, timeout, now);
        }
    }

    fn serve(&mut self, client: ClientId, xid: i32, request: Request, now: i64, out: &mut Vec<Output>) {
        let Some((server, session, _)) = self.attached(client) else { return };
        if self.settings.unknown.contains(&request.op()) {
            out.push(Output::Close { client });
            return;
        }
        match request {
            Request::Ping => {
                out.push(Output::Reply { client, xid: -2, zxid: self.seen(server), result: Ok(Reply::Done) })
            }
            Request::Auth { scheme, credentials } => {
                self.authenticate(client, xid, &scheme, credentials.as_deref(), out)
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
            Request::Malformed { op: Op::Auth } => out.push(Output::Close { client }),
            Request::Sync { path } => self.sync(client, xid, Reply::Path(path), out),
            Request::NullPath { op: Op::Sync } => self.sync(client, xid, Reply::NullPath, out),
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

    fn sync(&self, client: ClientId, xid: i32, echo: Reply, out: &mut Vec<Output>) {
        let Some((server, session, _)) = self.attached(client) else { return };
        if self.may_write(session, server) || self.is_cut_off(server) {
            out.push(Output::Reply { client, xid, zxid: self.seen(server), result: Ok(echo) });
        } else {
            out.push(Output::Close { client });
        }
    }

    fn authenticate(
        &mut self,
        client: ClientId,
        xid: i32,
        scheme: &str,
        credentials: Option<&[u8]>,
        out: &mut Vec<Output>,
    ) {
        let identity = match (scheme, credentials) {
            ("digest", Some(secret)) => Some(Identity::digest(&String::from_utf8_lossy(secret))),
            // The address was taken when the connection was made.
            ("ip", _) => None,
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
}
