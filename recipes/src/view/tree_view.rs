use lockkeeper_core::{ConnectionManager, DecodeFailure, Error, IntoPath, TreeScope, ViewBounds};

use super::scoped_view::{View, undecoded};

/// The scope of a [`TreeView`].
#[derive(Debug)]
pub enum EveryLevel {}

/// A copy of a tree that follows the server. The counterpart of Curator's `CuratorCache` and
/// `TreeCache`, and of kazoo's `TreeCache`.
///
/// The paths in its snapshots are below the root of the view: the root has the empty path, its child `a`
/// the path
/// `a`. The root need not exist. A node that may not be read is left out, with everything below it.
///
/// # Cost
///
/// One watch for the whole tree. For each change one read. After each reconnect the data of every node
/// is read, many at once, and the children of each node whose children changed are listed. (Of a node
/// with more than 4 KiB only the stat is read, if the data is the same.) A [`TreeScope`] with a depth or a
/// filter leaves nodes out, and with them everything that they would cost.
///
/// # Methods
///
/// [`new`](TreeView::new), [`new_bounded`](TreeView::new_bounded), [`new_decoded`](TreeView::new_decoded),
/// and those of every [`View`](crate::view::View).
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = lockkeeper_testserver::TestServer::start().await?;
/// # let manager = lockkeeper::ConnectionManager::connect(&server.connect_string()).await?;
/// use lockkeeper::TreeView;
/// use lockkeeper::znodes::CreateMode;
///
/// manager.znodes().create("/shop/prices/apple", "3", CreateMode::Persistent).await?;
/// let shop = TreeView::new(&manager, "/shop")?;
/// let snapshot = shop.ready().await?;
/// let paths: Vec<&str> = snapshot.iter().map(|(path, _)| path).collect();
/// assert_eq!(paths, ["", "prices", "prices/apple"]);
/// assert_eq!(snapshot.get("prices/apple").expect("it exists").data(), b"3");
///
/// use lockkeeper::view::TreeScope;
///
/// let scope = TreeScope::default().with_max_depth(1).with_filter(|path| path != "logs");
/// let shelves = TreeView::new_bounded(&manager, "/shop", scope)?;
/// assert_eq!(shelves.ready().await?.iter().count(), 2); // the root and its child
/// # Ok(())
/// # }
/// ```
pub type TreeView<T = ()> = View<EveryLevel, T>;

impl TreeView {
    /// Follows the tree at `path`, below the manager's chroot, from now on, in the background, within
    /// the default [bounds](ViewBounds).
    ///
    /// # Errors
    ///
    /// [`Error::Config`] if the path is malformed, or without a tokio runtime; [`Error::Closed`] after a
    /// shutdown.
    pub fn new(manager: &ConnectionManager, path: impl IntoPath) -> Result<Self, Error> {
        Self::new_bounded(manager, path, ViewBounds::default())
    }

    /// As [`new`](TreeView::new), within these bounds: [`ViewBounds`] for how much the view may keep, or a
    /// [`TreeScope`] also for its depth, and for a filter of its nodes.
    ///
    /// # Errors
    ///
    /// As [`new`](TreeView::new).
    pub fn new_bounded(
        manager: &ConnectionManager,
        path: impl IntoPath,
        bounds: impl Into<TreeScope>,
    ) -> Result<Self, Error> {
        Self::begin_tree(manager, path, &bounds.into(), undecoded)
    }
}

impl<T: Send + Sync + 'static> TreeView<T> {
    /// As [`new_bounded`](TreeView::new_bounded), with a decoder: it gets the path below the root, which
    /// is empty for the root itself, and the data. It runs once for each state of each node, in the
    /// background, and must not block. If it fails or panics, that node has an error in place of its value.
    ///
    /// # Errors
    ///
    /// As [`new`](TreeView::new).
    pub fn new_decoded<E: Into<DecodeFailure>>(
        manager: &ConnectionManager,
        path: impl IntoPath,
        bounds: impl Into<TreeScope>,
        decode: impl Fn(&str, &[u8]) -> Result<T, E> + Send + Sync + 'static,
    ) -> Result<Self, Error> {
        Self::begin_tree(manager, path, &bounds.into(), decode)
    }
}
