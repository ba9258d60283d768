//! Deletes the node of a removed entry.
//!
//! Only this node may be deleted, and only with the mark: not a node that was created in its place since,
//! which may have the same version. So the transaction also deletes a child that was created for this purpose
//! below the node with the mark. Another node does not have that child.

use std::time::Duration;

use lockkeeper_core::{ConnectionManager, CreateMode, Error, ZnodePath};
use uuid::Uuid;

use super::key;
use super::stored::REMOVED;

/// How long the delete waits for each writer node below the entry.
const WRITER_WAIT: Duration = Duration::from_secs(1);

/// The writer nodes that it waits for: that of this process, which is deleted in the background, and another.
const WRITERS_MAX: usize = 2;

/// Deletes the node if it has the mark of a removed entry. The entry is removed in any case.
pub(super) async fn delete_if_removed(manager: &ConnectionManager, path: &ZnodePath) {
    if let Err(error) = try_delete(manager, path).await {
        tracing::debug!(key = %key::shown(path.name()), %error, "the node of a removed entry stays for now");
    }
}

async fn try_delete(manager: &ConnectionManager, path: &ZnodePath) -> Result<(), Error> {
    let znodes = manager.znodes();
    for _ in 0..WRITERS_MAX {
        let writers = znodes.children(path).await?.unwrap_or_default();
        let Some(writer) = writers.first() else { break };
        znodes.deleted_timeout(path.child(writer)?, WRITER_WAIT).await?;
    }
    match znodes.read(path).await? {
        Some((data, _)) if data == REMOVED => {}
        _ => return Ok(()),
    }
    let pin = path.child(&format!("removed-{}", Uuid::new_v4()))?;
    let deleted = delete_pinned(manager, path, &pin).await;
    if deleted.is_err() {
        // Whether or not it was created.
        znodes.delete(&pin).await?;
    }
    deleted
}

async fn delete_pinned(manager: &ConnectionManager, path: &ZnodePath, pin: &ZnodePath) -> Result<(), Error> {
    manager.txn().create_with(pin, "", CreateMode::Ephemeral).commit().await?;
    let version = match manager.znodes().read(path).await? {
        Some((data, stat)) if data == REMOVED => stat.version,
        _ => return manager.znodes().delete(pin).await.map(drop),
    };
    manager.txn().delete(pin, 0).delete(path, version).commit().await?;
    Ok(())
}
