use std::error::Error as StdError;
use std::time::{Duration, SystemTime};

use lockkeeper::{ConnectionManager, Error, WorkQueue};

use crate::say;

/// A queue with the nodes of another client.
fn queue(
    manager: &ConnectionManager,
    path: &str,
    kind: &str,
    locks: &str,
) -> Result<WorkQueue<String>, Error> {
    match kind {
        "priority" => WorkQueue::in_curator_priority_layout(manager, path, locks),
        "delay" => WorkQueue::in_curator_delay_layout(manager, path, locks),
        "id" => WorkQueue::in_curator_id_layout(manager, path, locks),
        "kazoo" => WorkQueue::in_kazoo_layout(manager, path),
        _ => WorkQueue::in_curator_layout(manager, path, locks),
    }
}

/// Puts items, each in a node of its own.
pub(crate) async fn offer(
    manager: &ConnectionManager,
    path: &str,
    rest: &[&str],
) -> Result<String, Box<dyn StdError + Send + Sync>> {
    let [kind, locks, detail, values] = rest else { return Err("put what?".into()) };
    let queue = queue(manager, path, kind, locks)?;
    for value in values.split(',').map(str::to_owned) {
        match *kind {
            "priority" | "kazoo" => queue.put_with(&value, detail.parse()?).await?,
            "delay" => {
                let time = SystemTime::UNIX_EPOCH + Duration::from_millis(detail.parse()?);
                queue.put_at(&value, time).await?;
            }
            "id" => drop(queue.put_once(&value, detail).await?),
            _ => queue.put(&value).await?,
        }
    }
    Ok(String::new())
}

/// Takes items from now on, and ends each with a node: RECEIPTS/VALUE- with a sequence number.
pub(crate) async fn work_off(
    manager: &ConnectionManager,
    path: &str,
    rest: &[&str],
) -> Result<String, Box<dyn StdError + Send + Sync>> {
    let [kind, locks, receipts] = rest else { return Err("take what?".into()) };
    let (queue, manager, receipts) =
        (queue(manager, path, kind, locks)?, manager.clone(), (*receipts).to_owned());
    manager.znodes().ensure(&*receipts).await?;
    tokio::spawn(async move {
        loop {
            if let Err(error) = work(&queue, &manager, &receipts).await {
                // Another client has ended the item, or the session was lost.
                let _ = say(&format!("failed {error}"));
            }
        }
    });
    Ok(String::new())
}

async fn work(queue: &WorkQueue<String>, manager: &ConnectionManager, receipts: &str) -> Result<(), Error> {
    let item = queue.take().await?;
    // Some requests, during which the process may be killed.
    for _ in 0..100 {
        let _ = manager.znodes().read("/").await;
    }
    let receipt = format!("{receipts}/{}-", item.value());
    item.done_with(|txn| txn.create_sequential(receipt, b"")).await
}
