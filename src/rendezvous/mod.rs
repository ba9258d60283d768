//! Members that enter together and leave together: a double barrier.
//!
//! # Protocol
//!
//! Each member creates an ephemeral node in a directory, whose name it chooses once: a create that has no
//! answer is repeated, and makes no second member. Then it lists the directory. A member that sees enough
//! members asks which of the nodes belong to a session, because a persistent one is no member, and
//! creates the node `ready`, in a transaction that also checks that these members exist. So at the
//! instant at which a barrier opens, enough members exist. `ready` lets in the members whose nodes are older
//! than its last write. It is final: a member that it lets in is inside, whatever the others do.
//!
//! A member leaves by deleting its node, and waits until no member of its round exists. The transaction
//! checks that another member of the round exists; the last member deletes `ready` together with its own
//! node. So while a member of a round exists, `ready` is that of its round. If the last member crashes,
//! `ready` stays. It lets nobody in, because every later member is younger, and the next round writes it
//! again.
//!
//! Sources: Apache Curator's `DistributedDoubleBarrier`, CURATOR-233, CURATOR-330, CURATOR-536, GH-1290
//! (entering without enough members), kazoo's `recipe/barrier.py`.

mod decide;
mod enter;
mod inspect;
mod leave;
mod member;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;

use parking_lot::Mutex;
use tracing::warn;

use self::decide::{READY, Ready};
pub use self::inspect::RendezvousInfo;
use self::member::MemberCreates;
use crate::error::{ConfigError, Error};
use crate::hold::Hold;
use crate::manager::ConnectionManager;
use crate::session::{Observation, Session};
use crate::time::deadline::Deadline;
use crate::wire::{Stat, WireError, existing};
use crate::znode::name::Label;
use crate::znode::path::{IntoPath, ZnodePath};

/// The label of the members' nodes. Clients of other libraries name theirs as they like.
const MEMBER: Label = match Label::new("member") {
    Ok(label) => label,
    Err(_) => panic!("not a label"),
};

/// The number of persistent nodes that are logged at most.
const UNOWNED_MAX: usize = 1024;

/// A place where members enter together and leave together, for authors of recipes.
#[derive(Clone)]
pub struct Rendezvous {
    manager: ConnectionManager,
    path: ZnodePath,
    full: ZnodePath,
    ready: String,
    node_data: Arc<[u8]>,
    metric_name: &'static str,
    /// The creation zxids of the persistent nodes that were logged.
    unowned: Arc<Mutex<BTreeSet<i64>>>,
}

/// A member that was let in. A drop of it leaves in the background, and waits for nobody.
#[must_use = "a member that is not kept leaves at once"]
pub struct Admitted {
    hold: Hold,
    ready: Ready,
    rendezvous: Rendezvous,
    // Dropped behind the hold, which deletes the node.
    creates: MemberCreates,
}

impl Rendezvous {
    /// The place at `path`, below the manager's chroot. Sends nothing.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] if `path` is no path, or the root.
    pub fn new(manager: &ConnectionManager, path: impl IntoPath) -> Result<Self, Error> {
        let path = path.into_path()?;
        let full = manager.full_path(&path)?;
        if path.is_root() {
            let (value, advice) = (path.to_string(), "name a node below the root");
            return Err(ConfigError::Setting { name: "path", value, advice }.into());
        }
        let (ready, node_data) = (full.listed_child(READY), manager.shared_node_data());
        let (manager, metric_name, unowned) = (manager.clone(), "rendezvous", Arc::default());
        Ok(Self { manager, path, full, ready, node_data, metric_name, unowned })
    }

    /// The data of this member's nodes. Default: the manager's node data.
    #[must_use]
    pub fn with_node_data(self, data: impl Into<Vec<u8>>) -> Self {
        Self { node_data: data.into().into(), ..self }
    }

    /// The name of the recipe in metrics and spans. Default: `rendezvous`.
    #[must_use]
    pub fn with_metric_name(self, metric_name: &'static str) -> Self {
        Self { metric_name, ..self }
    }

    /// The path of the place, below the manager's chroot.
    #[must_use]
    pub fn path(&self) -> &ZnodePath {
        &self.path
    }

    /// The manager.
    #[must_use]
    pub fn manager(&self) -> &ConnectionManager {
        &self.manager
    }

    /// Logs a persistent node once. It belongs to no session, so it is no member.
    fn warn_of_unowned(&self, name: &str, stat: &Stat) {
        let mut logged = self.unowned.lock();
        if logged.len() < UNOWNED_MAX && logged.insert(stat.czxid) {
            let path = self.full.listed_child(name);
            warn!(path, "a node that belongs to no session is no member");
        }
    }

    /// The names of the members, and the node that opens the barrier, read behind them.
    async fn list_members(&self, session: &Session) -> Result<MemberList, WireError> {
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
                let observation = Observation::new(session, Some(connection), watches);
                return Ok(MemberList { members, ready, observation });
            }
        }
    }
}

/// What a member has read.
struct MemberList {
    members: Vec<String>,
    ready: Option<Ready>,
    observation: Observation,
}

impl MemberList {
    /// The names of the members alone.
    fn names(&self) -> Vec<String> {
        self.members.iter().filter(|name| *name != READY).cloned().collect()
    }
}

fn of_stat(stat: &Stat) -> Ready {
    Ready { zxid: stat.mzxid, version: stat.version }
}

impl Admitted {
    /// The properties of every hold: whether it is valid, when it is lost, its fencing token, and writes that
    /// are committed only while its node exists.
    pub fn hold(&self) -> &Hold {
        &self.hold
    }
}

impl Debug for Rendezvous {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Rendezvous").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Debug for Admitted {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Admitted").field("hold", &self.hold).finish_non_exhaustive()
    }
}
