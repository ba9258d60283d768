//! Admissions of one rate limiter, and a check of every window.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use governor::{DefaultDirectRateLimiter, Quota};
use lockkeeper::{RateLimiter, TryAdmit};
use parking_lot::Mutex;
use tokio::task::{JoinSet, yield_now};

use super::{report, timed};
use crate::Outcome;
use crate::fixture::Fixture;
use crate::measurements::{Lap, now};
use crate::report::Report;
use crate::run::{Measured, Worker};

/// So many tries are made at once.
const TRIES: usize = 20;

pub(super) async fn run(fixture: &Fixture<'_>) -> Outcome<Report> {
    let arguments = fixture.arguments;
    let (limit, window) = (arguments.size("limit")?, Duration::from_millis(arguments.number("window")?));
    let starts = Arc::new(Starts::default());
    let is_ours = arguments.word("by") == "lockkeeper";
    let measured = if is_ours { ours(fixture, &starts).await? } else { governed(fixture, &starts).await? };
    let mut at = std::mem::take(&mut *starts.at.lock());
    at.sort_unstable();
    let above = windows_above(&at, limit, window);
    // A limiter with a burst promises no window.
    let mut report = report(fixture, measured, if is_ours { above } else { 0 });
    report.set("windows_above", above);
    report.set("used_pct", used_percent(&at, limit, window));
    report.set("stale", starts.stale.load(Ordering::Relaxed));
    if arguments.number("try")? > 0 {
        report.set("tries_admitted", tries_admitted(fixture).await?);
    }
    Ok(report)
}

async fn ours(fixture: &Fixture<'_>, starts: &Arc<Starts>) -> Outcome<Measured> {
    let arguments = fixture.arguments;
    let each_has_its_own = arguments.number("objects")? > 0;
    let mut shared = Vec::new();
    for number in 0..arguments.size("s")? {
        shared.push(limiter(fixture, number, "admit")?);
    }
    let mut workers = Vec::new();
    for (number, shared) in shared.iter().cycle().take(arguments.size("w")?).enumerate() {
        let own = if each_has_its_own { limiter(fixture, number, "admit")? } else { shared.clone() };
        workers.push(Caller { limiter: own, starts: Arc::clone(starts) });
    }
    timed(fixture, workers).await
}

/// The same load on a limiter in the memory of one process.
async fn governed(fixture: &Fixture<'_>, starts: &Arc<Starts>) -> Outcome<Measured> {
    let arguments = fixture.arguments;
    let limit = NonZeroU32::new(u32::try_from(arguments.number("limit")?)?).ok_or("limit=0")?;
    let each = Duration::from_millis(arguments.number("window")?) / limit.get();
    let quota = Quota::with_period(each.max(Duration::from_nanos(1))).ok_or("no period")?.allow_burst(limit);
    let limiter = Arc::new(DefaultDirectRateLimiter::direct(quota));
    let worker = |_| Governed { limiter: Arc::clone(&limiter), starts: Arc::clone(starts) };
    timed(fixture, (0..arguments.size("w")?).map(worker).collect()).await
}

struct Governed {
    limiter: Arc<DefaultDirectRateLimiter>,
    starts: Arc<Starts>,
}

impl Worker for Governed {
    async fn lap(&mut self) -> Outcome<Lap> {
        yield_now().await;
        let asked = now();
        self.limiter.until_ready().await;
        let admitted = now();
        self.starts.at.lock().push(admitted);
        Ok(Lap { acquire: admitted - asked, ..Lap::default() })
    }
}

/// A new object for the limiter of this name.
fn limiter(fixture: &Fixture<'_>, number: usize, name: &str) -> Outcome<RateLimiter> {
    let arguments = fixture.arguments;
    let number_of = |key| -> Outcome<u32> { Ok(u32::try_from(arguments.number(key)?)?) };
    let window = Duration::from_millis(arguments.number("window")?);
    let limiter =
        RateLimiter::new(fixture.manager(number)?, fixture.path(name), number_of("limit")?, window)?;
    let limiter = limiter.with_ahead(number_of("ahead")?);
    Ok(match arguments.number("grace")? {
        0 => limiter,
        grace => limiter.with_grace(Duration::from_millis(grace)),
    })
}

/// How many of some tries at once an unused limiter admits.
async fn tries_admitted(fixture: &Fixture<'_>) -> Outcome<usize> {
    let mut tries = JoinSet::new();
    for number in 0..TRIES {
        let limiter = limiter(fixture, number, "try")?;
        tries.spawn(async move { limiter.try_admit().await });
    }
    let mut admitted = 0;
    while let Some(tried) = tries.join_next().await {
        admitted += usize::from(matches!(tried??, TryAdmit::Admitted(_)));
    }
    Ok(admitted)
}

/// What all callers started, by one clock.
#[derive(Debug, Default)]
struct Starts {
    at: Mutex<Vec<Instant>>,
    stale: AtomicU64,
}

struct Caller {
    limiter: RateLimiter,
    starts: Arc<Starts>,
}

impl Worker for Caller {
    async fn lap(&mut self) -> Outcome<Lap> {
        // A start that was taken ahead waits for nothing.
        yield_now().await;
        let asked = now();
        let admission = self.limiter.admit().await?;
        let admitted = now();
        // The caller may start at every instant after the answer at which the admission is fresh: it is
        // fresh at an instant before the check.
        if admission.is_fresh() {
            self.starts.at.lock().push(admitted);
        } else {
            self.starts.stale.fetch_add(1, Ordering::Relaxed);
        }
        Ok(Lap { acquire: admitted - asked, ..Lap::default() })
    }
}

/// The windows with more starts than the limit: one for each start that is less than a window after the one
/// whose room it took. `at` is in order.
fn windows_above(at: &[Instant], limit: usize, window: Duration) -> u64 {
    at.iter().zip(at.iter().skip(limit)).filter(|(first, last)| **last - **first < window).count() as u64
}

/// The part of the limit that was used: how long the last start comes after the first one, beside how early
/// it may come. Whole windows count, so that it does not matter when the load ends. `None` if there are none.
#[expect(clippy::cast_precision_loss, reason = "a figure for people to read")]
fn used_percent(at: &[Instant], limit: usize, window: Duration) -> Option<f64> {
    let windows = at.len().checked_sub(1)?.checked_div(limit).filter(|windows| *windows > 0)?;
    let (first, last) = (at.first()?, at.get(windows * limit)?);
    let earliest = windows as f64 * window.as_secs_f64();
    Some((earliest * 1_000.0 / (*last - *first).as_secs_f64()).round() / 10.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: &[u64]) -> Vec<Instant> {
        let begun = now();
        millis.iter().map(|millis| begun + Duration::from_millis(*millis)).collect()
    }

    #[test]
    fn a_window_with_one_start_more_than_the_limit_is_found() {
        let window = Duration::from_millis(100);
        let above = |millis: &[u64]| windows_above(&at(millis), 2, window);
        assert_eq!(above(&[0, 0, 100, 100, 200]), 0);
        assert_eq!(above(&[0, 0, 99, 100]), 1);
        assert_eq!(above(&[0, 50, 99, 149, 199]), 2);
        assert_eq!(above(&[0]), 0);
    }

    #[test]
    fn all_of_the_limit_is_used_if_the_starts_come_as_early_as_they_may() {
        let used = |millis: &[u64]| used_percent(&at(millis), 2, Duration::from_millis(100));
        assert_eq!(used(&[0, 0, 100, 100, 200, 200, 300]), Some(100.0));
        assert_eq!(used(&[0, 50, 100, 150, 250]), Some(80.0));
        assert_eq!(used(&[0, 0, 200, 200, 400, 500]), Some(50.0));
        assert_eq!(used(&[0, 0]), None);
    }
}
