use lockkeeper_core::{ConnectionManager, Deadline, Error, HoldExt, ReadResult, Refusal, TxnError, Version};

use super::encoding;
use super::numbers::LimiterKey;
use super::queue::limiter_queue;

/// Deletes the node with the window if nothing counts, by the servers' time. That rests on the hold of the
/// queue: nobody else writes meanwhile, and the node of this contender is in no other directory that is made
/// at the path later.
pub(super) async fn delete_if_over(manager: &ConnectionManager, key: &LimiterKey) -> Result<bool, Error> {
    let limit = Deadline::after(manager.operation_timeout());
    let queue = limiter_queue(manager, key.path(), None, manager.node_data())?;
    let Some(mut hold) = queue.try_acquire(limit).await? else { return Ok(false) };
    // It protects no work.
    hold.defer_loss_report();
    let now = match hold.created_at() {
        Some(created_at) => created_at,
        None => hold.server_time(limit).await?,
    };
    let Some(ReadResult::Data { data, stat }) = hold.read(limit).await?.into_iter().next() else {
        return Ok(false);
    };
    if encoding::decode(&data, stat.mtime).is_none_or(|recorded| recorded.over_at(key) > now) {
        return Ok(false);
    }
    let deleting = hold.txn().delete(hold.path().clone(), Version::Any).delete(key.path(), stat.version);
    match deleting.commit().await {
        Ok(_) => {
            hold.end_deleted();
            Ok(true)
        }
        // Another process wants starts.
        Err(
            TxnError::Refused { refusal: Refusal::NotEmpty | Refusal::BadVersion, .. } | TxnError::Lost(_),
        ) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
