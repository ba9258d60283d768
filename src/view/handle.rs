use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::bounds::ViewBounds;
use super::changes::ViewChanges;
use super::decide::Mirror;
use super::error::ViewError;
use super::hub::Hub;
use super::node::DecodeFailure;
use super::reads::Sync;
use super::scope::ViewScope;
use super::snapshot::{Snapshot, ViewState};
use super::task::ViewTask;
use super::tree_scope::TreeScope;
use crate::error::{Error, Operation, Phase};
use crate::manager::ConnectionManager;
use crate::time::deadline::Deadline;
use crate::wire::Stat;
use crate::znode::fencing_token::FencingToken;
use crate::znode::path::{IntoPath, ZnodePath};
use crate::znode::whole_path::WholePath;
use crate::znode::zxid::Zxid;

/// A copy of a node, of its children or of its tree, that follows the server.
///
/// For recipe authors; applications use `NodeView`, `ChildrenView` and `TreeView` of the crate `lockkeeper`.
/// Those document the promises. Clones are handles to one copy, which ends with the last of them.
pub struct View<T = ()> {
    inner: Arc<ViewInner<T>>,
}

struct ViewInner<T> {
    manager: ConnectionManager,
    path: ZnodePath,
    scope: ViewScope,
    hub: Arc<Hub<T>>,
    syncs: mpsc::UnboundedSender<Sync>,
    /// Ends the task.
    _last_handle: DropGuard,
}

impl<T> Clone for View<T> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner) }
    }
}

impl<T: Send + std::marker::Sync + 'static> View<T> {
    /// Begins to follow `path`, below the manager's chroot, in the background. `decode` makes a value of the
    /// path below the root, the data and the stat of a node.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] for an invalid path or without a tokio runtime, and [`Error::Closed`] after a
    /// shutdown.
    pub fn new(
        manager: &ConnectionManager,
        path: impl IntoPath,
        scope: ViewScope,
        bounds: ViewBounds,
        decode: impl Fn(&str, &[u8], &Stat) -> Result<T, DecodeFailure> + Send + std::marker::Sync + 'static,
    ) -> Result<Self, Error> {
        let mirror = Mirror::new(scope.levels(), bounds, Arc::new(decode));
        Self::begin(manager, path.into_path()?, scope, mirror)
    }

    /// As [`new`](Self::new), with the root and what `tree` has of everything below.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn new_tree(
        manager: &ConnectionManager,
        path: impl IntoPath,
        tree: &TreeScope,
        decode: impl Fn(&str, &[u8], &Stat) -> Result<T, DecodeFailure> + Send + std::marker::Sync + 'static,
    ) -> Result<Self, Error> {
        // A watch on one node has no events of what is below.
        let scope = if tree.is_root_alone() { ViewScope::Node } else { ViewScope::Tree };
        let mirror = Mirror::new(tree.followed(), tree.bounds(), Arc::new(decode));
        Self::begin(manager, path.into_path()?, scope, mirror)
    }

    fn begin(
        manager: &ConnectionManager,
        path: ZnodePath,
        scope: ViewScope,
        mirror: Mirror<T>,
    ) -> Result<Self, Error> {
        let full = manager.full_path(&path)?;
        let session = manager.view_session()?;
        let hub = Arc::new(Hub::default());
        let ended = CancellationToken::new();
        let (syncs, requested) = mpsc::unbounded_channel();
        let task = ViewTask::new(session.clone(), full, scope, mirror, Arc::clone(&hub), requested);
        session.environment().spawn(Box::pin(task.run(ended.clone())));
        let _last_handle = ended.drop_guard();
        let inner = ViewInner { manager: manager.clone(), path, scope, hub, syncs, _last_handle };
        Ok(Self { inner: Arc::new(inner) })
    }
}

impl<T> View<T> {
    /// The path of the root, below the manager's chroot.
    #[must_use]
    pub fn path(&self) -> &ZnodePath {
        &self.inner.path
    }

    /// The latest snapshot. Takes no lock and sends nothing.
    #[must_use]
    pub fn snapshot(&self) -> Arc<Snapshot<T>> {
        self.inner.hub.latest()
    }

    /// The differences from the present snapshot on.
    #[must_use]
    pub fn changes(&self) -> ViewChanges<T> {
        self.inner.hub.subscribe()
    }

    /// Waits until the view is [live](ViewState::Live), and returns a snapshot that was complete then.
    ///
    /// # Errors
    ///
    /// [`Error::Closed`], [`Error::RuntimeEnded`], [`Error::Refused`], or [`ViewError::TooLarge`] by
    /// [`Error::recipe`].
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the view continues.
    pub async fn ready(&self) -> Result<Arc<Snapshot<T>>, Error> {
        loop {
            self.inner.hub.state_is(|state| !matches!(state, ViewState::Loading | ViewState::Stale)).await;
            let snapshot = self.snapshot();
            match snapshot.state() {
                ViewState::Live => return Ok(snapshot),
                ViewState::Loading | ViewState::Stale => {}
                state => return Err(self.failure(state)),
            }
        }
    }

    /// Waits until everything that was committed before this call is in the view, and returns a snapshot
    /// with it.
    ///
    /// # Errors
    ///
    /// As [`ready`](Self::ready), and [`Error::Timeout`] after the manager's operation timeout.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the view continues.
    pub async fn sync(&self) -> Result<Arc<Snapshot<T>>, Error> {
        let limit = Deadline::after(self.inner.manager.operation_timeout());
        loop {
            let (done, answered) = oneshot::channel();
            // The task is gone only after the state is `Closed`.
            let _ = self.inner.syncs.send(done);
            tokio::select! {
                biased;
                synced = answered => if synced.is_ok() {
                    return Ok(self.snapshot());
                },
                () = limit.passed() => {
                    let (path, waited) = (self.whole_path(), limit.waited());
                    return Err(Error::Timeout { phase: Phase::Answer, path, waited });
                }
            }
            let state = self.snapshot().state();
            if matches!(state, ViewState::TooLarge(_) | ViewState::Refused(_) | ViewState::Closed) {
                return Err(self.failure(state));
            }
        }
    }

    /// Waits until the view has everything up to a transaction: one that this process has seen
    /// committed, such as [`Stat::mzxid`](crate::Stat::mzxid) of a write. Of a [`FencingToken`]: everything
    /// that was committed before the grant.
    ///
    /// # Errors
    ///
    /// As [`sync`](Self::sync).
    ///
    /// # Cancel safety
    ///
    /// As [`sync`](Self::sync).
    pub async fn await_until(&self, point: impl Into<ViewPoint>) -> Result<Arc<Snapshot<T>>, Error> {
        let snapshot = self.snapshot();
        // One read showed the whole of a single node. Of several nodes, each read shows its own.
        let is_one_read = matches!((self.inner.scope, snapshot.state()), (ViewScope::Node, ViewState::Live));
        let ViewPoint(awaited) = point.into();
        let has_come = |zxid| snapshot.root().is_some_and(|root| root.stat().mzxid >= zxid);
        if is_one_read && awaited.is_some_and(has_come) {
            return Ok(snapshot);
        }
        self.sync().await
    }

    /// The path of the root on the server, for errors and logs.
    #[must_use]
    pub fn whole_path(&self) -> WholePath {
        self.inner.manager.whole_path(&self.inner.path)
    }

    fn failure(&self, state: ViewState) -> Error {
        let path = self.whole_path();
        match state {
            ViewState::Refused(refusal) => Error::Refused { operation: Operation::Read, path, refusal },
            ViewState::TooLarge(exceeded) => ViewError::TooLarge { path, exceeded }.into(),
            _ => self.inner.manager.ended_task(path),
        }
    }
}

/// The point that a view waits for: a zxid, or the grant of a hold with this [`FencingToken`].
#[derive(Clone, Copy, Debug)]
pub struct ViewPoint(
    /// `None`: everything that was committed before the call.
    Option<Zxid>,
);

impl From<Zxid> for ViewPoint {
    fn from(zxid: Zxid) -> Self {
        Self(Some(zxid))
    }
}

impl From<FencingToken> for ViewPoint {
    fn from(_: FencingToken) -> Self {
        // A token may be from the beginning of the wait: other holders wrote later.
        Self(None)
    }
}

impl<T> Debug for View<T> {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("View")
            .field("path", &self.inner.path)
            .field("snapshot", &self.snapshot())
            .finish_non_exhaustive()
    }
}
