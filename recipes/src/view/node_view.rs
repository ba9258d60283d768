use std::sync::Arc;

use lockkeeper_core::{ConnectionManager, DecodeFailure, Error, IntoPath, ViewBounds, ViewNode, ViewScope};

use super::scoped_view::{View, undecoded};

/// The scope of a [`NodeView`].
#[derive(Debug)]
pub enum OneNode {}

/// A copy of one node that follows the server: configuration, a shared value, a flag. The counterpart of
/// Curator's `NodeCache` and kazoo's `DataWatch`.
///
/// The node need not exist: it may be created, deleted and created again, and its parents as well. `T`
/// is what a decoder makes of the data; without one the view has the bytes.
///
/// # Cost
///
/// One watch. For each change one read. Nothing while the node does not change.
///
/// # Methods
///
/// [`new`](NodeView::new), [`new_decoded`](NodeView::new_decoded), [`node`](NodeView::node), and those of
/// every [`View`](crate::view::View).
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = lockkeeper_testserver::TestServer::start().await?;
/// # let manager = lockkeeper::ConnectionManager::connect(&server.connect_string()).await?;
/// use lockkeeper::NodeView;
/// use lockkeeper::znodes::CreateMode;
///
/// let workers = NodeView::new_decoded(&manager, "/config/workers", |data| {
///     Ok::<u32, Box<dyn std::error::Error + Send + Sync>>(std::str::from_utf8(data)?.parse()?)
/// })?;
/// assert!(workers.ready().await?.root().is_none());
///
/// manager.znodes().create("/config/workers", "16", CreateMode::Persistent).await?;
/// workers.sync().await?; // everything that was committed before
/// let node = workers.node().expect("it exists");
/// assert_eq!(node.value()?, &16);
///
/// let mut changes = workers.changes();
/// manager.znodes().write("/config/workers", "many", lockkeeper::znodes::Version::Any).await?;
/// let difference = changes.next().await.expect("not closed");
/// let node = difference.snapshot().root().expect("it exists");
/// assert!(node.value().is_err()); // the bytes are kept, and the view continues
/// assert_eq!(node.data(), b"many");
/// # Ok(())
/// # }
/// ```
pub type NodeView<T = ()> = View<OneNode, T>;

impl NodeView {
    /// Follows the node at `path`, below the manager's chroot, from now on, in the background.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] if the path is malformed, or without a tokio runtime; [`Error::Closed`] after a
    /// shutdown.
    pub fn new(manager: &ConnectionManager, path: impl IntoPath) -> Result<Self, Error> {
        Self::begin(manager, path, ViewScope::Node, ViewBounds::default(), undecoded)
    }
}

impl<T: Send + Sync + 'static> NodeView<T> {
    /// As [`new`](NodeView::new), with a decoder of the data. It runs once for each state of the node, in
    /// the background, and must not block. If it fails or panics, the node has an error in place of its
    /// value.
    ///
    /// # Errors
    ///
    /// As [`new`](NodeView::new).
    pub fn new_decoded<E: Into<DecodeFailure>>(
        manager: &ConnectionManager,
        path: impl IntoPath,
        decode: impl Fn(&[u8]) -> Result<T, E> + Send + Sync + 'static,
    ) -> Result<Self, Error> {
        Self::begin(manager, path, ViewScope::Node, ViewBounds::default(), move |_, data| decode(data))
    }
}

impl<T> NodeView<T> {
    /// The node, as far as the view knows; `None` if it does not exist, or if nothing is known yet:
    /// [`state`](View::state) tells.
    #[must_use]
    pub fn node(&self) -> Option<Arc<ViewNode<T>>> {
        self.snapshot().root().cloned()
    }
}
