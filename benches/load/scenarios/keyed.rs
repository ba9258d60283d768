//! Limiters of many keys: what the first admission of each costs, and what stays of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lockkeeper::KeyedRateLimiter;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::Outcome;
use crate::counters::resident;
use crate::fixture::Fixture;
use crate::measurements::{Lap, Measurements, now};
use crate::report::Report;

/// How long the nodes of keys that are not used any more may take to go.
const PATIENCE: Duration = Duration::from_secs(120);

/// Between two looks at what is left.
const EVERY: Duration = Duration::from_millis(200);

pub(super) async fn run(fixture: &Fixture<'_>) -> Outcome<Report> {
    let arguments = fixture.arguments;
    let (keys, path) = (arguments.number("k")?, fixture.path("keyed"));
    let limit = u32::try_from(arguments.number("limit")?)?;
    let window = Duration::from_millis(arguments.number("window")?);
    let (measurements, next) = (Arc::new(Measurements::new()), Arc::new(AtomicU64::new(0)));
    let before = resident();
    let earlier = fixture.meters.read().await;
    let mut workers = JoinSet::new();
    for number in 0..arguments.size("w")? {
        let limiters = KeyedRateLimiter::new(fixture.manager(number)?, &path, limit, window)?;
        let (measurements, next) = (Arc::clone(&measurements), Arc::clone(&next));
        workers.spawn(async move {
            loop {
                let key = next.fetch_add(1, Ordering::Relaxed);
                if key >= keys {
                    return Outcome::Ok(());
                }
                let asked = now();
                let _ = limiters.of(&key.to_string())?.admit().await?;
                measurements.add(Lap { acquire: asked.elapsed(), ..Lap::default() });
            }
        });
    }
    while let Some(worker) = workers.join_next().await {
        worker??;
    }
    let later = fixture.meters.read().await;
    let with_keys = resident();
    let znodes = fixture.manager(0)?.znodes();
    let left = async || Outcome::Ok(znodes.children(&path).await?.unwrap_or_default().len());
    let nodes = left().await?;
    let gone = timeout(PATIENCE, async {
        while left().await? > 0 {
            sleep(EVERY).await;
        }
        Outcome::Ok(())
    });
    let stuck = match gone.await {
        Ok(gone) => gone.map(|()| 0)?,
        Err(_) => left().await?,
    };
    let cost = later.since(&earlier, &fixture.meters, keys);
    let mut report = Report::new(arguments, &measurements, cost, 0, stuck);
    report.set("nodes", nodes);
    report.set("rss_before_kb", before);
    report.set("rss_keeping_kb", with_keys);
    Ok(report)
}
