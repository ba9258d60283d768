//! Nodes that a tool for copies of trees has made: they have the names of contenders or members, and belong
//! to no session.

use std::collections::{BTreeMap, BTreeSet};

use lockkeeper_core::{CreateMode, NodeName};

use super::happening::Happening;
use super::state::State;
use crate::wire::create;

/// The restored nodes.
#[derive(Default)]
pub(super) struct Restored {
    /// The creation zxids of all of them.
    all: BTreeSet<i64>,
    /// Those that block somebody, by path: they are deleted when all is healed.
    blocking: BTreeMap<String, i64>,
}

impl Restored {
    pub(super) fn contains(&self, czxid: i64) -> bool {
        self.all.contains(&czxid)
    }
}

impl State {
    /// Restores a node beside that of a contender or a member, once that one is gone, or in its place.
    pub(super) fn restore_some(&mut self) {
        let Some(path) = self.some_contender() else { return };
        let Some((directory, name)) = path.rsplit_once('/') else { return };
        let is_contender = NodeName::parse(name).is_some();
        let is_numbered = name.len() > 10 && name.bytes().rev().take(10).all(|byte| byte.is_ascii_digit());
        match self.rng.index(3) {
            // The next number of the queue.
            0 if is_contender && is_numbered => {
                self.make_restored(&path[..path.len() - 10], CreateMode::PersistentSequential);
            }
            // A name of its own, which is in nobody's way.
            0 if !is_contender => {
                self.make_restored(&format!("{directory}/restored"), CreateMode::Persistent);
            }
            1 if !is_contender => {
                self.delete_by_hand(&path);
                self.restore(&path);
            }
            _ => {
                let wait = self.rng.between(1, self.plan.timeout);
                self.after(wait, Happening::Restore(path));
            }
        }
    }

    /// Restores the node at this path, if there is none. The name of a contender is all that its client knows
    /// the node by, and a transaction of it that is applied late would delete the copy, so it is not given
    /// again.
    pub(super) fn restore(&mut self, path: &str) {
        let is_contender = path.rsplit('/').next().is_some_and(|name| NodeName::parse(name).is_some());
        if !is_contender {
            self.make_restored(path, CreateMode::Persistent);
        }
    }

    fn make_restored(&mut self, path: &str, mode: CreateMode) {
        let Some((directory, _)) = path.rsplit_once('/') else { return };
        let before = self.machine.zxid();
        self.write_as_admin(create(path, b"restored", mode));
        let tree = self.machine.tree();
        let names = tree.node(directory).map(|node| node.children.clone()).unwrap_or_default();
        let made = names.iter().map(|name| format!("{directory}/{name}")).find_map(|path| {
            let czxid = tree.node(&path)?.stat().czxid;
            (czxid > before).then_some((path, czxid))
        });
        let Some((path, czxid)) = made else { return };
        self.note(|| format!("FAULT {path} is restored, and belongs to no session"));
        self.restored.all.insert(czxid);
        if !path.ends_with("/restored") {
            self.restored.blocking.insert(path.clone(), czxid);
            let wait = self.rng.between(1, self.plan.timeout);
            self.after(wait, Happening::RemoveRestored(path));
        }
    }

    /// Deletes it, if it is still that node.
    pub(super) fn remove_restored(&mut self, path: &str) {
        let Some(czxid) = self.restored.blocking.remove(path) else { return };
        if self.machine.tree().node(path).is_some_and(|node| node.stat().czxid == czxid) {
            self.note(|| format!("{path}, which was restored, is deleted"));
            let outputs = self.machine.delete_node(path, self.server_time());
            self.emit(outputs);
        }
    }

    pub(super) fn remove_all_restored(&mut self) {
        let paths: Vec<String> = self.restored.blocking.keys().cloned().collect();
        paths.iter().for_each(|path| self.remove_restored(path));
    }
}
