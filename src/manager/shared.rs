//! What the handles of a manager and its task share.

use std::any::{Any, TypeId};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Weak};
use std::time::Duration;

use arc_swap::ArcSwap;
use dashmap::DashMap;
use parking_lot::Mutex;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::holds::HoldRegistry;
use super::state::StatePublisher;
use crate::session::{PendingJobs, SessionSettings};
use crate::wire::Backend;
use crate::znode::path::ZnodePath;

/// Shared by the clones of a manager with one operation timeout, but not by its task.
pub(super) struct Handle {
    pub(super) shared: Arc<ManagerInner>,
    pub(super) operation_timeout: Duration,
    /// Ends the task when the last clone is dropped.
    pub(super) last_clone: Arc<DropGuard>,
}

/// Shared by the handles and the task.
pub(super) struct ManagerInner {
    pub(super) settings: Settings,
    pub(super) publisher: Arc<StatePublisher>,
    /// Cancelled when a shutdown begins: nothing is granted any more, in any session.
    pub(super) draining: CancellationToken,
    /// Asks the task to end.
    pub(super) closing: CancellationToken,
    /// The task has ended.
    pub(super) closed: CancellationToken,
    /// Whether the server confirmed that the session is closed.
    pub(super) close_confirmed: AtomicBool,
    pub(super) shared_tables: DashMap<TypeId, Arc<dyn Any + Send + Sync>>,
    pub(super) holds: Arc<HoldRegistry>,
    pub(super) pending_jobs: PendingJobs,
    pub(super) backend: Arc<dyn Backend>,
    /// The manager of the session of the views, while there are views.
    pub(super) views: Mutex<Weak<Handle>>,
}

/// The settings that the builder has checked.
#[derive(Debug)]
pub(super) struct Settings {
    pub(super) chroot: ZnodePath,
    /// Whether a manager is an error if the chroot does not exist.
    pub(super) needs_chroot: bool,
    /// Shared with the session of the views.
    pub(super) servers: Arc<ArcSwap<String>>,
    pub(super) session_timeout: Duration,
    pub(super) node_data: Arc<[u8]>,
    /// For every session.
    pub(super) session: Arc<SessionSettings>,
}

impl Settings {
    /// The servers, as they were given last.
    pub(super) fn servers(&self) -> String {
        self.servers.load().to_string()
    }
}
