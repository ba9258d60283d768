//! Our views beside Curator's `CuratorCache` and kazoo's `DataWatch` and `ChildrenWatch`, on one tree.
//!
//! Curator's cache reports no event for a node that was deleted and created again while its connection was
//! down, and never says that it is complete again. So these tests ask it for its contents only.

use std::sync::Arc;

use lockkeeper::view::Snapshot;
use lockkeeper::znodes::{CreateMode, Version};
use lockkeeper::{ChildrenView, NodeView, TreeView};
use lockkeeper_tests::{Ensemble, Peer, Timing, eventually, left_out};

use super::fixture::{InteropFixture, Outcome, SESSION};
use crate::support::connect;

/// The nodes as Curator shows them.
fn shown(root: &str, snapshot: &Arc<Snapshot>) -> Vec<(String, String)> {
    let mut nodes: Vec<_> = snapshot
        .iter()
        .map(|(path, node)| {
            let path = if path.is_empty() { root.to_owned() } else { format!("{root}/{path}") };
            (path, String::from_utf8_lossy(node.data()).into_owned())
        })
        .collect();
    nodes.sort();
    nodes
}

#[tokio::test]
async fn a_view_and_curators_cache_show_one_tree_whichever_language_writes() -> Outcome {
    let Some(fixture) = InteropFixture::at("/interop/caches").await? else {
        return Ok(());
    };
    let (root, java) = (fixture.path.as_str(), fixture.java.thread("java"));
    let view = TreeView::new(&fixture.manager, root)?;
    view.ready().await?;
    java.put(root, "root").await?;
    java.cache(root).await?;
    let znodes = fixture.manager.znodes();
    for round in 0..20 {
        let path = format!("{root}/{}/{}", round % 3, round % 2);
        match round % 4 {
            0 => java.put(&path, &format!("java-{round}")).await?,
            1 | 2 => {
                if znodes.read(path.as_str()).await?.is_none() {
                    java.put(&path, "created").await?;
                }
                znodes.write(path.as_str(), format!("rust-{round}"), Version::Any).await?;
            }
            _ => java.remove(&format!("{root}/{}", (round + 1) % 3)).await.or_else(|error| {
                // It may not exist.
                if error.to_string().contains("NoNode") { Ok(()) } else { Err(error) }
            })?,
        }
        let ours = shown(root, &view.sync().await?);
        // Curator has no sync: its cache arrives at some time.
        eventually(format!("Curator's cache to show {ours:?}"), Timing::settle(), async || {
            (java.cached(root).await.ok()? == ours).then_some(())
        })
        .await?;
    }
    Ok(())
}

#[tokio::test]
async fn views_and_kazoos_watches_show_a_node_that_is_created_and_deleted_in_turns() -> Outcome {
    if left_out() {
        return Ok(());
    }
    let ensemble = Ensemble::shared().await?;
    let (servers, root, path) = (ensemble.connect_string(), "/interop/watches", "/interop/watches/a");
    let (kazoo, manager) = (Peer::kazoo(&servers, SESSION).await?, connect(&servers).await);
    let (children, node) = (ChildrenView::new(&manager, root)?, NodeView::new(&manager, path)?);
    let znodes = manager.znodes();
    // kazoo's watch on children stops for ever without the node.
    znodes.create(root, "", CreateMode::Persistent).await?;
    kazoo.ask(&format!("datawatch a {path}")).await?;
    kazoo.ask(&format!("childwatch a {root}")).await?;
    for round in 0..8 {
        match round % 4 {
            0 => drop(znodes.create(path, round.to_string(), CreateMode::Persistent).await?),
            1 => drop(znodes.write(path, round.to_string(), Version::Any).await?),
            2 => drop(znodes.create(format!("{root}/b-{round}"), "", CreateMode::Persistent).await?),
            _ => assert!(znodes.delete(path).await?),
        }
        let (node, children) = (node.sync().await?, children.sync().await?);
        let data = node.root().map(|root| format!("={}", String::from_utf8_lossy(root.data())));
        let names: Vec<&str> = children.children("").map(|(name, _)| name).collect();
        let ours = (data.unwrap_or_default(), names.join(","));
        eventually(format!("kazoo's watches to show {ours:?}"), Timing::settle(), async || {
            let data = kazoo.ask(&format!("data a {path}")).await.ok()?;
            let names = kazoo.ask(&format!("children a {root}")).await.ok()?;
            ((data, names) == ours).then_some(())
        })
        .await?;
    }
    Ok(())
}
