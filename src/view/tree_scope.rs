use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;

use super::bounds::ViewBounds;
use super::follow::Follow;
use super::followed::{FilterFn, Followed};

/// What a view of a tree follows: down to which level, which nodes, and how much it may keep.
///
/// # Cost
///
/// Nodes that are not followed cost no reads: neither their data is read, nor their children are listed. With
/// a watch, an event of such a node arrives all the same, and is dropped. The names of all children of
/// a followed node are in its list.
///
/// # Examples
///
/// ```
/// use lockkeeper_core::{Follow, TreeScope};
///
/// // Two levels, without the logs; of each order the node alone.
/// let scope = TreeScope::default().with_max_depth(2).with_filter(|path| match path {
///     "logs" => Follow::Nothing,
///     path if path.starts_with("orders/") => Follow::Node,
///     _ => Follow::Tree,
/// });
/// ```
#[derive(Clone, Default)]
pub struct TreeScope {
    bounds: ViewBounds,
    max_depth: Option<u32>,
    filter: Option<Arc<FilterFn>>,
}

impl TreeScope {
    /// The last level that the view follows: 0 is the root alone, 1 the root and its children. Default: no
    /// limit.
    #[must_use]
    pub fn with_max_depth(self, levels: u32) -> Self {
        Self { max_depth: Some(levels), ..self }
    }

    /// Which nodes the view follows: `filter` gets the path of a node below the root, and returns a
    /// [`Follow`] or a `bool`. A node below one that is not followed is not followed either. The root is
    /// always followed, and is not asked for. Default: all.
    ///
    /// The answer for a path must always be the same: the view asks again whenever it hears of the path. The
    /// filter runs in the background, and must not block. If it panics, the node is followed.
    #[must_use]
    pub fn with_filter<F: Into<Follow>>(self, filter: impl Fn(&str) -> F + Send + Sync + 'static) -> Self {
        Self { filter: Some(Arc::new(move |path| filter(path).into())), ..self }
    }

    /// How much the view may keep. Default: that of [`ViewBounds`].
    #[must_use]
    pub fn with_bounds(self, bounds: ViewBounds) -> Self {
        Self { bounds, ..self }
    }

    pub(super) fn bounds(&self) -> ViewBounds {
        self.bounds
    }

    pub(super) fn is_root_alone(&self) -> bool {
        self.max_depth == Some(0)
    }

    pub(super) fn followed(&self) -> Followed {
        let levels = self.max_depth.map(|levels| usize::try_from(levels).unwrap_or(usize::MAX));
        Followed { levels, filter: self.filter.clone() }
    }
}

impl From<ViewBounds> for TreeScope {
    /// The whole tree.
    fn from(bounds: ViewBounds) -> Self {
        Self::default().with_bounds(bounds)
    }
}

impl Debug for TreeScope {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("TreeScope")
            .field("bounds", &self.bounds)
            .field("max_depth", &self.max_depth)
            .field("has_filter", &self.filter.is_some())
            .finish()
    }
}
