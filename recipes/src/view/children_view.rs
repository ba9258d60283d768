use lockkeeper_core::{ConnectionManager, DecodeFailure, Error, IntoPath, Stat, ViewBounds, ViewScope};

use super::scoped_view::{View, undecoded};

/// The scope of a [`ChildrenView`].
#[derive(Debug)]
pub enum OneLevel {}

/// A copy of a node and its children that follows the server: members, jobs, feature flags. The
/// counterpart of Curator's `PathChildrenCache` and kazoo's `ChildrenWatch`.
///
/// The paths in its snapshots are the names of the children, and the empty path is the node itself. The node
/// need not exist.
///
/// # Cost
///
/// One watch, on the node and everything below: a change further below costs an event, and no read. For
/// each change of the node or of a child one read. After each reconnect the data of all children is
/// read, many at once.
///
/// # Methods
///
/// [`new`](ChildrenView::new), [`new_bounded`](ChildrenView::new_bounded),
/// [`new_decoded`](ChildrenView::new_decoded), and those of every [`View`](crate::view::View).
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = lockkeeper_testserver::TestServer::start().await?;
/// # let manager = lockkeeper::ConnectionManager::connect(&server.connect_string()).await?;
/// use lockkeeper::ChildrenView;
/// use lockkeeper::view::ViewChange;
/// use lockkeeper::znodes::CreateMode;
///
/// let flags = ChildrenView::new(&manager, "/flags")?;
/// flags.ready().await?;
/// let mut changes = flags.changes();
/// manager.znodes().create("/flags/dark-mode", "on", CreateMode::Persistent).await?;
///
/// let snapshot = flags.sync().await?;
/// let names: Vec<&str> = snapshot.children("").map(|(name, _)| name).collect();
/// assert_eq!(names, ["dark-mode"]);
///
/// while let Some(difference) = changes.next().await {
///     if difference.changes().iter().any(|change| matches!(change, ViewChange::Created { path, .. } if
///   &**path == "dark-mode")) {
///         break;
///     }
/// }
/// # Ok(())
/// # }
/// ```
pub type ChildrenView<T = ()> = View<OneLevel, T>;

impl ChildrenView {
    /// Follows the node at `path`, below the manager's chroot, from now on, in the background, within
    /// the default [bounds](ViewBounds).
    ///
    /// # Errors
    ///
    /// [`Error::Config`] if the path is malformed, or without a tokio runtime; [`Error::Closed`] after a
    /// shutdown.
    pub fn new(manager: &ConnectionManager, path: impl IntoPath) -> Result<Self, Error> {
        Self::new_bounded(manager, path, ViewBounds::default())
    }

    /// As [`new`](ChildrenView::new), within these bounds.
    ///
    /// # Errors
    ///
    /// As [`new`](ChildrenView::new).
    pub fn new_bounded(
        manager: &ConnectionManager,
        path: impl IntoPath,
        bounds: ViewBounds,
    ) -> Result<Self, Error> {
        Self::begin(manager, path, ViewScope::Children, bounds, undecoded)
    }
}

impl<T: Send + Sync + 'static> ChildrenView<T> {
    /// As [`new_bounded`](ChildrenView::new_bounded), with a decoder: it gets the path below the root,
    /// which is empty for the root itself, and the data. It runs once for each state of each node, in
    /// the background, and must not block. If it fails or panics, that node has an error in place of its
    /// value.
    ///
    /// # Errors
    ///
    /// As [`new`](ChildrenView::new).
    pub fn new_decoded<E: Into<DecodeFailure>>(
        manager: &ConnectionManager,
        path: impl IntoPath,
        bounds: ViewBounds,
        decode: impl Fn(&str, &[u8]) -> Result<T, E> + Send + Sync + 'static,
    ) -> Result<Self, Error> {
        Self::begin(manager, path, ViewScope::Children, bounds, decode)
    }

    /// As [`new_decoded`](ChildrenView::new_decoded), for recipes whose nodes have a kind.
    pub(crate) fn with_stat_decoder(
        manager: &ConnectionManager,
        path: impl IntoPath,
        bounds: ViewBounds,
        decode: impl Fn(&str, &[u8], &Stat) -> Result<T, DecodeFailure> + Send + Sync + 'static,
    ) -> Result<Self, Error> {
        Self::begin_with_stat(manager, path, ViewScope::Children, bounds, decode)
    }
}
