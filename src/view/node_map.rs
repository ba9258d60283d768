//! The nodes of a view, by path. A clone costs nothing and shares what is equal.

use std::ops::Bound;
use std::sync::Arc;

use rpds::RedBlackTreeMapSync;

use super::node::ViewNode;

/// Paths are below the root of the view, which has the empty path.
pub(super) struct NodeMap<T>(RedBlackTreeMapSync<Arc<str>, Arc<ViewNode<T>>>);

impl<T> Default for NodeMap<T> {
    fn default() -> Self {
        Self(RedBlackTreeMapSync::new_sync())
    }
}

impl<T> Clone for NodeMap<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> NodeMap<T> {
    pub(super) fn len(&self) -> usize {
        self.0.size()
    }

    pub(super) fn contains(&self, path: &str) -> bool {
        self.0.contains_key(path)
    }

    pub(super) fn get(&self, path: &str) -> Option<&Arc<ViewNode<T>>> {
        self.0.get(path)
    }

    pub(super) fn get_key(&self, path: &str) -> Option<(&Arc<str>, &Arc<ViewNode<T>>)> {
        self.0.get_key_value(path)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &Arc<ViewNode<T>>)> {
        self.0.iter().map(|(path, node)| (&**path, node))
    }

    /// Returns the earlier node.
    pub(super) fn insert(&mut self, path: Arc<str>, node: Arc<ViewNode<T>>) -> Option<Arc<ViewNode<T>>> {
        let earlier = self.0.get(&path).cloned();
        self.0.insert_mut(path, node);
        earlier
    }

    pub(super) fn remove(&mut self, path: &str) -> Option<(Arc<str>, Arc<ViewNode<T>>)> {
        let (path, node) = self.0.get_key_value(path)?;
        let removed = (Arc::clone(path), Arc::clone(node));
        self.0.remove_mut(&*removed.0);
        Some(removed)
    }

    /// The paths of the children of a node.
    pub(super) fn children(&self, path: &str) -> Vec<Arc<str>> {
        self.children_of(path).map(|(path, _)| Arc::clone(path)).collect()
    }

    /// The children of a node, in the order of their paths.
    ///
    /// What is below a child is skipped by a search, so the size of the tree below costs nothing.
    pub(super) fn children_of(&self, path: &str) -> impl Iterator<Item = (&Arc<str>, &Arc<ViewNode<T>>)> {
        let prefix = below(path);
        let mut from = Bound::Included(prefix.clone());
        std::iter::from_fn(move || {
            loop {
                let lower = from.as_ref().map(String::as_str);
                let (found, node) = self.0.range::<str, _>((lower, Bound::Unbounded)).next()?;
                let name = found.strip_prefix(&*prefix)?;
                match name.split_once('/') {
                    // The root is not below itself.
                    None if name.is_empty() => from = Bound::Excluded(found.to_string()),
                    None => {
                        from = Bound::Excluded(found.to_string());
                        return Some((found, node));
                    }
                    // '0' follows '/': the next path that is not below this child.
                    Some((child, _)) => from = Bound::Included(format!("{prefix}{child}0")),
                }
            }
        })
    }

    /// The paths of everything below a node, the deepest of each branch last.
    pub(super) fn below(&self, path: &str) -> Vec<Arc<str>> {
        let prefix = below(path);
        let range = self.0.range::<str, _>((Bound::Included(prefix.as_str()), Bound::Unbounded));
        let below = range.map(|(found, _)| found).take_while(|found| found.starts_with(&prefix));
        below.filter(|found| !found.is_empty()).cloned().collect()
    }
}

/// What the paths below `path` begin with.
fn below(path: &str) -> String {
    if path.is_empty() { String::new() } else { format!("{path}/") }
}

/// The number of levels from the root of the view to a path.
pub(super) fn level(path: &str) -> usize {
    if path.is_empty() { 0 } else { path.split('/').count() }
}

pub(super) fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(parent, _)| parent)
}

pub(super) fn child(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}/{name}") }
}
