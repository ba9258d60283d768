//! A reader of a view that has its own copy, made of differences alone.

use std::collections::BTreeMap;
use std::sync::Arc;

use lockkeeper::view::{Difference, Snapshot, ViewChanges};
use lockkeeper_testserver::tree::Tree;

/// By path below a root: creation zxid and modification zxid.
pub(crate) type Nodes = BTreeMap<String, (i64, i64)>;

pub(crate) struct Witness {
    pub(crate) changes: ViewChanges,
    copy: Nodes,
    /// The newest state that was ever shown of each path.
    newest: BTreeMap<String, i64>,
}

impl Witness {
    pub(crate) fn new(changes: ViewChanges) -> Self {
        let copy = nodes_of(changes.snapshot());
        let newest = copy.iter().map(|(path, (_, mzxid))| (path.clone(), *mzxid)).collect();
        Self { changes, copy, newest }
    }

    pub(crate) fn copy(&self) -> &Nodes {
        &self.copy
    }

    /// Takes a difference: it leads from the copy to its snapshot, and shows nothing twice and nothing older.
    pub(crate) fn apply(&mut self, difference: &Difference) -> Result<(), String> {
        for change in difference.changes() {
            let path = change.path();
            let before = change.before().map(|node| (node.stat().czxid.get(), node.stat().mzxid.get()));
            if before != self.copy.get(path).copied() {
                return Err(format!("a change of {path:?} leads from {before:?}, not from the last state"));
            }
            let Some(node) = change.node() else {
                self.copy.remove(path);
                continue;
            };
            let (czxid, mzxid) = (node.stat().czxid.get(), node.stat().mzxid.get());
            let newest = self.newest.insert(path.to_owned(), mzxid).unwrap_or_default();
            if mzxid <= newest {
                return Err(format!("{path:?} is shown with {mzxid} after {newest}"));
            }
            self.copy.insert(path.to_owned(), (czxid, mzxid));
        }
        let shown = nodes_of(difference.snapshot());
        if self.copy != shown {
            return Err(format!("the changes lead to {:?}, and the snapshot shows {shown:?}", self.copy));
        }
        Ok(())
    }
}

pub(crate) fn nodes_of(snapshot: &Arc<Snapshot>) -> Nodes {
    snapshot
        .iter()
        .map(|(path, node)| (path.to_owned(), (node.stat().czxid.get(), node.stat().mzxid.get())))
        .collect()
}

/// The nodes of the servers at `root` and below.
pub(crate) fn nodes_at(tree: &Tree, root: &str) -> Nodes {
    let (mut found, mut paths) = (Nodes::new(), vec![String::new()]);
    while let Some(path) = paths.pop() {
        let whole = if path.is_empty() { root.to_owned() } else { format!("{root}/{path}") };
        let Some(node) = tree.node(&whole) else { continue };
        let below = |name: &String| if path.is_empty() { name.clone() } else { format!("{path}/{name}") };
        paths.extend(node.children.iter().map(below));
        found.insert(path, (node.stat().czxid, node.stat().mzxid));
    }
    found
}

/// Whether a snapshot has nothing that is older than `zxid`, when the servers had the nodes `then`. They have
/// the nodes `now` after that.
pub(crate) fn is_current(shown: &Nodes, then: &Nodes, zxid: i64, now: &Nodes) -> Result<(), String> {
    for (path, (_, mzxid)) in then {
        let is_shown = match shown.get(path) {
            Some((_, shown)) => shown >= mzxid,
            None => now.get(path).is_none_or(|(czxid, _)| *czxid > zxid),
        };
        if !is_shown {
            return Err(format!("{path:?} was written at {mzxid}, and {:?} is shown", shown.get(path)));
        }
    }
    for (path, (czxid, _)) in shown {
        let is_same = then.get(path).is_some_and(|(known, _)| known == czxid);
        if !is_same && *czxid <= zxid {
            return Err(format!("{path:?} is shown, and was deleted before {zxid}"));
        }
    }
    Ok(())
}

#[test]
fn what_is_older_than_a_sync_is_found() {
    let nodes = |all: &[(&str, i64, i64)]| -> Nodes {
        all.iter().map(|(path, czxid, mzxid)| ((*path).to_owned(), (*czxid, *mzxid))).collect()
    };
    let then = nodes(&[("a", 1, 5)]);
    for (shown, now, is_right) in [
        (nodes(&[("a", 1, 5)]), nodes(&[("a", 1, 5)]), true),
        (nodes(&[("a", 1, 8)]), nodes(&[("a", 1, 8)]), true),
        (nodes(&[("a", 1, 4)]), nodes(&[("a", 1, 5)]), false),
        (nodes(&[]), nodes(&[]), true),
        (nodes(&[]), nodes(&[("a", 8, 8)]), true),
        (nodes(&[]), nodes(&[("a", 1, 5)]), false),
        (nodes(&[("a", 1, 5), ("b", 7, 7)]), nodes(&[("a", 1, 5)]), true),
        (nodes(&[("a", 1, 5), ("b", 3, 3)]), nodes(&[("a", 1, 5)]), false),
    ] {
        assert_eq!(is_current(&shown, &then, 6, &now).is_ok(), is_right, "{shown:?} {now:?}");
    }
}
