use std::fmt::{self, Debug, Display, Formatter};
use std::sync::Arc;

use super::bounds::Exceeded;
use super::decide::Mirror;
use super::node::ViewNode;
use super::node_map::NodeMap;
use crate::error::Refusal;

/// The knowledge of a view about its nodes: whether it is complete, and still followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ViewState {
    /// The first load is not finished.
    Loading,
    /// The snapshot was compared with the server completely, and every change since is followed.
    Live,
    /// The connection broke, or events were dropped. The snapshot is the last complete one, until
    /// another full comparison is finished.
    Stale,
    /// The tree exceeds a [bound](crate::ViewBounds) of the view. The snapshot is the last complete one.
    /// The view tries again from time to time.
    TooLarge(Exceeded),
    /// The server refuses to show the root of the view. The view tries again from time to time.
    Refused(Refusal),
    /// The manager was shut down. The state does not change any more.
    Closed,
}

/// The nodes of a view at one moment of the view. It never changes; the view has the next one.
///
/// Paths are below the root of the view: the root has the empty path, its child `a` the path `a`, and a
/// child of that
/// `a/b`.
///
/// Each node is as one read showed it. Different nodes may have been read at different moments: a write
/// to two nodes in one transaction may show in two snapshots, one after the other.
pub struct Snapshot<T = ()> {
    revision: u64,
    state: ViewState,
    nodes: NodeMap<T>,
    bytes: usize,
}

impl<T> Snapshot<T> {
    pub(super) fn first() -> Self {
        Self { revision: 0, state: ViewState::Loading, nodes: NodeMap::default(), bytes: 0 }
    }

    /// The snapshot of these nodes that follows this one.
    pub(super) fn next(&self, state: ViewState, mirror: &Mirror<T>) -> Self {
        Self { revision: self.revision + 1, state, nodes: mirror.nodes().clone(), bytes: mirror.bytes() }
    }

    /// The snapshot of the same nodes that follows this one.
    pub(super) fn in_state(&self, state: ViewState) -> Self {
        Self { revision: self.revision + 1, state, nodes: self.nodes.clone(), bytes: self.bytes }
    }

    /// The number of the snapshot within its view: 0 before anything is known, and one more for each
    /// later one.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Whether the knowledge of these nodes is complete, and still followed.
    #[must_use]
    pub fn state(&self) -> ViewState {
        self.state
    }

    /// The root of the view; `None` if it does not exist.
    #[must_use]
    pub fn root(&self) -> Option<&Arc<ViewNode<T>>> {
        self.get("")
    }

    /// The node at this path below the root; `None` if it does not exist.
    #[must_use]
    pub fn get(&self, path: &str) -> Option<&Arc<ViewNode<T>>> {
        self.nodes.get(path)
    }

    /// The children of a node: their names and themselves, in the order of the names.
    pub fn children(&self, path: &str) -> impl Iterator<Item = (&str, &Arc<ViewNode<T>>)> {
        let name = |path: &'_ Arc<str>| path.rfind('/').map_or(0, |slash| slash + 1);
        self.nodes
            .children_of(path)
            .map(move |(path, node)| (path.get(name(path)..).unwrap_or_default(), node))
    }

    /// All nodes with their paths, in the order of the paths as text.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Arc<ViewNode<T>>)> {
        self.nodes.iter()
    }

    /// The number of nodes, the root included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there is no node: the root does not exist.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes of data and of paths.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl<T> Debug for Snapshot<T> {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Snapshot")
            .field("revision", &self.revision)
            .field("state", &self.state)
            .field("nodes", &self.len())
            .finish_non_exhaustive()
    }
}

impl Display for ViewState {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Loading => formatter.write_str("loading"),
            Self::Live => formatter.write_str("live"),
            Self::Stale => formatter.write_str("stale"),
            Self::TooLarge(exceeded) => write!(formatter, "too large: {exceeded}"),
            Self::Refused(refusal) => write!(formatter, "refused: {refusal}"),
            Self::Closed => formatter.write_str("closed"),
        }
    }
}
