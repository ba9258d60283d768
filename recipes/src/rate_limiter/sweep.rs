use lockkeeper_core::{Deadline, Error, HoldExt, ManagerExt, Refusal};

use super::handle::RateLimiter;
use super::{encoding, limiter_queue};

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
        let (path, znodes) = (self.key.path(), self.manager.znodes());
        let Some((data, stat)) = znodes.read(path).await? else { return Ok(false) };
        let Some(recorded) = encoding::decode(&data, &stat).filter(|_| stat.children == 0) else {
            return Ok(false);
        };
        let window = recorded.limits.unwrap_or_else(|| self.key.limits()).window;
        let over_at = recorded.window.over_at(window).unwrap_or(i64::MIN);
        let now = match self.manager.estimated_server_time() {
            Some(now) => now,
            None => {
                // A write shows the servers' time.
                let limit = Deadline::after(self.manager.operation_timeout());
                let queue = limiter_queue(&self.manager, path, &self.data)?;
                let Some(hold) = queue.try_acquire(limit).await? else { return Ok(false) };
                let now = hold.server_time(limit).await?;
                hold.release().await?;
                now
            }
        };
        if now < over_at {
            return Ok(false);
        }
        match znodes.delete_at(path, stat.version).await {
            // It is in use again.
            Err(Error::Refused { refusal: Refusal::BadVersion | Refusal::NotEmpty, .. }) => Ok(false),
            deleted => deleted,
        }
    }
}
