use std::collections::{BTreeMap, BTreeSet};

use super::{EventKind, WatchMode};
use crate::machine::ClientId;

/// One of the two lists of watches: path → watcher → mode.
///
/// A watcher has at most one mode per path, and the last one set wins, even when it takes a persistent watch
/// back to one event (ZOOKEEPER-4466).
#[derive(Debug, Clone, Default)]
pub(super) struct WatchList {
    by_path: BTreeMap<String, BTreeMap<ClientId, WatchMode>>,
    by_client: BTreeMap<ClientId, BTreeSet<String>>,
    recursive: usize,
}

impl WatchList {
    pub(super) fn add(&mut self, path: &str, client: ClientId, mode: WatchMode) {
        let old = self.by_path.entry(path.to_owned()).or_default().insert(client, mode);
        self.recursive += usize::from(mode == WatchMode::PersistentRecursive);
        self.recursive -= usize::from(old == Some(WatchMode::PersistentRecursive));
        self.by_client.entry(client).or_default().insert(path.to_owned());
    }

    /// Removes one watch; says whether it was there.
    pub(super) fn remove(&mut self, path: &str, client: ClientId) -> bool {
        let Some(watchers) = self.by_path.get_mut(path) else { return false };
        let Some(mode) = watchers.remove(&client) else { return false };
        if watchers.is_empty() {
            self.by_path.remove(path);
        }
        self.recursive -= usize::from(mode == WatchMode::PersistentRecursive);
        if let Some(paths) = self.by_client.get_mut(&client) {
            paths.remove(path);
            if paths.is_empty() {
                self.by_client.remove(&client);
            }
        }
        true
    }

    pub(super) fn remove_client(&mut self, client: ClientId) {
        for path in self.by_client.get(&client).cloned().into_iter().flatten() {
            self.remove(&path, client);
        }
    }

    /// Whether *any* client watches the path: the real server does not distinguish here.
    pub(super) fn is_watched(&self, path: &str) -> bool {
        self.by_path.contains_key(path)
    }

    pub(super) fn len(&self) -> usize {
        self.by_client.values().map(BTreeSet::len).sum()
    }

    /// The nearest node above that path that the client watches with everything below, unless it watches the
    /// path itself.
    pub(super) fn recursive_above(&self, client: ClientId, path: &str) -> Option<String> {
        let mode_at = |path: &str| self.by_path.get(path).and_then(|watchers| watchers.get(&client)).copied();
        if mode_at(path).is_some() {
            return None;
        }
        let mut above = path;
        while let Some((parent, _)) = above.rsplit_once('/').filter(|_| above != "/") {
            above = if parent.is_empty() { "/" } else { parent };
            if mode_at(above) == Some(WatchMode::PersistentRecursive) {
                return Some(above.to_owned());
            }
        }
        None
    }

    /// The watchers of an event at that path; watches for one event are used up.
    pub(super) fn trigger(&mut self, path: &str, kind: EventKind) -> BTreeSet<ClientId> {
        let mut notified = BTreeSet::new();
        let here: Vec<_> =
            self.by_path.get(path).into_iter().flatten().map(|(id, mode)| (*id, *mode)).collect();
        for (client, mode) in here {
            if mode == WatchMode::PersistentRecursive {
                // Recursive watches see the child itself come and go; the parent's list would be news twice.
                if kind != EventKind::ChildrenChanged {
                    notified.insert(client);
                }
                continue;
            }
            notified.insert(client);
            if mode == WatchMode::Once {
                self.remove(path, client);
            }
        }
        if self.recursive > 0 && kind != EventKind::ChildrenChanged {
            let mut above = path;
            while let Some((parent, _)) = above.rsplit_once('/').filter(|_| above != "/") {
                above = if parent.is_empty() { "/" } else { parent };
                let watchers = self.by_path.get(above).into_iter().flatten();
                let recursive = watchers.filter(|(_, mode)| **mode == WatchMode::PersistentRecursive);
                notified.extend(recursive.map(|(client, _)| *client));
            }
        }
        notified
    }
}
