use std::sync::Arc;

use lockkeeper_core::{
    DecodeFailure, Error, IntoPath, Snapshot, ViewBounds, ViewNode, ViewPoint, ViewState, ZnodePath,
};

use super::events::Events;
use super::generic::Blocking;
use super::manager::ConnectionManager;

/// A copy of nodes that follows the server, for threads. Everything is as for the async
/// [`View`](crate::View).
pub type View<S, T = ()> = Blocking<crate::View<S, T>>;

/// A copy of one node that follows the server, for threads: see the async [`NodeView`](crate::NodeView).
///
/// # Examples
///
/// ```
/// # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
/// # let server = runtime.block_on(lockkeeper_testserver::TestServer::start())?;
/// # let manager = lockkeeper::blocking::ConnectionManager::connect(&server.connect_string())?;
/// use lockkeeper::blocking::NodeView;
///
/// let workers = NodeView::with_decoder(&manager, "/config/workers", |data| {
///     std::str::from_utf8(data).map(str::to_owned)
/// })?;
/// let snapshot = workers.ready()?;
/// assert!(snapshot.root().is_none()); // it does not exist yet
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
pub type NodeView<T = ()> = View<crate::OneNode, T>;

/// A copy of a node and its children, for threads: see the async [`ChildrenView`](crate::ChildrenView).
pub type ChildrenView<T = ()> = View<crate::OneLevel, T>;

/// A copy of a tree, for threads: see the async [`TreeView`](crate::TreeView).
pub type TreeView<T = ()> = View<crate::EveryLevel, T>;

/// The differences from one snapshot to the next: see the async [`ViewChanges`](crate::ViewChanges).
pub type ViewChanges<T = ()> = Events<crate::ViewChanges<T>>;

impl<S, T> View<S, T> {
    fn begin(
        manager: &ConnectionManager,
        make: impl FnOnce(&crate::ConnectionManager) -> Result<crate::View<S, T>, Error>,
    ) -> Result<Self, Error> {
        // The task of the view runs on the thread of the manager.
        let inner = manager.thread().block_checked(async { make(manager.as_async()) })??;
        Ok(Self::on(manager, inner))
    }

    /// The path of the root of the view, below the manager's chroot.
    #[must_use]
    pub fn path(&self) -> &ZnodePath {
        self.inner.path()
    }

    /// The latest snapshot. Never blocks.
    #[must_use]
    pub fn snapshot(&self) -> Arc<Snapshot<T>> {
        self.inner.snapshot()
    }

    /// The state of the latest snapshot. Never blocks.
    #[must_use]
    pub fn state(&self) -> ViewState {
        self.inner.state()
    }

    /// The differences from the latest snapshot on: see [`View::changes`](crate::View::changes).
    #[must_use]
    pub fn changes(&self) -> ViewChanges<T> {
        let waiting = "waiting for a change of the view";
        Events::new(self.inner.changes(), &self.thread, waiting, self.inner.whole_path())
    }

    /// Waits until the view is complete and followed, without a limit of time.
    ///
    /// # Errors
    ///
    /// [`CannotBlock`](super::CannotBlock) within an async task. Otherwise as
    /// [`View::ready`](crate::View::ready).
    pub fn ready(&self) -> Result<Arc<Snapshot<T>>, Error> {
        self.block(self.inner.ready())
    }

    /// Waits until everything that was committed before this call is in the view.
    ///
    /// # Errors
    ///
    /// [`CannotBlock`](super::CannotBlock) within an async task. Otherwise as
    /// [`View::sync`](crate::View::sync).
    pub fn sync(&self) -> Result<Arc<Snapshot<T>>, Error> {
        self.block(self.inner.sync())
    }

    /// Waits until the view has everything up to a transaction.
    ///
    /// # Errors
    ///
    /// As [`sync`](Self::sync).
    pub fn await_until(&self, point: impl Into<ViewPoint>) -> Result<Arc<Snapshot<T>>, Error> {
        self.block(self.inner.await_until(point))
    }
}

impl NodeView {
    /// Follows the node at `path`, below the manager's chroot, from now on, in the background.
    ///
    /// # Errors
    ///
    /// As [`NodeView::new`](crate::NodeView::new), and
    /// [`CannotBlock`](super::CannotBlock) within an async task.
    pub fn new(manager: &ConnectionManager, path: impl IntoPath) -> Result<Self, Error> {
        Self::begin(manager, |manager| crate::NodeView::new(manager, path))
    }
}

impl<T: Send + Sync + 'static> NodeView<T> {
    /// As [`new`](NodeView::new), with a decoder. It runs on the manager's thread, and must not block.
    ///
    /// # Errors
    ///
    /// As [`new`](NodeView::new).
    pub fn with_decoder<E: Into<DecodeFailure>>(
        manager: &ConnectionManager,
        path: impl IntoPath,
        decode: impl Fn(&[u8]) -> Result<T, E> + Send + Sync + 'static,
    ) -> Result<Self, Error> {
        Self::begin(manager, |manager| crate::NodeView::with_decoder(manager, path, decode))
    }
}

impl<T> NodeView<T> {
    /// The node, as far as the view knows. Never blocks.
    #[must_use]
    pub fn node(&self) -> Option<Arc<ViewNode<T>>> {
        self.inner.node()
    }
}

impl ChildrenView {
    /// Follows the node at `path` and its children, from now on, in the background, within the default
    /// [bounds](ViewBounds).
    ///
    /// # Errors
    ///
    /// As [`NodeView::new`].
    pub fn new(manager: &ConnectionManager, path: impl IntoPath) -> Result<Self, Error> {
        Self::with_bounds(manager, path, ViewBounds::default())
    }

    /// As [`new`](ChildrenView::new), within these bounds.
    ///
    /// # Errors
    ///
    /// As [`NodeView::new`].
    pub fn with_bounds(
        manager: &ConnectionManager,
        path: impl IntoPath,
        bounds: ViewBounds,
    ) -> Result<Self, Error> {
        Self::begin(manager, |manager| crate::ChildrenView::with_bounds(manager, path, bounds))
    }
}

impl<T: Send + Sync + 'static> ChildrenView<T> {
    /// As [`with_bounds`](ChildrenView::with_bounds), with a decoder: see
    /// [`ChildrenView::with_decoder`](crate::ChildrenView::with_decoder).
    ///
    /// # Errors
    ///
    /// As [`new`](ChildrenView::new).
    pub fn with_decoder<E: Into<DecodeFailure>>(
        manager: &ConnectionManager,
        path: impl IntoPath,
        bounds: ViewBounds,
        decode: impl Fn(&str, &[u8]) -> Result<T, E> + Send + Sync + 'static,
    ) -> Result<Self, Error> {
        Self::begin(manager, |manager| crate::ChildrenView::with_decoder(manager, path, bounds, decode))
    }
}

impl TreeView {
    /// Follows the tree at `path`, from now on, in the background, within the default
    /// [bounds](ViewBounds).
    ///
    /// # Errors
    ///
    /// As [`NodeView::new`].
    pub fn new(manager: &ConnectionManager, path: impl IntoPath) -> Result<Self, Error> {
        Self::with_bounds(manager, path, ViewBounds::default())
    }

    /// As [`new`](TreeView::new), within these bounds.
    ///
    /// # Errors
    ///
    /// As [`NodeView::new`].
    pub fn with_bounds(
        manager: &ConnectionManager,
        path: impl IntoPath,
        bounds: ViewBounds,
    ) -> Result<Self, Error> {
        Self::begin(manager, |manager| crate::TreeView::with_bounds(manager, path, bounds))
    }
}

impl<T: Send + Sync + 'static> TreeView<T> {
    /// As [`with_bounds`](TreeView::with_bounds), with a decoder: see
    /// [`TreeView::with_decoder`](crate::TreeView::with_decoder).
    ///
    /// # Errors
    ///
    /// As [`new`](TreeView::new).
    pub fn with_decoder<E: Into<DecodeFailure>>(
        manager: &ConnectionManager,
        path: impl IntoPath,
        bounds: ViewBounds,
        decode: impl Fn(&str, &[u8]) -> Result<T, E> + Send + Sync + 'static,
    ) -> Result<Self, Error> {
        Self::begin(manager, |manager| crate::TreeView::with_decoder(manager, path, bounds, decode))
    }
}

impl<T> ViewChanges<T> {
    /// The snapshot that the last difference led to; at first, that of the subscription.
    #[must_use]
    pub fn snapshot(&self) -> &Arc<Snapshot<T>> {
        self.inner.snapshot()
    }
}
