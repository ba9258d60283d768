//! Additions to one counter, and ids from blocks.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use lockkeeper::{Counter, IdBlocks};

use super::{report, timed};
use crate::Outcome;
use crate::fixture::Fixture;
use crate::measurements::{Lap, now};
use crate::report::Report;
use crate::run::Worker;

/// The tasks of a session share a counter, as those of a process do.
pub(super) async fn run(fixture: &Fixture<'_>) -> Outcome<Report> {
    let sessions = fixture.arguments.size("s")?;
    let mut counters = Vec::new();
    for number in 0..sessions {
        counters.push(Counter::new(fixture.manager(number)?, fixture.path("count"))?);
    }
    let added = Arc::new(AtomicI64::new(0));
    let workers = counters.iter().cycle().zip(0..fixture.arguments.size("w")?);
    let workers = workers.map(|(counter, _)| Adder { counter: counter.clone(), added: Arc::clone(&added) });
    let measured = timed(fixture, workers.collect()).await?;
    let counter = counters.first().ok_or("no session")?;
    // An addition that was in progress at the end may count.
    let surplus = counter.get().await? - added.load(Ordering::Acquire);
    let in_progress = i64::try_from(fixture.arguments.size("w")?)?;
    let violations = u64::from(!(0..=in_progress).contains(&surplus));
    let mut report = report(fixture, measured, violations);
    report.set("ids_s", ids(fixture).await?);
    Ok(report)
}

/// The ids of a block. For how long ids are drawn, and how many between two looks at the clock.
const BLOCK: u32 = 100_000;
const DRAWING: Duration = Duration::from_millis(200);
const DRAWS: u32 = 1_000;

/// The ids from blocks that one task draws in a second.
async fn ids(fixture: &Fixture<'_>) -> Outcome<f64> {
    let ids = IdBlocks::new(fixture.manager(0)?, fixture.path("ids"), BLOCK)?;
    let (begun, mut drawn, mut last) = (now(), 0.0, 0);
    while begun.elapsed() < DRAWING {
        for _ in 0..DRAWS {
            let id = ids.next().await?;
            if id <= last {
                return Err(format!("{id} was drawn after {last}").into());
            }
            last = id;
        }
        drawn += f64::from(DRAWS);
    }
    Ok(drawn / begun.elapsed().as_secs_f64())
}

struct Adder {
    counter: Counter,
    added: Arc<AtomicI64>,
}

impl Worker for Adder {
    async fn lap(&mut self) -> Outcome<Lap> {
        let asked = now();
        self.counter.increment().await?;
        self.added.fetch_add(1, Ordering::AcqRel);
        Ok(Lap { acquire: asked.elapsed(), ..Lap::default() })
    }
}
