use std::collections::{BTreeMap, BTreeSet};

use sha1::{Digest, Sha1};

#[derive(Debug, Clone)]
struct Session {
    /// The server it was last attached to: the only one that may write for it.
    server: usize,
    /// The tick at which it ends unless a client touches it.
    ends: i64,
    timeout: i32,
}

/// The open sessions and when they end.
#[derive(Debug, Clone)]
pub(super) struct Sessions {
    open: BTreeMap<i64, Session>,
    by_end: BTreeMap<i64, BTreeSet<i64>>,
    tick: i64,
    next: i64,
    secret: u64,
}

impl Sessions {
    pub(super) fn new(tick: i64, first: i64, secret: u64) -> Self {
        Self { open: BTreeMap::new(), by_end: BTreeMap::new(), tick: tick.max(1), next: first, secret }
    }

    pub(super) fn open(&mut self, server: usize, timeout: i32, now: i64) -> i64 {
        let id = self.next;
        self.next += 1;
        self.open.insert(id, Session { server, ends: i64::MIN, timeout });
        self.touch(id, timeout, now);
        id
    }

    pub(super) fn close(&mut self, id: i64) {
        if let Some(session) = self.open.remove(&id) {
            self.forget_end(id, session.ends);
        }
    }

    fn forget_end(&mut self, id: i64, ends: i64) {
        if let Some(ids) = self.by_end.get_mut(&ends) {
            ids.remove(&id);
            if ids.is_empty() {
                self.by_end.remove(&ends);
            }
        }
    }

    /// Puts off the end of a session; says whether it is open.
    ///
    /// The end is the first tick strictly after the timeout, so that a session lives up to a tick too long
    /// and never too short.
    pub(super) fn touch(&mut self, id: i64, timeout: i32, now: i64) -> bool {
        let Some(session) = self.open.get_mut(&id) else { return false };
        let ends = ((now + i64::from(timeout)).div_euclid(self.tick) + 1) * self.tick;
        session.timeout = timeout;
        let before = std::mem::replace(&mut session.ends, ends);
        self.forget_end(id, before);
        self.by_end.entry(ends).or_default().insert(id);
        true
    }

    /// Gives every session its whole timeout anew.
    pub(super) fn renew(&mut self, now: i64) {
        let all: Vec<_> = self.open.iter().map(|(id, session)| (*id, session.timeout)).collect();
        for (id, timeout) in all {
            self.touch(id, timeout, now);
        }
    }

    pub(super) fn is_open(&self, id: i64) -> bool {
        self.open.contains_key(&id)
    }

    pub(super) fn server(&self, id: i64) -> Option<usize> {
        self.open.get(&id).map(|session| session.server)
    }

    pub(super) fn move_to(&mut self, id: i64, server: usize) {
        if let Some(session) = self.open.get_mut(&id) {
            session.server = server;
        }
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = i64> {
        self.open.keys().copied()
    }

    /// A session that expires now.
    pub(super) fn first_due(&self, now: i64) -> Option<i64> {
        let (_, ids) = self.by_end.first_key_value().filter(|(ends, _)| **ends <= now)?;
        ids.first().copied()
    }

    pub(super) fn next_end(&self) -> Option<i64> {
        self.by_end.first_key_value().map(|(ends, _)| *ends)
    }

    pub(super) fn password(&self, id: i64) -> Vec<u8> {
        let hash =
            Sha1::new().chain_update(self.secret.to_be_bytes()).chain_update(id.to_be_bytes()).finalize();
        hash.iter().copied().take(16).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_ends_at_the_first_tick_after_its_timeout() {
        let mut sessions = Sessions::new(100, 1, 0);
        let id = sessions.open(0, 250, 1000);
        assert_eq!(sessions.next_end(), Some(1300));
        assert_eq!(sessions.first_due(1299), None);
        assert_eq!(sessions.first_due(1300), Some(id));
    }

    #[test]
    fn a_timeout_on_the_tick_gets_a_whole_tick_more() {
        let mut sessions = Sessions::new(100, 1, 0);
        sessions.open(0, 200, 1000);
        assert_eq!(sessions.next_end(), Some(1300));
    }

    #[test]
    fn a_touch_puts_the_end_off() {
        let mut sessions = Sessions::new(100, 1, 0);
        let id = sessions.open(0, 250, 1000);
        assert!(sessions.touch(id, 250, 1200));
        assert_eq!(sessions.first_due(1300), None);
        assert_eq!(sessions.next_end(), Some(1500));
        sessions.close(id);
        assert_eq!(sessions.next_end(), None);
        assert!(!sessions.touch(id, 250, 1200));
    }
}
