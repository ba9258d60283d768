//! The tree of a server, for models of views.

use std::collections::BTreeMap;

use crate::view::decide::{Answer, ReadRequest};
use crate::view::node_map::child;
use crate::view::scope::ViewScope;
use crate::wire::Stat;
use crate::znode::zxid::Zxid;

/// By path: creation zxid, modification zxid, and the length of the data.
pub(super) type Copy = BTreeMap<String, (Zxid, Zxid, usize)>;

/// The tree of a server. Paths are below the root of the view.
#[derive(Clone, Debug, Default)]
pub(super) struct Server {
    nodes: BTreeMap<String, (Vec<u8>, Stat)>,
    zxid: i64,
    /// The counters of children have ended: a create leaves the pzxid of the parent as it is.
    pub(super) has_ended_counters: bool,
}

impl Server {
    fn parent(path: &str) -> Option<&str> {
        if path.is_empty() { None } else { Some(path.rsplit_once('/').map_or("", |(parent, _)| parent)) }
    }

    fn touch_parent(&mut self, path: &str, children: i32) {
        let zxid = Zxid::new(self.zxid);
        if let Some((_, stat)) = Self::parent(path).and_then(|parent| self.nodes.get_mut(parent)) {
            if children < 0 || !self.has_ended_counters {
                stat.pzxid = zxid;
            }
            stat.children += children;
        }
    }

    /// Returns whether the write was possible.
    pub(super) fn create(&mut self, path: &str, data: &[u8]) -> bool {
        let has_parent = Self::parent(path).is_none_or(|parent| self.nodes.contains_key(parent));
        if !has_parent || self.nodes.contains_key(path) {
            return false;
        }
        self.zxid += 1;
        let zxid = Zxid::new(self.zxid);
        let stat = Stat {
            czxid: zxid,
            mzxid: zxid,
            pzxid: zxid,
            ctime: 0,
            mtime: 0,
            version: 0,
            child_version: 0,
            ephemeral_owner: 0,
            data_length: i32::try_from(data.len()).unwrap(),
            children: 0,
        };
        self.nodes.insert(path.to_owned(), (data.to_vec(), stat));
        self.touch_parent(path, 1);
        true
    }

    pub(super) fn set(&mut self, path: &str, data: &[u8]) -> bool {
        self.zxid += 1;
        let zxid = Zxid::new(self.zxid);
        self.nodes.get_mut(path).is_some_and(|(now, stat)| {
            (stat.mzxid, stat.version, stat.data_length) = (zxid, stat.version + 1, data.len() as i32);
            *now = data.to_vec();
            true
        })
    }

    pub(super) fn delete(&mut self, path: &str) -> bool {
        if self.nodes.get(path).is_none_or(|(_, stat)| stat.children != 0) {
            return false;
        }
        self.zxid += 1;
        self.nodes.remove(path);
        self.touch_parent(path, -1);
        true
    }

    pub(super) fn stat(&self, path: &str) -> Option<Stat> {
        self.nodes.get(path).map(|(_, stat)| *stat)
    }

    pub(super) fn read(&self, request: &ReadRequest) -> Answer {
        let path = request.path();
        let Some((data, stat)) = self.nodes.get(path) else { return Answer::Missing };
        match request {
            ReadRequest::Data(_) => Answer::Data(data.clone(), *stat),
            ReadRequest::Stat(_) => Answer::Stat(*stat),
            ReadRequest::Names(_) => {
                let prefix = child(path, "");
                let below = self.nodes.keys().filter_map(|other| other.strip_prefix(&prefix));
                let names = below.filter(|name| !name.is_empty() && !name.contains('/'));
                Answer::Names(names.map(str::to_owned).collect(), *stat)
            }
        }
    }

    /// The nodes that belong to a view.
    pub(super) fn seen(&self, scope: ViewScope) -> Copy {
        let level = |path: &str| if path.is_empty() { 0 } else { path.split('/').count() };
        let nodes = self.nodes.iter().filter(|(path, _)| scope.levels().is_none_or(|of| level(path) <= of));
        nodes.map(|(path, (data, stat))| (path.clone(), (stat.czxid, stat.mzxid, data.len()))).collect()
    }
}
