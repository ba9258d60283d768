//! Promise 5 at the moment of a grant, and that what is granted stands.

use lockkeeper_core::{Kind, NodeName};
use lockkeeper_testserver::tree::Tree;

use crate::work::{Claim, Share};

/// What is wrong with a claim that was granted just now, by what the quorum has.
pub(super) fn check(tree: &Tree, claim: &Claim) -> Result<(), String> {
    let mut mine = i64::MAX;
    for path in &claim.nodes {
        let Some(node) = tree.node(path) else {
            return Err(format!("promise 1: {path} was granted without a node"));
        };
        mine = mine.min(node.stat().czxid);
        if !claim.is_inherited && node.stat().czxid.cast_unsigned() != claim.token {
            return Err(format!(
                "promise 3: {path} has token {}, its node {}",
                claim.token,
                node.stat().czxid
            ));
        }
    }
    let ahead = match claim.share {
        // A semaphore's line is another directory.
        Share::Permits { .. } => 0,
        Share::Exclusive | Share::Shared => {
            claim.nodes.iter().map(|node| ahead(tree, node)).max().unwrap_or(0)
        }
    };
    if ahead == 0 {
        Ok(())
    } else {
        Err(format!("promise 5: {:?} was granted with {ahead} in front", claim.nodes))
    }
}

/// How many nodes that stand in front of this one make it wait.
pub(crate) fn ahead(tree: &Tree, path: &str) -> usize {
    let (Some((directory, name)), Some(node)) = (path.rsplit_once('/'), tree.node(path)) else { return 0 };
    let mine = node.stat().czxid;
    let kind = |name: &str| NodeName::parse(name).map(|node| node.kind());
    let is_reader = kind(name) == Some(Kind::Read);
    let names = tree.node(directory).map(|node| node.children.clone()).unwrap_or_default();
    let is_ahead = |name: &&String| {
        let is_lower = tree.node(&format!("{directory}/{name}")).is_some_and(|node| node.stat().czxid < mine);
        is_lower && (!is_reader || kind(name) == Some(Kind::Write))
    };
    names.iter().filter(is_ahead).count()
}
