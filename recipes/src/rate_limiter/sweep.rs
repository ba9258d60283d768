//! Deletes the starts that count no more.

use lockkeeper_core::{Deadline, Error, HoldExt, Phase, TxnError, count_of};

use super::RateLimiter;
use super::decide::Start;
use crate::lock::at_head::NotTaken;

/// The number of starts that one transaction deletes.
const AT_ONCE: usize = 64;

impl RateLimiter {
    /// Deletes the recorded starts that are over, and returns their number. The directories of a limiter
    /// without starts are containers, which the servers delete.
    ///
    /// Each admission deletes some starts that are over. So this is for limiters that are used no more. A
    /// limiter that is in use now is left alone.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`] if there was no connection or no answer within the manager's operation timeout.
    /// Otherwise as [`admit`](Self::admit).
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: a start that is over counts no more, whether or not its node exists.
    pub async fn sweep(&self) -> Result<u32, Error> {
        let names = self.manager.znodes().children(&self.starts).await?.unwrap_or_default();
        if names.is_empty() {
            return Ok(0);
        }
        let hold = match self.queue().acquire(Deadline::immediate()).await {
            Ok(hold) => hold,
            // A contender is ahead, and deletes what is over.
            Err(Error::Timeout { phase: Phase::Queued { .. }, .. }) => return Ok(0),
            Err(error) => return Err(error),
        };
        let limit = Deadline::after(self.manager.operation_timeout());
        let starts = match self.read(&hold, &names, limit).await {
            Ok(starts) => starts.unwrap_or_default(),
            Err(NotTaken::Failed(error)) => return Err(error),
            Err(NotTaken::Restart | NotTaken::NotNow(_)) => return Ok(0),
        };
        // Only the servers' time decides.
        let now = hold.server_time(limit).await?;
        let is_over = |(_, start): &&(String, Start)| start.over_at(self.span()) <= now;
        let over: Vec<_> = starts.iter().filter(is_over).collect();
        let mut deleted = 0_u32;
        for some in over.chunks(AT_ONCE) {
            let mut txn = hold.txn();
            for (name, _) in some {
                txn = txn.delete(self.starts.child(name)?, lockkeeper_core::Version::Any);
            }
            match txn.commit().await {
                Ok(_) => deleted = deleted.saturating_add(count_of(some.len())),
                // The next sweep continues.
                Err(TxnError::Lost(_)) => return Ok(deleted),
                Err(error) => return Err(error.into()),
            }
        }
        hold.release().await?;
        Ok(deleted)
    }
}
