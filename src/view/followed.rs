use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::follow::Follow;
use super::node_map::level;

/// What a filter says of the path of a node below the root.
pub(super) type FilterFn = dyn Fn(&str) -> Follow + Send + Sync;

/// The nodes that a view follows.
#[derive(Clone, Default)]
pub(super) struct Followed {
    /// The number of levels below the root; `None`: all.
    pub(super) levels: Option<usize>,
    pub(super) filter: Option<Arc<FilterFn>>,
}

impl From<Option<usize>> for Followed {
    /// That many levels below the root.
    fn from(levels: Option<usize>) -> Self {
        Self { levels, filter: None }
    }
}

impl Followed {
    /// Whether a node is followed: it is not too deep, and the filter leaves out neither it nor a node above.
    pub(super) fn has(&self, path: &str) -> bool {
        let above = || path.match_indices('/').filter_map(|(end, _)| path.get(..end));
        self.levels.is_none_or(|levels| level(path) <= levels)
            && above().all(|above| self.follow(above) == Follow::Tree)
            && self.follow(path) != Follow::Nothing
    }

    /// Whether the children of a followed node are followed, as far as the filter follows each of them.
    pub(super) fn has_children_of(&self, path: &str) -> bool {
        self.levels.is_none_or(|levels| level(path) < levels) && self.follow(path) == Follow::Tree
    }

    fn follow(&self, path: &str) -> Follow {
        match &self.filter {
            Some(filter) if !path.is_empty() => {
                catch_unwind(AssertUnwindSafe(|| filter(path))).unwrap_or(Follow::Tree)
            }
            _ => Follow::Tree,
        }
    }
}
