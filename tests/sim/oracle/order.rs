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
    let directory = claim.directory();
    let names = tree.node(directory).map(|node| node.children.clone()).unwrap_or_default();
    let is_ahead = |name: &&String| {
        let path = format!("{directory}/{name}");
        let is_lower = tree.node(&path).is_some_and(|node| node.stat().czxid < mine);
        is_lower && !claim.nodes.contains(&path) && blocks(name, claim.share)
    };
    match names.iter().filter(is_ahead).count() {
        0 => Ok(()),
        ahead => Err(format!("promise 5: {:?} was granted with {ahead} in front", claim.nodes)),
    }
}

/// Whether a node in front is waited for.
fn blocks(name: &str, share: Share) -> bool {
    match share {
        Share::Exclusive => true,
        Share::Shared => NodeName::parse(name).is_some_and(|node| node.kind() == Kind::Write),
        // A semaphore's line is another directory.
        Share::Permits { .. } => false,
    }
}
