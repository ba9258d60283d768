//! Admissions that are fresh when they are returned.

use std::time::Duration;

use lockkeeper_core::{Deadline, Error};

use super::handle::RateLimiter;
use super::{Admission, RateLimiterError};

/// So many stale admissions in a row have one cause: the grace is too short.
const STALE_MAX: u32 = 4;

impl RateLimiter {
    /// Waits for an admission that is [fresh](Admission::is_fresh), without a limit of time. Start directly
    /// after it.
    ///
    /// An admission that arrives too late is used up, and another one is waited for.
    ///
    /// # Errors
    ///
    /// [`RateLimiterError::Stale`] if several admissions in a row arrive too late: the
    /// [grace](Self::with_grace) is too short for these servers. Otherwise as [`admit`](Self::admit).
    ///
    /// # Cancel safety
    ///
    /// As [`admit`](Self::admit).
    pub async fn admit_fresh(&self) -> Result<Admission, Error> {
        self.admit_fresh_by(Deadline::never()).await
    }

    /// As [`admit_fresh`](Self::admit_fresh), for at most `timeout`.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`], which names the predecessor, or the number of free starts. Otherwise as
    /// [`admit_fresh`](Self::admit_fresh).
    ///
    /// # Cancel safety
    ///
    /// As [`admit`](Self::admit).
    pub async fn admit_fresh_timeout(&self, timeout: Duration) -> Result<Admission, Error> {
        self.admit_fresh_by(Deadline::after(timeout)).await
    }

    async fn admit_fresh_by(&self, deadline: Deadline) -> Result<Admission, Error> {
        for _ in 0..STALE_MAX {
            let admission = self.admit_by(1, deadline).await?;
            if admission.is_fresh() {
                return Ok(admission);
            }
        }
        let (path, grace) = (self.whole_path(), self.key.grace(None));
        Err(RateLimiterError::Stale { path, grace, tries: STALE_MAX }.into())
    }
}
