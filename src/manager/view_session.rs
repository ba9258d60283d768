//! The session of the views.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use dashmap::DashMap;
use tokio_util::sync::CancellationToken;

use super::connection_manager::ConnectionManager;
use super::shared::{Handle, ManagerInner, Settings};
use super::state::StatePublisher;
use super::task;
use crate::environment::ensure_runtime;
use crate::error::Error;
use crate::session::{PendingJobs, SessionPurpose, SessionSettings};

impl ConnectionManager {
    /// The manager of the session that all views of this manager share. The first view opens it, and the
    /// last one closes it.
    ///
    /// Views have a session of their own because a server keeps one kind of watch per path and session
    /// (ZOOKEEPER-4466): the watches of a lock and of a view on one directory would end each other.
    pub(crate) fn view_session(&self) -> Result<Self, Error> {
        ensure_runtime()?;
        let shared = &self.0.shared;
        if shared.closing.is_cancelled() {
            return Err(self.closed_error("/".into()));
        }
        let mut views = shared.views.lock();
        // The task has ended if the runtime of the view that opened the session has.
        if let Some(handle) = views.upgrade().filter(|handle| !handle.shared.closing.is_cancelled()) {
            return Ok(Self(handle));
        }
        let for_views = shared.for_views();
        // The last view ends the task.
        let last_clone = Arc::new(for_views.closing.clone().drop_guard());
        let operation_timeout = self.0.operation_timeout;
        let handle = Arc::new(Handle { shared: for_views, operation_timeout, last_clone });
        task::start_detached(&handle.shared);
        *views = Arc::downgrade(&handle);
        Ok(Self(handle))
    }

    /// Resolves when the session of the views is closed, if there is one.
    pub(super) async fn views_closed(&self) {
        let closed = self.0.shared.views.lock().upgrade().map(|handle| handle.shared.closed.clone());
        if let Some(closed) = closed {
            closed.cancelled().await;
        }
    }
}

impl ManagerInner {
    fn for_views(&self) -> Arc<Self> {
        let Settings { chroot, needs_chroot, servers, session_timeout, node_data, session } = &self.settings;
        let session = SessionSettings {
            operation_timeout: session.operation_timeout,
            retry: session.retry,
            tick: session.tick,
            token_generation: session.token_generation,
            // A session without nodes has no lease to keep.
            lease_keep_alive: Duration::ZERO,
            lease_renewal: session.lease_renewal,
            node_bytes_max: session.node_bytes_max,
            environment: Arc::clone(&session.environment),
            purpose: SessionPurpose::Views,
            lacks_containers: AtomicBool::new(false),
            lacks_multi_read: AtomicBool::new(false),
            hang_ups: Arc::clone(&session.hang_ups),
            zxids: Arc::clone(&session.zxids),
        };
        let settings = Settings {
            needs_chroot: *needs_chroot,
            chroot: chroot.clone(),
            servers: Arc::clone(servers),
            session_timeout: *session_timeout,
            node_data: Arc::clone(node_data),
            session: Arc::new(session),
        };
        let holds = Arc::default();
        Arc::new(Self {
            publisher: StatePublisher::new(&settings.session, Arc::clone(&holds)),
            settings,
            // A shutdown of the manager closes this session as well.
            draining: self.closing.child_token(),
            closing: self.closing.child_token(),
            closed: CancellationToken::new(),
            close_confirmed: AtomicBool::new(false),
            shared_tables: DashMap::new(),
            holds,
            pending_jobs: PendingJobs::default(),
            backend: Arc::clone(&self.backend),
            views: parking_lot::Mutex::default(),
        })
    }
}
