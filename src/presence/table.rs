//! The shared state of all presences of one manager.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use dashmap::DashMap;
use parking_lot::Mutex;
use tokio::sync::{Mutex as Turns, OwnedMutexGuard};

/// The number of earlier sessions that are remembered at most. A server deletes the nodes of a session a
/// timeout after its end.
const SESSIONS_MAX: usize = 64;

/// The sessions of a manager, and which of its paths are in use.
#[derive(Debug, Default)]
pub(super) struct PresenceTable {
    sessions: Mutex<VecDeque<i64>>,
    paths: DashMap<Arc<str>, Weak<Turns<()>>>,
}

impl PresenceTable {
    /// Records the current session, and returns the earlier ones.
    pub(super) fn earlier_than(&self, session: i64) -> Vec<i64> {
        let mut sessions = self.sessions.lock();
        if !sessions.contains(&session) {
            sessions.push_back(session);
        }
        if sessions.len() > SESSIONS_MAX {
            sessions.pop_front();
        }
        sessions.iter().copied().filter(|earlier| *earlier != session).collect()
    }

    /// Resolves when no other presence of the manager uses this path: also not for the deletion of its node.
    pub(super) async fn turn(self: Arc<Self>, path: Arc<str>) -> PathTurn {
        let turns = {
            let mut entry = self.paths.entry(Arc::clone(&path)).or_default();
            match entry.upgrade() {
                Some(turns) => turns,
                None => {
                    let turns = Arc::default();
                    *entry = Arc::downgrade(&turns);
                    turns
                }
            }
        };
        let guard = turns.lock_owned().await;
        PathTurn { guard: Some(guard), table: self, path }
    }
}

/// The right to a path, among the presences of one manager. A drop passes it on.
pub(super) struct PathTurn {
    guard: Option<OwnedMutexGuard<()>>,
    table: Arc<PresenceTable>,
    path: Arc<str>,
}

impl Drop for PathTurn {
    fn drop(&mut self) {
        self.guard = None;
        self.table.paths.remove_if(&self.path, |_, turns| turns.strong_count() == 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_sessions_the_last_ones_are_remembered() {
        let table = PresenceTable::default();
        for session in 1..=100 {
            // Of several presences, each asks.
            for _ in 0..SESSIONS_MAX {
                let earlier = table.earlier_than(session);
                assert_eq!(earlier.last(), (session > 1).then_some(&(session - 1)));
                assert!(earlier.len() < SESSIONS_MAX);
            }
        }
    }
}
