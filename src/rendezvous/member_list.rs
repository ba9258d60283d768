//! What a member reads of the others.

use super::decide::{READY, Ready};
use super::place::Rendezvous;
use crate::session::{Observation, Session};
use crate::time::deadline::Deadline;
use crate::wire::{Stat, WireError, existing};

impl Rendezvous {
    /// The names of the members, and the node that opens the barrier, read behind them.
    pub(super) async fn list_members(&self, session: &Session) -> Result<MemberList, WireError> {
        loop {
            let connection = session.ensure_synced(Deadline::never()).await?;
            let room = |path| session.watch_budget().reserve(path);
            let mut list = session.observe_children(self.full.as_str(), room(self.full.as_str()));
            let mut ready = session.observe_data(&self.ready, room(&self.ready));
            let (members, _, on_list) = session.await_reply(&mut list, Deadline::never()).await?;
            let ready = existing(session.await_reply(&mut ready, Deadline::never()).await)?;
            if session.connection() == Some(connection) {
                // The watch on the list shows the create of the node that opens the barrier.
                let (ready, on_ready) = ready.map(|(_, stat, watch)| (of_stat(&stat), watch)).unzip();
                let watches = [Some(on_list), on_ready].into_iter().flatten();
                let observation = Observation::new(session, Some(connection), watches).seldom();
                return Ok(MemberList { members, ready, observation });
            }
        }
    }
}

/// What a member has read.
pub(super) struct MemberList {
    pub(super) members: Vec<String>,
    pub(super) ready: Option<Ready>,
    pub(super) observation: Observation,
}

impl MemberList {
    /// The names of the members alone.
    pub(super) fn names(&self) -> Vec<String> {
        self.members.iter().filter(|name| *name != READY).cloned().collect()
    }
}

pub(super) fn of_stat(stat: &Stat) -> Ready {
    Ready { zxid: stat.mzxid, version: stat.version }
}
