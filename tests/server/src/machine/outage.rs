use super::{ClientId, Machine, Output};

impl Machine {
    /// Stops a server, as if its process were killed. Its connections close. The tree and the sessions stay.
    ///
    /// If the ensemble does not serve any more, no time passes for sessions, containers and nodes with a time
    /// to live until it serves again.
    pub fn stop(&mut self, server: usize, now: i64) -> Vec<Output> {
        self.set_stopped(server, true, now)
    }

    /// Starts a server that was stopped.
    ///
    /// If the ensemble serves again by that, every session gets its whole timeout anew, and the next search
    /// for containers is due after a whole interval.
    pub fn start(&mut self, server: usize, now: i64) -> Vec<Output> {
        self.set_stopped(server, false, now)
    }

    /// Whether that server was not stopped.
    pub fn is_running(&self, server: usize) -> bool {
        self.replicas.get(server).is_some_and(|replica| !replica.stopped)
    }

    /// Whether that server takes requests: it runs, and so do enough of the others.
    pub fn is_serving(&self, server: usize) -> bool {
        self.leader.is_some() && self.is_running(server)
    }

    /// The server that keeps the sessions, while the ensemble serves.
    pub fn leader(&self) -> Option<usize> {
        self.leader
    }

    /// Stops every server for ever.
    pub(super) fn ruin(&mut self, now: i64, out: &mut Vec<Output>) {
        self.is_ruined = true;
        for server in 0..self.replicas.len() {
            out.extend(self.stop(server, now));
        }
    }

    fn set_stopped(&mut self, server: usize, stopped: bool, now: i64) -> Vec<Output> {
        let Some(replica) = self.replicas.get_mut(server) else { return Vec::new() };
        replica.stopped = stopped || self.is_ruined;
        replica.touched.clear();
        let leader = self.elect();
        let is_new_leader = leader != self.leader;
        self.leader = leader;
        if is_new_leader && leader.is_some() {
            self.begin_time(now);
        }
        // A server that loses its leader closes all connections, though its process runs on.
        let closes = |at: usize| !self.is_running(at) || is_new_leader;
        let gone = self.clients.iter().filter(|(_, client)| closes(client.server));
        let gone: Vec<ClientId> = gone.map(|(id, _)| *id).collect();
        gone.into_iter().map(|client| Output::Close { client }).collect()
    }

    /// The leader of the servers that run. A leader that still runs stays the leader.
    fn elect(&self) -> Option<usize> {
        let running: Vec<usize> =
            (0..self.replicas.len()).filter(|server| self.is_running(*server)).collect();
        if !self.settings.quorum {
            // There is no election: the first server is called leader as long as any runs.
            return (!running.is_empty()).then_some(0);
        }
        if running.len() * 2 <= self.replicas.len() {
            return None;
        }
        self.leader.filter(|leader| self.is_running(*leader)).or_else(|| running.last().copied())
    }

    /// A new leader knows of no time that has passed.
    fn begin_time(&mut self, now: i64) {
        self.renew_sessions(now);
        self.next_reaping = now + self.settings.container_interval;
        self.next_relay = now + self.settings.tick / 2;
        for replica in &mut self.replicas {
            replica.touched.clear();
        }
    }
}
