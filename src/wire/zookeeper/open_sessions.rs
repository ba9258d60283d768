use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::watch;

use super::servers::Servers;
use super::session::ZooKeeperSession;

/// The open sessions of a manager, which all follow its servers.
pub(super) struct OpenSessions {
    servers: watch::Sender<Arc<Servers>>,
    /// Locked while the servers are replaced, so that no session is left at the former ones.
    sessions: Mutex<Vec<Weak<ZooKeeperSession>>>,
}

impl OpenSessions {
    pub(super) fn new(servers: Servers) -> Self {
        Self { servers: watch::Sender::new(Arc::new(servers)), sessions: Mutex::default() }
    }

    pub(super) fn servers(&self) -> Arc<Servers> {
        Arc::clone(&self.servers.borrow())
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<Arc<Servers>> {
        self.servers.subscribe()
    }

    /// From now on `session`, which was opened at these servers, follows.
    pub(super) fn add(&self, session: &Arc<ZooKeeperSession>, opened_at: &Arc<Servers>) {
        let mut sessions = self.sessions.lock();
        sessions.retain(|session| session.strong_count() > 0);
        sessions.push(Arc::downgrade(session));
        if !Arc::ptr_eq(&self.servers(), opened_at) {
            session.begin_move(self.subscribe());
        }
    }

    /// Replaces the servers. Every open session has begun to move when this returns.
    pub(super) fn replace(&self, servers: Servers) {
        let sessions = self.sessions.lock();
        if self.servers().are_those_of(&servers) {
            return;
        }
        self.servers.send_replace(Arc::new(servers));
        for session in sessions.iter().filter_map(Weak::upgrade) {
            session.begin_move(self.subscribe());
        }
    }
}
