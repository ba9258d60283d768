//! The place where members enter and leave.

use std::collections::BTreeSet;
use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;

use parking_lot::Mutex;
use tracing::warn;

use super::decide::READY;
use crate::error::{ConfigError, Error};
use crate::manager::ConnectionManager;
use crate::wire::Stat;
use crate::znode::path::{IntoPath, ZnodePath};
use crate::znode::zxid::Zxid;

/// The number of persistent nodes that are logged at most.
pub(super) const UNOWNED_MAX: usize = 1024;

/// A place where members enter together and leave together, for authors of recipes.
#[derive(Clone)]
pub struct Rendezvous {
    pub(super) manager: ConnectionManager,
    pub(super) path: ZnodePath,
    pub(super) full: ZnodePath,
    pub(super) ready: String,
    pub(super) node_data: Arc<[u8]>,
    pub(super) metric_name: &'static str,
    /// The creation zxids of the persistent nodes that were logged.
    pub(super) unowned: Arc<Mutex<BTreeSet<Zxid>>>,
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
    pub(super) fn warn_of_unowned(&self, name: &str, stat: &Stat) {
        let mut logged = self.unowned.lock();
        if logged.len() < UNOWNED_MAX && logged.insert(stat.czxid) {
            let path = self.full.listed_child(name);
            warn!(path, "a node that belongs to no session is no member");
        }
    }
}

impl Debug for Rendezvous {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Rendezvous").field("path", &self.path).finish_non_exhaustive()
    }
}
