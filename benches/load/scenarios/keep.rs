//! Many locks that are held together: what each costs in memory.

use lockkeeper::Mutex;
use tokio::task::JoinSet;

use crate::Outcome;
use crate::counters::resident;
use crate::fixture::Fixture;
use crate::measurements::{Lap, Measurements, now};
use crate::report::Report;

/// This many are asked for at a time, so that the figures are those of keeping and not of asking.
const AT_A_TIME: usize = 100;

pub(super) async fn run(fixture: &Fixture<'_>) -> Outcome<Report> {
    let measurements = Measurements::new();
    let before = resident();
    let earlier = fixture.meters.read().await;
    let mut asking = JoinSet::new();
    let mut kept = Vec::new();
    for number in 0..fixture.arguments.size("k")? {
        let path = fixture.path(&format!("keep/{number}"));
        let mutex = Mutex::new(fixture.manager_for(number, &path)?, path)?;
        if asking.len() >= AT_A_TIME {
            kept.extend(asking.join_next().await.transpose()?.transpose()?);
        }
        asking.spawn(async move {
            let asked = now();
            let guard = mutex.acquire().await?;
            Outcome::Ok((guard, asked.elapsed()))
        });
    }
    while let Some(granted) = asking.join_next().await {
        kept.push(granted??);
    }
    let later = fixture.meters.read().await;
    let keeping = resident();
    let lost = kept.iter().filter(|(guard, _)| !guard.is_valid()).count();
    for (_, acquire) in &kept {
        measurements.add(Lap { acquire: *acquire, ..Lap::default() });
    }
    let cost = later.since(&earlier, &fixture.meters, kept.len() as u64);
    let mut report = Report::new(fixture.arguments, &measurements, cost, 0, lost);
    report.set("rss_before_kb", before);
    report.set("rss_keeping_kb", keeping);
    Ok(report)
}
