//! After the faults: the driver takes every item that waits, and reads what became of all.

use std::collections::BTreeMap;
use std::time::Duration;

use lockkeeper::{ConnectionManager, Error, WorkQueue};
use lockkeeper_tests::{Ensemble, HarnessError, RawClient, eventually};
use parking_lot::Mutex;

use crate::Failure;
use crate::fixture::{self, EFFECTS, JOBS, TABLE};
use crate::history::Jobs;

/// Takes the items that wait, as one more client, until none is left or `limit` has passed, and reads the
/// queue.
pub(super) async fn drained(ensemble: &Ensemble, limit: Duration) -> Result<Jobs, Failure> {
    let manager = ConnectionManager::connect(&ensemble.connect_string()).await?;
    let queue = fixture::jobs(&manager)?;
    let drained = Mutex::new(Vec::new());
    let empty = eventually("no item is left", limit, async || match work_off(&queue, &drained).await {
        Ok(is_empty) => is_empty.then_some(Ok(())),
        Err(error) if error.is_transient() || error.outcome_unknown() => None,
        Err(error) => Some(Err(error)),
    });
    // What is left is in the account.
    if let Ok(Err(error)) = empty.await {
        return Err(error.into());
    }
    manager.shutdown().await?;
    let mut raw = ensemble.raw().await?;
    raw.sync("/").await?;
    let jobs = Jobs {
        drained: drained.into_inner(),
        waiting: values(&mut raw, &format!("{JOBS}/items")).await?,
        failed: values(&mut raw, &format!("{JOBS}/failed")).await?,
        effects: effects(&mut raw).await?,
    };
    raw.close().await?;
    Ok(jobs)
}

/// Ends the items that are free; whether none is left.
async fn work_off(queue: &WorkQueue<String>, drained: &Mutex<Vec<String>>) -> Result<bool, Error> {
    while let Some(item) = queue.try_take().await? {
        let name = item.value().clone();
        if fixture::is_bad(&name) {
            let _ = item.fail("it is a bad one").await?;
            continue;
        }
        drained.lock().push(name.clone());
        item.done_with(|txn| txn.create_sequential(fixture::effect_of(&name), Jobs::DRIVER)).await?;
    }
    Ok(queue.inspect().await?.item_count == 0)
}

/// The values of all items below a folder. A value of this test has no line feed, and is at the end of the
/// data.
async fn values(raw: &mut RawClient, folder: &str) -> Result<Vec<String>, HarnessError> {
    let mut values = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for (path, data) in nodes(raw, &folder).await? {
            let value = data.rsplit('\n').next().unwrap_or_default();
            if value.is_empty() {
                folders.push(path);
            } else {
                values.push(value.to_owned());
            }
        }
    }
    Ok(values)
}

async fn effects(raw: &mut RawClient) -> Result<Vec<(String, String)>, HarnessError> {
    let nodes = nodes(raw, EFFECTS).await?;
    let item = |path: &str| {
        let name = path.rsplit('/').next().unwrap_or_default();
        fixture::item_of_effect(name).to_owned()
    };
    Ok(nodes.into_iter().map(|(path, by)| (item(&path), by)).collect())
}

/// The children of a folder, and their data.
async fn nodes(raw: &mut RawClient, folder: &str) -> Result<Vec<(String, String)>, HarnessError> {
    let names = match raw.children(folder).await {
        Err(error) if error.is_no_node() => Vec::new(),
        names => names?,
    };
    let mut nodes = Vec::new();
    for name in names {
        let path = format!("{folder}/{name}");
        let (data, _) = raw.data(&path).await?;
        nodes.push((path, String::from_utf8_lossy(&data).into_owned()));
    }
    Ok(nodes)
}

/// The entries of the table of all clients.
pub(super) async fn entries(ensemble: &Ensemble) -> Result<BTreeMap<String, i64>, Failure> {
    let mut raw = ensemble.raw().await?;
    raw.sync("/").await?;
    let mut entries = BTreeMap::new();
    for entry in fixture::ENTRIES {
        match raw.data(&format!("{TABLE}/{entry}")).await {
            Ok((data, _)) => _ = entries.insert(entry.to_owned(), String::from_utf8(data)?.parse()?),
            Err(error) if error.is_no_node() => {}
            Err(error) => return Err(error.into()),
        }
    }
    raw.close().await?;
    Ok(entries)
}
