use lockkeeper_core::{Error, ManagerExt};

use super::delete::delete_if_over;
use super::encoding;
use super::handle::RateLimiter;

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
        let Some(recorded) = encoding::decode(&data, stat.mtime).filter(|_| stat.children == 0) else {
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
