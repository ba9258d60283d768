use std::time::Duration;

use futures::future::BoxFuture;
use lockkeeper::{Admission, BootInstant, Error, RateLimiter, ReleaseError};

use super::{Claim, Hold, Kind, Site, Starts, Way};

/// So many starts in any window: one of the first path, two of the second.
fn limit(path: &str) -> usize {
    if path.ends_with('0') { 1 } else { 2 }
}

const WINDOW: Duration = Duration::from_millis(1_500);
/// Messages may be long under way.
const GRACE: Duration = Duration::from_millis(700);
/// A start makes room for the next one when its window and its grace are over, and that is looked up then.
const TIME_PER_TURN: u64 = 2_250;

/// [`RateLimiter`], one start.
pub(super) struct One;

/// [`RateLimiter`], one start to all of them.
pub(super) struct Many;

impl Kind for One {
    fn take(&self, site: Site, way: Way) -> BoxFuture<'static, Result<Option<Box<dyn Hold>>, Error>> {
        Box::pin(take(site, way, 1))
    }

    fn time_per_turn(&self) -> u64 {
        TIME_PER_TURN
    }
}

impl Kind for Many {
    fn take(&self, mut site: Site, way: Way) -> BoxFuture<'static, Result<Option<Box<dyn Hold>>, Error>> {
        let starts = site.rng.index(limit(&site.path)) + 1;
        Box::pin(take(site, way, starts))
    }

    fn time_per_turn(&self) -> u64 {
        TIME_PER_TURN
    }
}

async fn take(site: Site, way: Way, starts: usize) -> Result<Option<Box<dyn Hold>>, Error> {
    let starts_max = limit(&site.path);
    let limiter = RateLimiter::new(&site.manager, site.path.as_str(), starts_max, WINDOW)?.grace(GRACE);
    loop {
        let admission = match way {
            Way::Wait => Some(limiter.admit_many(starts).await?),
            Way::WaitAtMost(limit) => Some(limiter.admit_timeout(limit).await?),
            Way::Try => limiter.try_admit().await?,
        };
        let Some(admission) = admission else { return Ok(None) };
        // Right before the start. A process may have stood still meanwhile.
        if admission.is_fresh() {
            return Ok(Some(Box::new(Started { admission, path: site.path })));
        }
    }
}

/// What was started.
#[derive(Debug)]
struct Started {
    admission: Admission,
    path: String,
}

impl Hold for Started {
    fn claims(&self) -> Vec<Claim> {
        Vec::new()
    }

    fn starts(&self) -> Option<Starts> {
        let window = WINDOW.as_millis().try_into().unwrap();
        Some(Starts {
            path: self.path.clone(),
            count: self.admission.permits(),
            limit: limit(&self.path),
            window,
        })
    }

    fn is_valid(&self) -> bool {
        self.admission.is_fresh()
    }

    fn valid_until(&self) -> BootInstant {
        self.admission.fresh_until()
    }

    fn lost(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::pending())
    }

    fn release(self: Box<Self>) -> BoxFuture<'static, Result<(), ReleaseError>> {
        Box::pin(std::future::ready(Ok(())))
    }
}
