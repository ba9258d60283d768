//! Settings in a typed table: a fleet migrates them once, many processes change them, some processes are
//! killed, and a view shows them live.
//!
//! [`Migrations`] create the settings and raise their limits when the processes start: each step is done
//! once over the whole fleet. A [`Table`] changes a value by a function of the present one: each change is
//! applied once, whatever becomes of its answer.
//!
//! With `--naive` a process reads a setting and writes it back, without a condition: changes are lost.
//!
//! A change without an answer may be applied. So with `--kill`, as many lost changes as there are unknown
//! ones could hide behind these.
//!
//! `cargo run --example settings`, or `-- --kill`, or `-- --naive`, or `-- --connect host:port,…`

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, value_parser};
use lockkeeper::znodes::Version;
use lockkeeper::{Error, Migrations, Table};
use lockkeeper_demos::fixture::{Common, Example, Failure, Fixture, Verdict, Worker, patiently, play};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

/// Migrates settings once, and changes them in several processes, some of which are killed; nothing is lost,
/// and nothing is done twice.
#[derive(Debug, Parser)]
#[command(name = "settings")]
struct Settings {
    /// How many processes change settings
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = value_parser!(u32).range(2..=64))]
    processes: u32,

    /// How many processes are killed (kill -9) in the middle of a change; another one replaces each
    #[arg(long, value_name = "N", default_value_t = 0, default_missing_value = "2", num_args = 0..=1)]
    kill: u32,

    /// Read a setting and write it back, whatever was written in between
    #[arg(long)]
    naive: bool,

    /// For how long, in seconds
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = value_parser!(u64).range(1..=3_600))]
    seconds: u64,

    #[command(flatten)]
    common: Common,
}

/// The node of the table.
const SETTINGS: &str = "settings";

/// The node of the records of the migrations.
const MIGRATIONS: &str = "migrations";

const REGIONS: [&str; 3] = ["north", "south", "west"];

/// The limit behind both steps of the migration.
const LIMIT: u32 = 20;

/// What is set for one region.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Region {
    limit: u32,
    changes: u64,
}

/// What a process does.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum News {
    /// It has done so many steps of the migration.
    Migrated(usize),
    /// A change is about to be sent.
    Started,
    /// It has ended.
    Changed,
    /// It may be applied.
    Unknown,
}

/// What the processes have said.
#[derive(Clone, Copy, Debug, Default)]
struct Heard {
    steps: usize,
    changes: u64,
    /// Without a word about their end: they may be applied.
    unknown: u64,
}

fn main() -> ExitCode {
    play::<Settings>()
}

/// The steps that every process has. One creates the settings, the other doubles their limits.
fn migrations(worker: &Worker) -> Result<Migrations, Failure> {
    let table: Table<Region> = Table::new(worker.manager(), worker.path(SETTINGS)?)?;
    let path = worker.path(SETTINGS)?;
    let create = move |manager: lockkeeper::ConnectionManager| {
        let path = path.clone();
        async move {
            let region = Region { limit: LIMIT / 2, ..Region::default() };
            let data = serde_json::to_vec(&region).unwrap_or_default();
            let create = |txn: lockkeeper::Txn<'static>, name| {
                Ok::<_, Error>(txn.create(path.child(name)?, data.clone()))
            };
            REGIONS.into_iter().try_fold(manager.txn(), create)
        }
    };
    let double = move |manager: lockkeeper::ConnectionManager| {
        let table = table.clone();
        async move {
            let mut txn = manager.txn();
            for name in REGIONS {
                let path = table.path().child(name)?;
                if let (Some(entry), Some(stat)) =
                    (table.get(name).await?, manager.znodes().exists(&path).await?)
                {
                    let region = Region { limit: entry.value.limit * 2, ..entry.value };
                    txn = txn.set(path, serde_json::to_vec(&region).unwrap_or_default(), stat.version);
                }
            }
            Ok(txn)
        }
    };
    let migrations = Migrations::new(worker.manager(), worker.path(MIGRATIONS)?)?;
    Ok(migrations.step("create the regions", 1, create).step("double the limits", 1, double))
}

/// Reads a region, and writes it back.
async fn change_naively(table: &Table<Region>, name: &str) -> Result<News, Failure> {
    let entry = patiently(|| table.get(name)).await?;
    let region = entry.map(|entry| entry.value).unwrap_or_default();
    let region = Region { changes: region.changes + 1, ..region };
    let (path, data) = (table.path().child(name).map_err(Error::from)?, serde_json::to_vec(&region)?);
    table.manager().znodes().write(path, data, Version::Any).await?;
    Ok(News::Changed)
}

/// Changes a region. Repeated only if the change is not applied.
async fn change(table: &Table<Region>, region: &str) -> Result<News, Failure> {
    let add = |region: Option<&Region>| {
        let region = region.cloned().unwrap_or_default();
        Some(Region { changes: region.changes + 1, ..region })
    };
    match patiently(|| table.update(region, add)).await {
        Ok(_) => Ok(News::Changed),
        Err(error) if error.outcome_unknown() => Ok(News::Unknown),
        Err(error) => Err(error.into()),
    }
}

impl Settings {
    /// Hears the processes until the time is over, and kills some of them.
    async fn hear(&self, fixture: &mut Fixture<News>) -> Result<Heard, Failure> {
        let (all, begun) = (Duration::from_secs(self.seconds), Instant::now());
        let (mut heard, mut open) = (Heard::default(), BTreeMap::<u32, u64>::new());
        let mut killed = 0;
        while let Some((process, news)) = fixture.next().await? {
            match news {
                News::Migrated(steps) => {
                    heard.steps += steps;
                    println!("process {process} has done {steps} steps of the migration");
                }
                News::Started => _ = open.insert(process, 1),
                News::Changed => {
                    open.insert(process, 0);
                    heard.changes += 1;
                }
                News::Unknown => {
                    open.insert(process, 0);
                    heard.unknown += 1;
                }
            }
            let is_due = begun.elapsed() >= all * (killed + 1) / (self.kill + 1);
            if killed < self.kill && is_due && matches!(news, News::Started) {
                fixture.kill(process)?;
                killed += 1;
                println!("process {process} is killed in the middle of a change");
                fixture.start(1).await?;
            }
        }
        heard.unknown += open.values().sum::<u64>();
        Ok(heard)
    }
}

impl Example for Settings {
    type News = News;

    fn common(&self) -> &Common {
        &self.common
    }

    async fn work(&self, worker: &Worker) -> Result<(), Failure> {
        let begun = Instant::now();
        let done = migrations(worker)?.run().await?;
        worker.tell(&News::Migrated(done.steps.len()))?;
        let table: Table<Region> = Table::new(worker.manager(), worker.path(SETTINGS)?)?;
        while begun.elapsed() < Duration::from_secs(self.seconds) {
            let number = rand::random_range(0..REGIONS.len());
            let Some(region) = REGIONS.get(number) else { continue };
            worker.tell(&News::Started)?;
            let changed = match self.naive {
                true => change_naively(&table, region).await?,
                false => change(&table, region).await?,
            };
            worker.tell(&changed)?;
        }
        Ok(())
    }

    async fn lead(&self, fixture: &mut Fixture<News>) -> Result<Verdict, Failure> {
        fixture.set_up(SETTINGS, b"").await?;
        let table: Table<Region> = Table::new(fixture.manager(), fixture.path(SETTINGS)?)?;
        let view = table.view()?;
        view.ready().await?;
        fixture.start(self.processes).await?;
        println!("{} processes migrate the settings once, and change them", self.processes);

        let heard = self.hear(fixture).await?;
        fixture.close().await;
        let snapshot = patiently(|| view.sync()).await?;
        let (mut sum, mut is_migrated) = (0, true);
        for name in REGIONS {
            let region = snapshot.get(name).map_err(Error::from)?.cloned().unwrap_or_default();
            println!("{name:>6}: limit {}, {} changes", region.limit, region.changes);
            sum += region.changes;
            is_migrated &= region.limit == LIMIT;
        }
        let Heard { steps, changes, unknown } = heard;
        let lost = changes.saturating_sub(sum);
        let doubled = sum.saturating_sub(changes + unknown);
        let holds = lost == 0 && doubled == 0 && changes > 0 && is_migrated && steps <= 2;
        if unknown > 0 {
            println!(
                "{unknown} changes may be applied as well: their processes were killed, or got no answer"
            );
        }
        Ok(Verdict::of(holds, format!("changes={changes} steps={steps} lost={lost} doubled={doubled}")))
    }
}
