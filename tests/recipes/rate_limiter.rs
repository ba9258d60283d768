//! [`RateLimiter`].

use std::time::Duration;

use futures::future::{BoxFuture, pending, ready};
use lockkeeper::{Admission, BootInstant, Hold, RateLimiter, ReleaseError};

use crate::{AcquireMode, Adapter, Grant, Granted, Starts, Taking, Target};

/// The number of starts in any window: one at the first path, two at the others.
fn limit(path: &str) -> u32 {
    if path.ends_with('0') { 1 } else { 2 }
}

const WINDOW: Duration = Duration::from_millis(1_500);
/// Messages may take long.
const GRACE: Duration = Duration::from_millis(700);
/// A start makes room for the next one when its window and its grace are over, and a waiter reads that then.
const TIME_PER_START: u64 = 2_250;

/// An admission of so many starts. `None`: of some.
#[derive(Clone, Copy, Debug)]
pub struct Admit(Option<u32>);

impl Admit {
    /// One start.
    pub const ONE: Self = Self(Some(1));
    /// Some starts. With a limit of time, one.
    pub const DRAWN: Self = Self(None);
}

impl Adapter for Admit {
    fn take(&self, mut target: Target, mode: AcquireMode) -> Taking {
        let starts_max = limit(&target.path);
        let starts = self.0.unwrap_or_else(|| target.draw_count(starts_max, 1));
        Box::pin(async move {
            let limiter = RateLimiter::new(&target.manager, target.path.as_str(), starts_max, WINDOW)?;
            let limiter = limiter.with_grace(GRACE);
            loop {
                let admission = match mode {
                    AcquireMode::Wait => Some(limiter.admit_many(starts).await?),
                    AcquireMode::WaitAtMost(limit) => Some(limiter.admit_timeout(limit).await?),
                    AcquireMode::Try => limiter.try_admit().await?.admitted(),
                };
                let Some(admission) = admission else { return Ok(None) };
                // Right before the start. The process may have been paused meanwhile.
                if admission.is_fresh() {
                    return Ok(Some(Box::new(Admitted { admission, path: target.path }) as Granted));
                }
            }
        })
    }

    fn time_per_grant(&self) -> u64 {
        TIME_PER_START
    }
}

/// The starts of an admission: no hold, and nothing to release.
#[derive(Debug)]
struct Admitted {
    admission: Admission,
    path: String,
}

impl Grant for Admitted {
    fn holds(&self) -> Vec<&Hold> {
        Vec::new()
    }

    fn is_valid(&self) -> bool {
        self.admission.is_fresh()
    }

    fn valid_until(&self) -> BootInstant {
        self.admission.fresh_until()
    }

    fn lost(&self) -> BoxFuture<'_, ()> {
        Box::pin(pending())
    }

    fn release(self: Box<Self>) -> BoxFuture<'static, Result<(), ReleaseError>> {
        Box::pin(ready(Ok(())))
    }

    fn starts(&self) -> Option<Starts> {
        Some(Starts {
            path: self.path.clone(),
            count: self.admission.starts(),
            limit: limit(&self.path),
            window: WINDOW.as_millis().try_into().unwrap_or(u64::MAX),
        })
    }
}
