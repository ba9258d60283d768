//! One scale for every wait of the harness and of the tests.
//!
//! No wait here is a blind sleep: it polls a condition and has a limit. On a slow machine
//! one number makes all of them longer, and on a busy one the limits follow its load.

use std::pin::pin;
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use crate::error::HarnessError;

/// The time between two checks of a condition. Short, as most conditions become true within a few
/// milliseconds.
const POLL: Duration = Duration::from_millis(10);

/// The limits of all waits, times the factor in `LOCKKEEPER_TEST_TIMING` (default 1).
///
/// A limit is how long to wait before calling it a failure, not how long things take: a larger factor makes a
/// passing test no slower. Real processes know nothing of a paused tokio clock: do not pause it in a test
/// that has some.
#[derive(Clone, Copy, Debug)]
pub struct Timing;

impl Timing {
    /// A limit of `base`, scaled.
    #[must_use]
    pub fn scaled(base: Duration) -> Duration {
        static FACTOR: OnceLock<f64> = OnceLock::new();
        let factor = *FACTOR.get_or_init(|| {
            env::var("LOCKKEEPER_TEST_TIMING")
                .ok()
                .and_then(|text| text.trim().parse::<f64>().ok())
                .filter(|factor| factor.is_finite() && *factor > 0.0)
                .unwrap_or(1.0)
        });
        base.mul_f64(factor)
    }

    /// A limit of `base`, scaled, and as many times longer as more wants to run now than the machine has
    /// cores.
    #[must_use]
    pub fn under_load(base: Duration) -> Duration {
        Self::scaled(base).mul_f64(load())
    }

    /// For servers to start and to agree on a leader: 90 s. Three start in 1.4 s on an idle machine, and
    /// took more than 30 s where eighteen started beside busy builds on two cores.
    #[must_use]
    pub fn settle() -> Duration {
        Self::scaled(Duration::from_secs(90))
    }

    /// For a signal to show in a process: 10 s on an idle machine.
    #[must_use]
    pub fn signal() -> Duration {
        Self::under_load(Duration::from_secs(10))
    }

    /// For one question to a server to be answered: 3 s. Short, as servers that are paused are asked, too.
    #[must_use]
    pub fn answer() -> Duration {
        Self::scaled(Duration::from_secs(3))
    }

    /// For a server to forget a session, or a fault to strike: 20 s on an idle machine.
    #[must_use]
    pub fn event() -> Duration {
        Self::under_load(Duration::from_secs(20))
    }
}

/// How many threads want to run for each core, by `/proc/loadavg`: at least 1, and 1 where there is no such
/// file.
fn load() -> f64 {
    let cores = thread::available_parallelism().map_or(1.0, |cores| cores.get() as f64);
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let mut fields = text.split_whitespace();
    let last_minute = fields.next().and_then(|field| field.parse::<f64>().ok());
    // Between them is the time of the longer averages; this one is "running/all".
    let now = fields.nth(2).and_then(|field| field.split('/').next()?.parse::<f64>().ok());
    last_minute.into_iter().chain(now).map(|wanting| wanting / cores).fold(1.0, f64::max)
}

/// Polls `check` until it yields a value; `what` completes a sentence after "until".
///
/// # Errors
///
/// [`HarnessError::Timeout`] when `limit` has passed; `limit` is taken as it is, so scale it with [`Timing`].
///
/// # Examples
///
/// ```
/// # use lockkeeper_tests::{Timing, eventually};
/// # async fn example() -> Result<(), lockkeeper_tests::HarnessError> {
/// let mut checks = 0;
/// let seen = eventually("a third check", Timing::answer(), || {
///     checks += 1;
///     let now = checks;
///     async move { (now == 3).then_some(now) }
/// })
/// .await?;
/// assert_eq!(seen, 3);
/// # Ok(())
/// # }
/// # tokio::runtime::Runtime::new().unwrap().block_on(example()).unwrap();
/// ```
pub async fn eventually<T, F, Look>(
    what: impl Into<String>,
    limit: Duration,
    check: F,
) -> Result<T, HarnessError>
where
    F: FnMut() -> Look,
    Look: Future<Output = Option<T>>,
{
    eventually_with_pause(what, limit, POLL, check).await
}

/// As [`eventually`], with `pause` between two checks: for one that asks servers for much.
///
/// # Errors
///
/// [`HarnessError::Timeout`] when `limit` has passed.
#[expect(clippy::disallowed_methods, reason = "a stopwatch for real processes, which follow no paused clock")]
pub async fn eventually_with_pause<T, F, Look>(
    what: impl Into<String>,
    limit: Duration,
    pause: Duration,
    mut check: F,
) -> Result<T, HarnessError>
where
    F: FnMut() -> Look,
    Look: Future<Output = Option<T>>,
{
    let begun = Instant::now();
    loop {
        if let Some(value) = check().await {
            return Ok(value);
        }
        if begun.elapsed() >= limit {
            return Err(HarnessError::Timeout { what: what.into(), limit });
        }
        tokio::time::sleep(pause).await;
    }
}

/// Bounds `work` by `limit`; `what` completes a sentence after "until".
pub(crate) async fn within<T>(
    what: impl Into<String>,
    limit: Duration,
    work: impl Future<Output = T>,
) -> Result<T, HarnessError> {
    bounded(limit, work).await.ok_or_else(|| HarnessError::Timeout { what: what.into(), limit })
}

/// A machine that is suspended for a while uses up one part of a limit, however long that lasts.
const PARTS: u32 = 40;

/// The output of `work`, or `None` when `limit` has passed. The time in which this process could not run
/// counts little.
pub async fn bounded<T>(limit: Duration, work: impl Future<Output = T>) -> Option<T> {
    let mut work = pin!(work);
    for _ in 0..PARTS {
        if let Ok(output) = tokio::time::timeout(limit / PARTS, work.as_mut()).await {
            return Some(output);
        }
    }
    None
}
