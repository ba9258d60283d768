use super::machine::may_read;
use super::replica::{Past, Waiting};
use super::{Isolation, Machine, Output};

impl Machine {
    /// Cuts a server off from the others: from now on it shows the past.
    ///
    /// Its clients stay connected, so its connection to the leader only stalls: its report of their
    /// sessions arrives later. A follower whose connection to the leader breaks closes those of its clients.
    pub fn cut_off(&mut self, server: usize, isolation: Isolation) {
        let (tree, zxid) = (&self.tree, self.zxid);
        if let Some(replica) = self.replicas.get_mut(server) {
            match &mut replica.past {
                Some(past) => past.isolation = isolation,
                None => {
                    let (missed, waiting) = Default::default();
                    let is_pinged = false;
                    replica.past =
                        Some(Past { isolation, tree: tree.clone(), zxid, missed, waiting, is_pinged });
                }
            }
        }
    }

    /// Whether that server is cut off.
    pub fn is_cut_off(&self, server: usize) -> bool {
        self.replicas.get(server).is_some_and(|replica| replica.past.is_some())
    }

    /// Connects a server that was cut off: it catches up, sends the events of its watches, and then serves
    /// the waiting requests.
    pub fn heal(&mut self, server: usize, now: i64) -> Vec<Output> {
        let mut out = Vec::new();
        let Some(replica) = self.replicas.get_mut(server) else { return out };
        let Some(mut past) = replica.past.take() else { return out };
        if past.is_pinged || self.next_relay <= now {
            // The stalled ping precedes all other messages of the leader.
            self.ask_for_touches(server, now);
        }
        let Some(replica) = self.replicas.get_mut(server) else { return out };
        let mut ended = Vec::new();
        for txn in past.missed {
            for change in &txn.changes {
                let (_, effect) = past.tree.apply(change, txn.zxid, txn.time);
                let events =
                    replica.watches.trigger(&effect, |client, acl| may_read(&self.clients, client, acl));
                let zxid = if self.settings.event_zxids { txn.zxid } else { -1 };
                out.extend(events.into_iter().map(|(client, event)| Output::Event { client, event, zxid }));
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
}
