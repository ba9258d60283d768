use super::replica::{Replica, Txn};
use super::{Machine, Output};
use crate::tree::Change;

impl Machine {
    /// Ends a session and deletes its nodes. Its connections at connected servers are closed by the caller or
    /// by [`Machine::expire`].
    pub(super) fn end(&mut self, session: i64, now: i64, out: &mut Vec<Output>) {
        self.zxid += 1;
        let record: usize = self.tree.ephemerals(session).map(|path| path.len() + 4).sum();
        let changes =
            self.tree.ephemerals(session).map(|path| Change::Delete { path: path.to_owned() }).collect();
        self.sessions.close(session);
        self.commit(Txn { zxid: self.zxid, time: now, changes, ended: Some(session) }, out);
        if self.settings.close_record_max.is_some_and(|max| record > max) {
            self.ruin(now, out);
        }
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

    /// Closes what connections a session has at one server, or at all that are not cut off: those learn of it
    /// later.
    pub(super) fn close_clients(&self, session: i64, at: Option<usize>, out: &mut Vec<Output>) {
        for (id, client) in &self.clients {
            let here = at.map_or_else(|| !self.is_cut_off(client.server), |server| server == client.server);
            if client.session == Some(session) && here {
                out.push(Output::Close { client: *id });
            }
        }
    }

    /// Advances the time: expires sessions and removes containers.
    pub fn advance(&mut self, now: i64) -> Vec<Output> {
        let mut out = Vec::new();
        if self.leader.is_none() {
            return out;
        }
        if self.next_relay <= now {
            self.next_relay = now + self.settings.tick / 2;
            for server in 0..self.replicas.len() {
                self.ask_for_touches(server, now);
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

    /// The leader pings a server, which answers with the sessions that it has heard of. The ping of a server
    /// that is cut off arrives when it is back.
    pub(super) fn ask_for_touches(&mut self, server: usize, now: i64) {
        let Some(replica) = self.replicas.get_mut(server) else { return };
        if let Some(past) = &mut replica.past {
            past.is_pinged = true;
            return;
        }
        for (session, timeout) in std::mem::take(&mut replica.touched) {
            self.sessions.touch(session, timeout, now);
        }
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
        if self.leader.is_none() {
            return i64::MAX;
        }
        let has_to_tell = |replica: &Replica| replica.past.is_none() && !replica.touched.is_empty();
        let relay = self.replicas.iter().any(has_to_tell).then_some(self.next_relay);
        [self.sessions.next_end(), relay].into_iter().flatten().fold(self.next_reaping, i64::min)
    }
}
