//! A reader that keeps a copy made of differences alone, and compares.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::FutureExt;
use lockkeeper::view::{Difference, Snapshot, ViewChange, ViewChanges, ViewState};
use lockkeeper::znodes::Zxid;
use lockkeeper_testserver::machine::Machine;

use crate::limit::within;

/// By path: creation zxid, modification zxid and data.
pub(super) type Copy = BTreeMap<String, (Zxid, Zxid, Vec<u8>)>;

pub(super) struct Witness {
    changes: ViewChanges,
    copy: Copy,
    /// The differences, and those of them that had no change.
    pub(super) read: usize,
    pub(super) recreated: usize,
}

impl Witness {
    pub(super) fn new(changes: ViewChanges) -> Self {
        let copy = copy_of(changes.snapshot());
        Self { changes, copy, read: 0, recreated: 0 }
    }

    pub(super) fn copy(&self) -> &Copy {
        &self.copy
    }

    /// Reads what there is.
    pub(super) fn read(&mut self) {
        while let Some(difference) = self.changes.next().now_or_never().flatten() {
            self.apply(&difference);
        }
    }

    /// Reads until the view is in this state.
    pub(super) async fn state_is(&mut self, state: ViewState) {
        let reached = async {
            while self.changes.snapshot().state() != state {
                let difference = self.changes.next().await.expect("the view has not ended");
                self.apply(&difference);
            }
        };
        within(&format!("the state {state}"), reached).await.unwrap();
    }

    /// Reads the next difference that has a change.
    pub(super) async fn changed(&mut self) -> Difference {
        let changed = async {
            loop {
                let difference = self.changes.next().await.expect("the view has not ended");
                self.apply(&difference);
                if !difference.changes().is_empty() {
                    return difference;
                }
            }
        };
        within("a change", changed).await.unwrap()
    }

    fn apply(&mut self, difference: &Difference) {
        self.read += 1;
        for change in difference.changes() {
            let path = change.path();
            let had = change.before().map(|node| (node.stat().czxid, node.stat().mzxid));
            let here = self.copy.get(path).map(|(czxid, mzxid, _)| (*czxid, *mzxid));
            assert_eq!(had, here, "a change leads from another state than the last one to: {path:?}");
            match change.node() {
                None => drop(self.copy.remove(path)),
                Some(node) => {
                    let stat = node.stat();
                    assert_ne!(here, Some((stat.czxid, stat.mzxid)), "reported twice: {path:?}");
                    let mzxid = here.map_or(Zxid::ZERO, |(_, mzxid)| mzxid);
                    assert!(stat.mzxid > mzxid, "an older state after a newer one: {path:?}");
                    self.recreated += usize::from(matches!(change, ViewChange::Recreated { .. }));
                    self.copy.insert(path.to_owned(), (stat.czxid, stat.mzxid, node.data().to_vec()));
                }
            }
        }
        assert_eq!(self.copy, copy_of(difference.snapshot()));
    }
}

pub(super) fn copy_of(snapshot: &Arc<Snapshot>) -> Copy {
    let node = |(path, node): (&str, &Arc<lockkeeper::view::ViewNode>)| {
        (path.to_owned(), (node.stat().czxid, node.stat().mzxid, node.data().to_vec()))
    };
    snapshot.iter().map(node).collect()
}

/// The tree of the server at `root`, as far as a view of so many levels shows it.
pub(super) fn tree_of(machine: &Machine, root: &str, levels: usize) -> Copy {
    let mut found = Copy::new();
    let mut paths = vec![(String::new(), 0)];
    while let Some((path, level)) = paths.pop() {
        let whole = if path.is_empty() { root.to_owned() } else { format!("{root}/{path}") };
        let Some(node) = machine.tree().node(&whole) else { continue };
        let stat = node.stat();
        let data = node.data.as_ref().map(|data| data.to_vec()).unwrap_or_default();
        let below = |name: &String| if path.is_empty() { name.clone() } else { format!("{path}/{name}") };
        if level < levels {
            paths.extend(node.children.iter().map(|name| (below(name), level + 1)));
        }
        found.insert(path, (Zxid::new(stat.czxid), Zxid::new(stat.mzxid), data));
    }
    found
}
