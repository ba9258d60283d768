//! Several processes wait for every night, and exactly one makes the report of that night.
//!
//! A [`Schedule`] gives each night to one process. Its writes are fenced in both possible ways: the report
//! and the record of the night go into ZooKeeper by one transaction, `slot.done_with(…)`, and a copy goes to
//! an archive that knows nothing of ZooKeeper but refuses a fencing token smaller than one it has seen.
//!
//! In some nights the process that makes the report is stopped (SIGSTOP) for longer than its session lives.
//! Another one makes the report; the first one wakes up and writes its results, too late. `--no-fence` has
//! the archive take them.
//!
//! `cargo run --example nightly_report`, or `-- --no-fence`, or `-- --connect host:port,…`

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use clap::{Parser, value_parser};
use lockkeeper::schedule::Missed;
use lockkeeper::{Error, Schedule};
use lockkeeper_demos::fixture::{Common, Example, Failure, Fixture, Verdict, Worker, patiently, play};
use serde::{Deserialize, Serialize};

/// Makes the report of every night in exactly one of several processes, one of which is paused for too long.
#[derive(Debug, Parser)]
#[command(name = "nightly_report")]
struct NightlyReport {
    /// How many processes wait for every night
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = value_parser!(u32).range(2..=64))]
    processes: u32,

    /// How many nights there are; in every third one, the second first, the process at work is paused
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = value_parser!(u32).range(1..=365))]
    nights: u32,

    /// How long a night lasts, in milliseconds
    #[arg(
        long,
        value_name = "MS",
        default_value_t = 300,
        value_parser = value_parser!(u64).range(10..=86_400_000)
    )]
    interval: u64,

    /// Have the archive take every report, whatever its token, to see what the token is good for
    #[arg(long)]
    no_fence: bool,

    #[command(flatten)]
    common: Common,
}

/// The messages of a process to the leading one, which is also the archive. A night is named by its begin.
#[derive(Debug, Serialize, Deserialize)]
enum News {
    /// It makes the report of this night, and waits for the line to continue.
    Begins { night: u64 },
    /// The copy for the archive, which says whether it took it.
    Copy { night: u64, token: u64 },
    /// The report and the record of the night are in ZooKeeper.
    Done { night: u64 },
    /// They were refused: it had lost the slot.
    Refused,
}

/// The archive: a resource outside ZooKeeper. It keeps, for every night, the token the report was written
/// under.
#[derive(Debug, Default)]
struct Archive {
    takes_all: bool,
    newest: u64,
    reports: BTreeMap<u64, u64>,
    refused: usize,
}

/// What the leading process has seen.
#[derive(Debug, Default)]
struct Seen {
    archive: Archive,
    /// The processes that make a report, each with its night.
    at_work: BTreeMap<u32, u64>,
    /// How often each night was done.
    done: BTreeMap<u64, u32>,
    /// The paused process.
    paused: Option<(u32, u64)>,
    pauses: usize,
    refused: usize,
}

fn main() -> ExitCode {
    play::<NightlyReport>()
}

impl Archive {
    /// Takes the report, unless it was written under an earlier hold than one it has seen.
    fn file(&mut self, night: u64, token: u64) -> bool {
        if token < self.newest && !self.takes_all {
            self.refused += 1;
            return false;
        }
        self.newest = self.newest.max(token);
        self.reports.insert(night, token);
        true
    }
}

/// One night, as a process sees it.
async fn report(worker: &Worker, schedule: &Schedule) -> Result<(), Failure> {
    let slot = schedule.due().await?;
    let since = slot.begins().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let night = u64::try_from(since.as_millis()).unwrap_or_default();
    worker.tell(&News::Begins { night })?;
    let _go_on: bool = worker.hear().await?;

    // An hour may have passed since the last line, and no check here could know of the next one. So it does
    // not ask whether it still has the slot: both writes say under which hold they are.
    let token = slot.fencing_token().as_u64();
    worker.tell(&News::Copy { night, token })?;
    let _was_taken: bool = worker.hear().await?;
    let report = worker.path(&format!("reports/{night}"))?;
    let done = slot.done_with("reported", |txn| txn.create(report, token.to_string())).await;
    let news = match done {
        Ok(()) => News::Done { night },
        Err(error) if error.is_lost() => News::Refused,
        // The record tells what became of it: if the night is not done, it is due again.
        Err(error) if error.outcome_unknown() => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    worker.tell(&news)
}

impl NightlyReport {
    fn schedule(&self, manager: &lockkeeper::ConnectionManager, path: &str) -> Result<Schedule, Error> {
        let schedule = Schedule::new(manager, path, Duration::from_millis(self.interval))?;
        // No night is left out, however late.
        Ok(schedule.with_missed(Missed::CatchUp))
    }

    async fn play(&self, fixture: &mut Fixture<News>, seen: &mut Seen) -> Result<(), Failure> {
        let is_over = |seen: &Seen| {
            let late = seen.pauses.saturating_sub(seen.refused);
            // The next process may say that its night is done before this one does.
            let newest = seen.done.keys().last().copied().unwrap_or_default();
            let is_told = seen.at_work.values().all(|night| *night > newest);
            seen.done.len() >= self.nights as usize && seen.paused.is_none() && late == 0 && is_told
        };
        while !is_over(seen) {
            let Some((process, news)) = fixture.next().await? else { break };
            match news {
                News::Begins { night } => {
                    seen.at_work.insert(process, night);
                    // The second night, the fifth, …
                    let (done, is_first) = (seen.done.len(), seen.pauses <= seen.done.len() / 3);
                    let is_bad = done % 3 == 1 && done < self.nights as usize;
                    if is_bad && is_first && seen.paused.is_none() {
                        seen.paused = Some((process, night));
                        seen.pauses += 1;
                        fixture.pause(process)?;
                        println!(
                            "night {night}: process {process} makes the report, and is paused (SIGSTOP)"
                        );
                    } else {
                        println!("night {night}: process {process} makes the report");
                    }
                    fixture.tell(process, &true).await;
                }
                News::Copy { night, token } => {
                    let taken = seen.archive.file(night, token);
                    let takes = if taken { "takes" } else { "REFUSES" };
                    println!("night {night}: the archive {takes} a copy of process {process}");
                    fixture.tell(process, &taken).await;
                }
                News::Done { night } => {
                    seen.at_work.remove(&process);
                    *seen.done.entry(night).or_default() += 1;
                    if let Some((paused, _)) = seen.paused.take_if(|(_, of)| *of == night) {
                        println!("night {night}: process {paused} wakes up");
                        fixture.resume(paused)?;
                    }
                }
                News::Refused => {
                    seen.at_work.remove(&process);
                    seen.refused += 1;
                    println!("ZooKeeper REFUSES the report of process {process}");
                }
            }
        }
        Ok(())
    }
}

impl Example for NightlyReport {
    type News = News;

    /// A process that is stopped for longer than this has lost its slot.
    const SESSION: Duration = Duration::from_secs(1);

    fn common(&self) -> &Common {
        &self.common
    }

    async fn work(&self, worker: &Worker) -> Result<(), Failure> {
        let schedule = self.schedule(worker.manager(), worker.path("schedule")?.as_str())?;
        loop {
            patiently(|| report(worker, &schedule)).await?;
        }
    }

    async fn lead(&self, fixture: &mut Fixture<News>) -> Result<Verdict, Failure> {
        fixture.set_up("reports", b"").await?;
        fixture.start(self.processes).await?;
        let mut seen =
            Seen { archive: Archive { takes_all: self.no_fence, ..Archive::default() }, ..Seen::default() };
        self.play(fixture, &mut seen).await?;
        let schedule = self.schedule(fixture.manager(), fixture.path("schedule")?.as_str())?;
        println!("{}", schedule.inspect().await?);

        // The copy in the archive is that of the run which made the report.
        let nights: Vec<(u64, u32)> = seen.done.iter().map(|(night, times)| (*night, *times)).collect();
        let mut once = 0;
        for (night, times) in &nights {
            let written = fixture.read(&format!("reports/{night}")).await?;
            let copy = seen.archive.reports.get(night).map(|token| token.to_string().into_bytes());
            once += usize::from(*times == 1 && copy == Some(written));
        }
        let is_gapless = nights.windows(2).all(|pair| match pair {
            [(one, _), (next, _)] => next - one == self.interval,
            _ => false,
        });
        let (late, refused) = (seen.archive.refused, seen.refused);
        Ok(Verdict::of(
            once == nights.len() && is_gapless && late >= seen.pauses && refused == seen.pauses,
            format!(
                "{once} of {} nights reported exactly once; {} paused, \
                 {late} late copies and {refused} late reports refused",
                nights.len(),
                seen.pauses,
            ),
        ))
    }
}
