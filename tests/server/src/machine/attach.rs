use super::client::Client;
use super::replica::{Txn, Waiting};
use super::{ClientId, Machine, Output};
use crate::protocol::{ConnectRequest, ConnectResponse};

impl Machine {
    /// A client asks for a session, or for its old one.
    pub fn connect(&mut self, client: ClientId, request: ConnectRequest, now: i64) -> Vec<Output> {
        let mut out = Vec::new();
        let Some(known) = self.clients.get(&client) else { return out };
        if !self.is_serving(known.server) {
            out.push(Output::Close { client });
            return out;
        }
        let Some(known) = self.clients.get_mut(&client) else { return out };
        if let Some(past) = self.replicas.get_mut(known.server).and_then(|replica| replica.past.as_mut()) {
            known.waiting += 1;
            past.waiting.push_back((client, Waiting::Connect(request)));
            return out;
        }
        self.attach(client, &request, now, &mut out);
        out
    }

    pub(super) fn attach(
        &mut self,
        client: ClientId,
        request: &ConnectRequest,
        now: i64,
        out: &mut Vec<Output>,
    ) {
        let Some(server) = self.clients.get(&client).map(|client| client.server) else { return };
        if request.last_zxid > self.zxid {
            // A client must never see time run backwards; it tries the next server.
            out.push(Output::Close { client });
            return;
        }
        let timeout = request.timeout.max(self.settings.min_timeout).min(self.settings.max_timeout);
        let with_read_only = request.read_only.is_some();
        let session = if request.session == 0 || self.settings.like_clickhouse {
            self.zxid += 1;
            self.commit(Txn { zxid: self.zxid, time: now, changes: Vec::new(), ended: None }, out);
            self.sessions.open(server, timeout, now)
        } else {
            // The old connection is closed before the password is checked, as in the real server.
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
}
