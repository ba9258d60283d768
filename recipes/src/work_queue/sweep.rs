//! Deletes the records that ended processes have left behind.

use std::collections::HashSet;
use std::time::Duration;

use futures::future::try_join_all;
use lockkeeper_core::{ConnectionManager, Error, ManagerExt, NodeName, ZnodePath};
use tracing::debug;

/// A record stays for so long after its last write: the process may have been paused, and asks it for the
/// outcome of a transaction then.
const KEPT: Duration = Duration::from_secs(3_600);

/// So many records are read by one sweep.
const READ_MAX: usize = 500;

/// How many requests are in flight.
const BATCH: usize = 50;

/// Deletes old records of workers whose nodes do not exist any more. Nothing depends on it: a failure is left
/// to the next process.
pub(super) async fn sweep_records(manager: ConnectionManager, records: ZnodePath, workers: ZnodePath) {
    if let Err(error) = try_sweep(&manager, &records, &workers).await {
        debug!(path = %records, %error, "records of ended workers may stay");
    }
}

async fn try_sweep(
    manager: &ConnectionManager,
    records: &ZnodePath,
    workers: &ZnodePath,
) -> Result<(), Error> {
    let znodes = manager.znodes();
    let names = znodes.children(records).await?.unwrap_or_default();
    // Listed behind the records: the node of a worker is created before its record.
    let living = znodes.children(workers).await?.unwrap_or_default();
    let living: HashSet<&str> = living.iter().map(|name| NodeName::create_id(name).unwrap_or(name)).collect();
    let Some(now) = manager.estimated_server_time() else { return Ok(()) };
    let kept_ms = i64::try_from(KEPT.as_millis()).unwrap_or(i64::MAX);
    let left: Vec<&String> = names.iter().filter(|name| !living.contains(name.as_str())).collect();
    for batch in left.get(..left.len().min(READ_MAX)).unwrap_or_default().chunks(BATCH) {
        let swept = batch.iter().map(|name| async {
            let path = records.child(name)?;
            match manager.znodes().exists(&path).await? {
                Some(stat) if stat.mtime.saturating_add(kept_ms) < now => {
                    manager.znodes().delete_at(&path, stat.version).await.map(drop)
                }
                _ => Ok::<_, Error>(()),
            }
        });
        try_join_all(swept).await?;
    }
    Ok(())
}
