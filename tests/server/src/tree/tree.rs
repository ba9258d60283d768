use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use bytes::Bytes;

use super::{Acl, Change, Effect, Identity, Node, Owner, Permissions, Stat, parent};

/// The node that lists the servers of an ensemble.
const CONFIG: &str = "/zookeeper/config";

/// All nodes, by path, and their owners.
///
/// The root answers to `/` and to the empty string. A new tree holds `/zookeeper`, `/zookeeper/quota` and
/// `/zookeeper/config`, as a real server does.
#[derive(Debug, Clone)]
pub struct Tree {
    nodes: HashMap<String, Node>,
    ephemerals: BTreeMap<i64, BTreeSet<String>>,
    reapable: BTreeSet<String>,
    first_sequence: i32,
    /// Whether `cversion` and `pzxid` are as in ClickHouse Keeper.
    like_clickhouse: bool,
}

impl Tree {
    /// A fresh tree in which every node made later counts its sequential children from `first_sequence`, and
    /// counts changes below it as ClickHouse Keeper does, or as ZooKeeper.
    pub fn new(first_sequence: i32, like_clickhouse: bool) -> Self {
        let anyone = |permissions| Arc::from([Acl::new(permissions, Identity::anyone())]);
        let node = |acl, data, children: &[&str]| {
            let mut node = Node::new(Some(data), acl, Owner::Nobody, 0, 0);
            node.children = children.iter().map(|name| (*name).to_owned()).collect();
            // The real server makes these without counting them, so its cversion starts at minus the
            // children.
            node
        };
        let mut nodes = HashMap::new();
        nodes.insert("/".to_owned(), node(anyone(Permissions::ALL), Bytes::new(), &["zookeeper"]));
        nodes.insert(
            "/zookeeper".to_owned(),
            node(anyone(Permissions::ALL), Bytes::new(), &["config", "quota"]),
        );
        nodes.insert("/zookeeper/quota".to_owned(), node(anyone(Permissions::ALL), Bytes::new(), &[]));
        let mut config = node(anyone(Permissions::READ), Bytes::new(), &[]);
        // The real server makes this node with the default list, and then sets its own as of version −1.
        config.aversion = -1;
        nodes.insert(CONFIG.to_owned(), config);
        Self {
            nodes,
            ephemerals: BTreeMap::new(),
            reapable: BTreeSet::new(),
            first_sequence,
            like_clickhouse,
        }
    }

    /// The node at that path.
    pub fn node(&self, path: &str) -> Option<&Node> {
        self.nodes.get(key(path))
    }

    fn node_mut(&mut self, path: &str) -> Option<&mut Node> {
        self.nodes.get_mut(key(path))
    }

    /// Number of nodes, the root included.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there is no node at all, which never happens: the root stays.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Number of nodes below that path, at any depth.
    pub fn count_descendants(&self, path: &str) -> usize {
        if path == "/" {
            return self.nodes.len() - 1;
        }
        let prefix = format!("{path}/");
        self.nodes.keys().filter(|path| path.starts_with(&prefix)).count()
    }

    /// Paths of the ephemeral nodes of that session, sorted.
    pub fn ephemerals(&self, session: i64) -> impl Iterator<Item = &str> {
        self.ephemerals.get(&session).into_iter().flatten().map(String::as_str)
    }

    /// Number of ephemeral nodes of all sessions.
    pub fn ephemeral_count(&self) -> usize {
        self.ephemerals.values().map(BTreeSet::len).sum()
    }

    /// Bytes of paths and data.
    pub fn approximate_size(&self) -> usize {
        self.nodes.iter().map(|(path, node)| path.len() + node.data.as_ref().map_or(0, Bytes::len)).sum()
    }

    /// Containers that were used and are empty, containers never used for longer than `max_never_used`
    /// milliseconds (0: for ever), and TTL nodes whose time has passed.
    pub fn reapable(&self, now: i64, max_never_used: i64) -> Vec<String> {
        let due = |node: &Node| {
            let age = now.saturating_sub(node.mtime);
            match node.owner {
                _ if !node.children.is_empty() => false,
                Owner::Container if node.created_children > self.first_sequence => true,
                Owner::Container => max_never_used != 0 && age > max_never_used,
                Owner::Ttl(ttl) => age > ttl,
                Owner::Nobody | Owner::Session(_) => false,
            }
        };
        self.reapable.iter().filter(|path| self.node(path).is_some_and(due)).cloned().collect()
    }

    /// Sets the number that the next sequential child of this node gets. Says whether the node exists.
    pub fn set_sequence(&mut self, path: &str, next: i32) -> bool {
        self.node_mut(path).map(|node| node.created_children = next).is_some()
    }

    /// Sets the version of the data of that node. Says whether the node exists.
    pub fn set_version(&mut self, path: &str, version: i32) -> bool {
        self.node_mut(path).map(|node| node.version = version).is_some()
    }

    /// Sets the data of `/zookeeper/config`, as a server does by itself when it starts: that is no
    /// transaction.
    pub fn set_config(&mut self, data: Bytes, time: i64) {
        if let Some(node) = self.node_mut(CONFIG) {
            (node.data, node.version, node.mtime) = (Some(data), -1, time);
        }
    }

    /// Applies a change that was checked against this very state. Answers with the node's metadata
    /// afterwards.
    ///
    /// A change that does not fit the state (its node or parent is missing) does nothing.
    pub fn apply(&mut self, change: &Change, zxid: i64, time: i64) -> (Option<Stat>, Effect) {
        match change {
            Change::Create { path, data, acl, owner, parent_created } => {
                let mut node = Node::new(data.clone(), Arc::clone(acl), *owner, zxid, time);
                node.created_children = self.first_sequence;
                self.create(path, node, *parent_created, zxid)
            }
            Change::Delete { path } => self.delete(path, zxid),
            Change::SetData { path, data, version } => {
                let Some(node) = self.node_mut(path) else { return (None, Effect::Unseen) };
                node.data.clone_from(data);
                node.version = *version;
                node.mzxid = zxid;
                node.mtime = time;
                let (stat, acl) = (node.stat(), Arc::clone(&node.acl));
                if self.like_clickhouse
                    && let Some(parent) = parent(path).and_then(|parent| self.node_mut(parent))
                {
                    parent.written_children = parent.written_children.wrapping_add(1);
                }
                (Some(stat), Effect::DataChanged { path: path.clone(), acl })
            }
            Change::SetAcl { path, acl, version } => {
                let Some(node) = self.node_mut(path) else { return (None, Effect::Unseen) };
                node.acl = Arc::clone(acl);
                node.aversion = *version;
                (Some(node.stat()), Effect::Unseen)
            }
        }
    }

    fn create(&mut self, path: &str, node: Node, parent_created: i32, zxid: i64) -> (Option<Stat>, Effect) {
        let Some((parent, name)) = path.rsplit_once('/') else { return (None, Effect::Unseen) };
        let Some(parent) = self.node_mut(parent) else { return (None, Effect::Unseen) };
        parent.children.insert(name.to_owned());
        let parent_acl = Arc::clone(&parent.acl);
        // Only a larger count is kept. So the counter stops at `i32::MAX` instead of wrapping
        // (ZOOKEEPER-3249), and pzxid stops with it.
        if parent_created > parent.created_children {
            parent.created_children = parent_created;
            parent.pzxid = zxid;
        }
        match node.owner {
            Owner::Session(session) => {
                self.ephemerals.entry(session).or_default().insert(path.to_owned());
            }
            Owner::Container | Owner::Ttl(_) => {
                self.reapable.insert(path.to_owned());
            }
            Owner::Nobody => {}
        }
        let (stat, acl) = (node.stat(), Arc::clone(&node.acl));
        self.nodes.insert(path.to_owned(), node);
        (Some(stat), Effect::Created { path: path.to_owned(), acl, parent_acl })
    }

    fn delete(&mut self, path: &str, zxid: i64) -> (Option<Stat>, Effect) {
        let Some(node) = self.nodes.remove(path) else { return (None, Effect::Unseen) };
        if let Owner::Session(session) = node.owner
            && let Some(paths) = self.ephemerals.get_mut(&session)
        {
            paths.remove(path);
            if paths.is_empty() {
                self.ephemerals.remove(&session);
            }
        }
        self.reapable.remove(path);
        let is_like_clickhouse = self.like_clickhouse;
        let mut parent_acl = Arc::from([]);
        if let Some(parent) = parent(path).and_then(|parent| self.node_mut(parent)) {
            let name = path.rsplit_once('/').map_or(path, |(_, name)| name);
            parent.children.remove(name);
            if !is_like_clickhouse {
                parent.pzxid = parent.pzxid.max(zxid);
            }
            parent_acl = Arc::clone(&parent.acl);
        }
        (None, Effect::Deleted { path: path.to_owned(), acl: node.acl, parent_acl })
    }
}

fn key(path: &str) -> &str {
    if path.is_empty() { "/" } else { path }
}
