//! Promise 5 at the moment of a grant, and that the granted node exists.

use std::collections::BTreeSet;

use lockkeeper_core::{Kind, NodeName};
use lockkeeper_test_recipes::{Claim, Share};
use lockkeeper_testserver::tree::Tree;

/// The broken promise of a claim that was granted just now, by the state of the quorum. `leaving` are nodes
/// whose own session has sent their delete: within a session the successor is granted before the delete is
/// applied.
pub(super) fn check(tree: &Tree, claim: &Claim, leaving: &BTreeSet<String>) -> Result<(), String> {
    let mut mine = i64::MAX;
    for path in &claim.nodes {
        let Some(node) = tree.node(path) else {
            return Err(format!("promise 1: {path} was granted without a node"));
        };
        mine = mine.min(node.stat().czxid);
        // A node that replaced another one has that node's token, and never its own.
        if claim.is_inherited == (node.stat().czxid.cast_unsigned() == claim.token) {
            return Err(format!(
                "promise 3: {path} has token {}, its node {}",
                claim.token,
                node.stat().czxid
            ));
        }
    }
    let ahead = match claim.share {
        // The queue of a semaphore is in another directory.
        Share::Permits { .. } => 0,
        Share::Exclusive | Share::Shared => {
            // Its position is that of its first hold, not that of its own node's create.
            let place = |node: &String| match claim.is_inherited {
                true => claim.token.cast_signed(),
                false => czxid(tree, node),
            };
            let is_passed = |node: &String, other: &String| {
                claim.ignored.contains(other)
                    || leaving.contains(other) && owner(tree, other) == owner(tree, node)
            };
            let ahead =
                |node: &String| contenders_ahead(tree, node, place(node), &|other| is_passed(node, other));
            claim.nodes.iter().map(ahead).max().unwrap_or(0)
        }
    };
    if ahead == 0 {
        Ok(())
    } else {
        Err(format!("promise 5: {:?} was granted with {ahead} in front", claim.nodes))
    }
}

/// The number of predecessors that make this node wait.
pub(crate) fn ahead(tree: &Tree, path: &str) -> usize {
    contenders_ahead(tree, path, czxid(tree, path), &|_| false)
}

fn owner(tree: &Tree, path: &str) -> Option<i64> {
    tree.node(path).map(|node| node.stat().ephemeral_owner)
}

fn czxid(tree: &Tree, path: &str) -> i64 {
    tree.node(path).map_or(0, |node| node.stat().czxid)
}

/// The number of nodes ahead of a node whose position is `mine`, except some.
fn contenders_ahead(tree: &Tree, path: &str, mine: i64, is_passed: &dyn Fn(&String) -> bool) -> usize {
    let Some((directory, name)) = path.rsplit_once('/') else { return 0 };
    let Some(me) = NodeName::parse(name) else { return 0 };
    let waits_for = |other: &NodeName| match me.kind() {
        // A writer with a reader's sequence number is that reader.
        Kind::READ => other.kind() == Kind::WRITE && other.sequence() != me.sequence(),
        _ => true,
    };
    let names = tree.node(directory).map(|node| node.children.clone()).unwrap_or_default();
    let is_ahead = |name: &&String| {
        let other = format!("{directory}/{name}");
        let (Some(node), Some(name)) = (tree.node(&other), NodeName::parse(name)) else { return false };
        let stat = node.stat();
        // A restored node may be older than its directory's numbers.
        let is_lower = stat.czxid < mine && (stat.ephemeral_owner != 0 || name.sequence() < me.sequence());
        is_lower && !is_passed(&other) && waits_for(&name)
    };
    names.iter().filter(is_ahead).count()
}
