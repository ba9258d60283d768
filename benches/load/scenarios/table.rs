//! Updates of the entries of a table, and reads of its view.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lockkeeper::Table;
use lockkeeper::table::TableView;

use super::{report, timed};
use crate::Outcome;
use crate::fixture::Fixture;
use crate::measurements::{Lap, now};
use crate::report::Report;
use crate::run::Worker;

/// For how long entries are read, and how many reads are between two looks at the clock.
const READING: Duration = Duration::from_millis(500);
const READS: usize = 10_000;

/// Each worker has a handle of its own, as each process does, and updates one entry after the other. No two
/// workers update one entry at the same time.
pub(super) async fn run(fixture: &Fixture<'_>) -> Outcome<Report> {
    let (entries, workers) = (fixture.arguments.size("k")?, fixture.arguments.size("w")?);
    if entries < workers {
        return Err("k has to be w or more: each worker has entries of its own".into());
    }
    let path = fixture.path("table");
    let first = Table::new(fixture.manager(0)?, path.as_str())?;
    for number in 0..entries {
        let _ = first.insert(&key(number), 0_u64).await?;
    }
    let view = first.view()?;
    view.ready().await?;
    let added = Arc::new(AtomicU64::new(0));
    let mut updaters = Vec::new();
    for number in 0..workers {
        let table = Table::new(fixture.manager(number)?, path.as_str())?;
        let keys = (number..entries).step_by(workers).map(key).collect();
        updaters.push(Updater { table, keys, next: 0, added: Arc::clone(&added) });
    }
    let measured = timed(fixture, updaters).await?;
    // What the view shows at the end is every update that ended; others may have been in progress.
    let shown = view.sync().await?;
    let values: Vec<u64> = shown.iter().filter_map(|(_, value)| value.ok().copied()).collect();
    let sum: u64 = values.iter().sum();
    let surplus = sum.checked_sub(added.load(Ordering::Acquire));
    let is_exact = surplus.is_some_and(|surplus| surplus <= u64::try_from(workers).unwrap_or(u64::MAX));
    let mut report = report(fixture, measured, u64::from(!is_exact || values.len() != entries));
    report.set("entries", values.len());
    report.set("entry_reads_s", reads(&view, entries));
    Ok(report)
}

fn key(number: usize) -> String {
    format!("entry-{number:06}")
}

/// The reads of an entry of the view in a second, by one thread.
#[expect(clippy::cast_precision_loss, reason = "a figure for people to read")]
fn reads(view: &TableView<u64>, entries: usize) -> f64 {
    let keys: Vec<String> = (0..entries).map(key).collect();
    let (begun, mut count) = (now(), 0);
    while begun.elapsed() < READING {
        for key in keys.iter().cycle().take(READS) {
            count +=
                u64::from(std::hint::black_box(view.snapshot()).get(key).is_ok_and(|found| found.is_some()));
        }
    }
    count as f64 / begun.elapsed().as_secs_f64()
}

struct Updater {
    table: Table<u64>,
    keys: Vec<String>,
    next: usize,
    added: Arc<AtomicU64>,
}

impl Worker for Updater {
    async fn lap(&mut self) -> Outcome<Lap> {
        let key = self.keys.get(self.next).ok_or("no entry")?;
        self.next = (self.next + 1) % self.keys.len();
        let asked = now();
        self.table.update(key, |number| number.map(|number| number + 1)).await?;
        self.added.fetch_add(1, Ordering::AcqRel);
        Ok(Lap { acquire: asked.elapsed(), ..Lap::default() })
    }
}
