use super::watch_list::WatchList;
use super::{Acl, Effect, Tree, parent};
use crate::machine::ClientId;

/// The kind of an event at a watched node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EventKind {
    /// It was created.
    Created,
    /// It was deleted.
    Deleted,
    /// Its data was set.
    DataChanged,
    /// A child was created or deleted.
    ChildrenChanged,
}

impl EventKind {
    /// The number on the wire.
    pub fn code(self) -> i32 {
        match self {
            Self::Created => 1,
            Self::Deleted => 2,
            Self::DataChanged => 3,
            Self::ChildrenChanged => 4,
        }
    }
}

/// One event for one client.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WatchEvent {
    /// Path of the node it happened to; below the watched one for a recursive watch.
    pub path: String,
    /// The kind of the event.
    pub kind: EventKind,
}

/// The duration and the depth of a watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WatchMode {
    /// Until the first event.
    Once,
    /// Until it is removed.
    Persistent,
    /// Until it is removed, for the node and everything below.
    PersistentRecursive,
}

/// Which watches of a path a check or removal means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WatchKind {
    /// Those left by `getChildren`.
    Children,
    /// Those left by `getData` and `exists`.
    Data,
    /// Both.
    Any,
}

impl WatchKind {
    fn data(self) -> bool {
        self != Self::Children
    }

    fn children(self) -> bool {
        self != Self::Data
    }
}

/// The watches that the clients of one server hold.
#[derive(Debug, Clone, Default)]
pub struct Watches {
    data: WatchList,
    children: WatchList,
}

impl Watches {
    /// Watches the node itself, present or not, for one event.
    pub fn watch_data(&mut self, path: &str, client: ClientId) {
        self.data.add(path, client, WatchMode::Once);
    }

    /// Watches the list of children for one event.
    pub fn watch_children(&mut self, path: &str, client: ClientId) {
        self.children.add(path, client, WatchMode::Once);
    }

    /// Adds a watch of that mode to the node and its list of children.
    pub fn add(&mut self, path: &str, client: ClientId, mode: WatchMode) {
        self.data.add(path, client, mode);
        self.children.add(path, client, mode);
    }

    /// Removes the client's own watches of that kind; says whether there was one.
    pub fn remove(&mut self, path: &str, client: ClientId, kind: WatchKind) -> bool {
        let children = kind.children() && self.children.remove(path, client);
        let data = kind.data() && self.data.remove(path, client);
        children || data
    }

    /// Whether any client watches the path: `checkWatches` of 3.8 does not distinguish.
    pub fn is_watched(&self, path: &str, kind: WatchKind) -> bool {
        kind.children() && self.children.is_watched(path) || kind.data() && self.data.is_watched(path)
    }

    /// Forgets all watches of a connection that has ended.
    pub fn remove_client(&mut self, client: ClientId) {
        self.data.remove_client(client);
        self.children.remove_client(client);
    }

    /// Number of watches.
    pub fn len(&self) -> usize {
        self.data.len() + self.children.len()
    }

    /// Whether there are no watches.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The events that a change causes, in the order in which they are sent.
    ///
    /// A client that may not read the node gets no event, but its watch is used up all the same.
    pub fn trigger(
        &mut self,
        effect: &Effect,
        may_read: impl Fn(ClientId, &[Acl]) -> bool,
    ) -> Vec<(ClientId, WatchEvent)> {
        let mut events = Vec::new();
        let mut tell = |clients: &mut dyn Iterator<Item = ClientId>, path: &str, acl: &[Acl], kind| {
            let allowed = clients.filter(|client| may_read(*client, acl));
            events.extend(allowed.map(|client| (client, WatchEvent { path: path.to_owned(), kind })));
        };
        match effect {
            Effect::Created { path, acl, .. } => {
                let clients = self.data.trigger(path, EventKind::Created);
                tell(&mut clients.into_iter(), path, acl, EventKind::Created);
            }
            Effect::Deleted { path, acl, .. } => {
                let by_data = self.data.trigger(path, EventKind::Deleted);
                tell(&mut by_data.iter().copied(), path, acl, EventKind::Deleted);
                // One deletion is one event, also for a client that watched both the node and its children.
                let by_children = self.children.trigger(path, EventKind::Deleted);
                tell(&mut by_children.difference(&by_data).copied(), path, acl, EventKind::Deleted);
            }
            Effect::DataChanged { path, acl } => {
                let clients = self.data.trigger(path, EventKind::DataChanged);
                tell(&mut clients.into_iter(), path, acl, EventKind::DataChanged);
            }
            Effect::Unseen => {}
        }
        if let Effect::Created { path, parent_acl, .. } | Effect::Deleted { path, parent_acl, .. } = effect
            && let Some(above) = parent(path)
        {
            let above = if above.is_empty() { "/" } else { above };
            let clients = self.children.trigger(above, EventKind::ChildrenChanged);
            tell(&mut clients.into_iter(), above, parent_acl, EventKind::ChildrenChanged);
        }
        events
    }

    /// Names the watched node in the event of a recursive watch, instead of the changed one.
    pub fn name_watched(&self, client: ClientId, event: &mut WatchEvent) {
        if let Some(watched) = self.data.recursive_above(client, &event.path) {
            event.path = watched;
        }
    }

    /// Restores the one-event watches of a client that was away since `seen`, and answers what it missed.
    ///
    /// An event that already happened is sent at once and sets no watch.
    pub fn restore_data(
        &mut self,
        tree: &Tree,
        path: &str,
        seen: i64,
        client: ClientId,
    ) -> Option<WatchEvent> {
        let kind = match tree.node(path) {
            None => EventKind::Deleted,
            Some(node) if node.stat().mzxid > seen => EventKind::DataChanged,
            Some(_) => {
                self.watch_data(path, client);
                return None;
            }
        };
        Some(WatchEvent { path: path.to_owned(), kind })
    }

    /// Like [`Watches::restore_data`], for watches of a node that was not there.
    pub fn restore_absence(&mut self, tree: &Tree, path: &str, client: ClientId) -> Option<WatchEvent> {
        if tree.node(path).is_some() {
            return Some(WatchEvent { path: path.to_owned(), kind: EventKind::Created });
        }
        self.watch_data(path, client);
        None
    }

    /// Like [`Watches::restore_data`], for watches of children.
    pub fn restore_children(
        &mut self,
        tree: &Tree,
        path: &str,
        seen: i64,
        client: ClientId,
    ) -> Option<WatchEvent> {
        let kind = match tree.node(path) {
            None => EventKind::Deleted,
            Some(node) if node.stat().pzxid > seen => EventKind::ChildrenChanged,
            Some(_) => {
                self.watch_children(path, client);
                return None;
            }
        };
        Some(WatchEvent { path: path.to_owned(), kind })
    }
}
