use lockkeeper_core::{
    ConnectionManager, Deadline, Error, HoldExt, ManagerExt, ReadResult, Refusal, TxnError, Version,
};

use super::encoding;
use super::handle::RateLimiter;
use super::numbers::LimiterKey;
use super::queue::limiter_queue;

impl RateLimiter {
    /// Deletes the node of the limiter, if no start counts any more. Returns whether it did.
    ///
    /// The process that wrote last deletes the node by itself, when its starts count no more. So this is for
    /// nodes whose process has ended. A limiter that is in use is left alone.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`] if there was no connection or no answer within the manager's operation timeout.
    /// Otherwise as [`admit`](Self::admit).
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the node may be deleted.
    pub async fn sweep(&self) -> Result<bool, Error> {
        let (manager, path) = (&self.manager, self.key.path());
        let Some((data, stat)) = manager.znodes().read(path).await? else { return Ok(false) };
        let Some(recorded) = encoding::decode(&data, &stat).filter(|_| stat.children == 0) else {
            return Ok(false);
        };
        let over_at = recorded.over_at(&self.key);
        // Only to spare the requests for a limiter that is in use.
        if manager.estimated_server_time().is_some_and(|now| now < over_at) {
            return Ok(false);
        }
        delete_if_over(manager, &self.key).await
    }
}

/// Deletes the node with the window if nothing counts, by the servers' time. That rests on the hold of the
/// queue: nobody else writes meanwhile, and the node of this contender is in no other directory that is made
/// at the path later.
pub(super) async fn delete_if_over(manager: &ConnectionManager, key: &LimiterKey) -> Result<bool, Error> {
    let limit = Deadline::after(manager.operation_timeout());
    let queue = limiter_queue(manager, key.path(), manager.node_data())?;
    let Some(mut hold) = queue.try_acquire(limit).await? else { return Ok(false) };
    // It protects no work.
    hold.defer_loss_report();
    let now = hold.server_time(limit).await?;
    let Some(ReadResult::Data { data, stat }) = hold.read(limit).await?.into_iter().next() else {
        return Ok(false);
    };
    if encoding::decode(&data, &stat).is_none_or(|recorded| recorded.over_at(key) > now) {
        return Ok(false);
    }
    let deleting = hold.txn().delete(hold.path().clone(), Version::Any).delete(key.path(), stat.version);
    match deleting.commit().await {
        Ok(_) => Ok(true),
        // Another process wants starts.
        Err(
            TxnError::Refused { refusal: Refusal::NotEmpty | Refusal::BadVersion, .. } | TxnError::Lost(_),
        ) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
