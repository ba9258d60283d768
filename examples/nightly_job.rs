//! Several processes wake up every night, and exactly one runs the job of that night.
//!
//! The holder of the [`Mutex`] checks whether the night's mark exists, and if not, runs the job. Its writes are
//! fenced in both possible ways: the mark goes into ZooKeeper by `guard.txn()`, and the report to an archive that
//! knows nothing of ZooKeeper but refuses a fencing token smaller than one it has seen.
//!
//! In some nights the process that runs the job is stopped (SIGSTOP) for longer than its session lives. Another one
//! runs the job; the first one wakes up and writes its results, too late. `--no-fence` has the archive take them.
//!
//! `cargo run --example nightly_job`, or `-- --no-fence`, or `-- --connect host:port,…`

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, value_parser};
use lockkeeper::Mutex;
use lockkeeper_examples::fixture::{Common, Example, Failure, Fixture, Verdict, Worker, patiently, play};
use serde::{Deserialize, Serialize};

/// Runs the job of every night in exactly one of several processes, one of which is paused for too long.
#[derive(Debug, Parser)]
#[command(name = "nightly_job")]
struct NightlyJob {
    /// How many processes wake up every night
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = value_parser!(u32).range(2..=64))]
    processes: u32,

    /// How many nights there are; in every third one, the second first, the process at work is paused
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = value_parser!(u32).range(1..=365))]
    nights: u32,

    /// Have the archive take every report, whatever its token, to see what the token is good for
    #[arg(long)]
    no_fence: bool,

    #[command(flatten)]
    common: Common,
}

/// The messages of a process to the leading one, which is also the archive.
#[derive(Debug, Serialize, Deserialize)]
enum News {
    /// It runs the job, and waits for the line to continue.
    Runs,
    /// The report for the archive, which says whether it took it.
    Report { token: u64 },
    /// Its mark exists: the night is done.
    Marked,
    /// Its mark was refused: it had lost the lock.
    MarkRefused,
    /// It will do nothing more this night.
    Sleeps,
}

/// The archive: a resource outside ZooKeeper. It keeps, for every night, the token the report was written under.
#[derive(Debug, Default)]
struct Archive {
    takes_all: bool,
    newest: u64,
    reports: BTreeMap<u32, u64>,
    refused: u32,
}

fn main() -> ExitCode {
    play::<NightlyJob>()
}

impl Archive {
    /// Takes the report, unless it was written under an earlier hold than one it has seen.
    fn file(&mut self, night: u32, token: u64) -> bool {
        if token < self.newest && !self.takes_all {
            self.refused += 1;
            return false;
        }
        self.newest = self.newest.max(token);
        self.reports.insert(night, token);
        true
    }
}

impl NightlyJob {
    /// Runs the job of this night, unless it is done.
    async fn run(&self, worker: &Worker, night: u32) -> Result<(), Failure> {
        let mutex = Mutex::new(worker.manager(), worker.path("lock")?)?;
        let mark = worker.path(&mark(night))?;

        let guard = mutex.acquire().await?;
        if worker.znodes().read(&mark).await?.is_none() {
            worker.tell(&News::Runs)?;
            let _go_on: bool = worker.hear().await?;

            // An hour may have passed since the last line, and no check here could know of the next one. So it does not
            // ask whether it still holds the lock: both writes say under which hold they are.
            let token = guard.fencing_token().as_u64();
            worker.tell(&News::Report { token })?;
            let _was_taken: bool = worker.hear().await?;
            let marked = guard.txn().create(mark, token.to_string().into_bytes()).commit().await;
            if marked.as_ref().is_err_and(|error| error.is_lost()) {
                worker.tell(&News::MarkRefused)?;
            }
            marked?;
            worker.tell(&News::Marked)?;
        }
        // The night is done even if the release fails: lockkeeper continues to delete the node.
        let _ = guard.release().await;
        Ok(())
    }

    /// One night; how many marks were made, and how many refused.
    async fn night(
        &self,
        fixture: &mut Fixture<News>,
        night: u32,
        archive: &mut Archive,
    ) -> Result<(u32, u32), Failure> {
        fixture.tell_all(&night).await;
        let is_bad = self.is_bad(night);
        let (mut awake, mut paused, mut marked, mut refused) = (self.processes, None, 0, 0);
        while awake > 0 {
            let Some((process, news)) = fixture.next().await? else { break };
            match news {
                News::Runs => {
                    if is_bad && paused.is_none() {
                        paused = Some(process);
                        fixture.pause(process)?;
                        println!("night {night}: process {process} runs the job, and is paused (SIGSTOP)");
                    } else {
                        println!("night {night}: process {process} runs the job");
                    }
                    fixture.tell(process, &true).await;
                }
                News::Report { token } => {
                    let taken = archive.file(night, token);
                    println!(
                        "night {night}: the archive {} a report of process {process}",
                        if taken { "takes" } else { "REFUSES" }
                    );
                    fixture.tell(process, &taken).await;
                }
                News::Marked => marked += 1,
                News::MarkRefused => {
                    refused += 1;
                    println!("night {night}: ZooKeeper REFUSES the mark of process {process}");
                }
                News::Sleeps => {
                    awake -= 1;
                    if let (Some(process), 1) = (paused, awake) {
                        println!("night {night}: process {process} wakes up");
                        fixture.resume(process)?;
                    }
                }
            }
        }
        Ok((marked, refused))
    }

    /// Whether the process at work is paused this night.
    fn is_bad(&self, night: u32) -> bool {
        night % 3 == 2
    }
}

impl Example for NightlyJob {
    type News = News;

    /// A process that is stopped for longer than this has lost the lock.
    const SESSION: Duration = Duration::from_secs(1);

    fn common(&self) -> &Common {
        &self.common
    }

    async fn work(&self, worker: &Worker) -> Result<(), Failure> {
        loop {
            let night: u32 = worker.hear().await?;
            patiently(|| self.run(worker, night)).await?;
            worker.tell(&News::Sleeps)?;
        }
    }

    async fn lead(&self, fixture: &mut Fixture<News>) -> Result<Verdict, Failure> {
        fixture.set_up("nights", b"").await?;
        fixture.start(self.processes).await?;
        let mut archive = Archive { takes_all: self.no_fence, ..Archive::default() };
        let (mut once, mut marks_refused) = (0, 0);
        for night in 1..=self.nights {
            let (marked, refused) = self.night(fixture, night, &mut archive).await?;
            marks_refused += refused;
            // The report in the archive is that of the run which made the mark.
            let mark = String::from_utf8_lossy(&fixture.read(&mark(night)).await?).into_owned();
            let is_whole = archive.reports.get(&night).is_some_and(|token| token.to_string() == mark);
            once += u32::from(marked == 1 && is_whole);
        }
        let bad = (1..=self.nights).filter(|night| self.is_bad(*night)).count();
        let late = archive.refused + marks_refused;
        Ok(Verdict::of(
            once == self.nights && late as usize >= 2 * bad,
            format!(
                "{once} of {} nights run exactly once; {bad} paused, {} late reports and {marks_refused} late marks refused",
                self.nights, archive.refused
            ),
        ))
    }
}

fn mark(night: u32) -> String {
    format!("nights/{night}")
}
