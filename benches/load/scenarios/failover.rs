//! A leader that is killed, and the next one.

use std::io::Write;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lockkeeper::{Election, Leadership};
use rustix::time::{ClockId, clock_gettime};
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use crate::Outcome;
use crate::arguments::Arguments;
use crate::fixture::Fixture;
use crate::measurements::{Lap, Measurements, now};
use crate::report::Report;
use crate::run::PATIENCE;

/// Between two lines of a leader.
const EVERY: Duration = Duration::from_millis(20);

/// Kills leaders, one after the other. A leader is a process of its own, so the operating system closes its
/// connection, and its session ends by its timeout. An acquire is timed from the kill.
pub(super) async fn failover(fixture: &Fixture<'_>) -> Outcome<Report> {
    let (kills, measurements) = (fixture.arguments.number("n")?, Measurements::new());
    let limit =
        fixture.arguments.seconds("timeout")? + Duration::from_millis(fixture.arguments.number("tick")?);
    let election = Election::new(fixture.manager(0)?, fixture.path("failover"), "next")?;
    let (mut early, mut slowest) = (0, Duration::ZERO);
    let earlier = fixture.meters.read().await;
    for _ in 0..kills {
        let mut leader = Leader::start(fixture.arguments).await?;
        let campaign = tokio::spawn({
            let election = election.clone();
            async move { (election.campaign().await, boot_now(), now()) }
        });
        queued(&election).await?;
        let killed = now();
        leader.process.kill().await?;
        let (leadership, granted_at_boot, granted) = joined(campaign).await?;
        early += u64::from(granted_at_boot < leader.valid_until.load(Ordering::SeqCst));
        slowest = slowest.max(granted - killed);
        let released = now();
        leadership.resign().await?;
        measurements.add(Lap {
            acquire: granted - killed,
            release: Some(released.elapsed()),
            handover: None,
        });
    }
    let cost = fixture.meters.read().await.since(&earlier, &fixture.meters, kills);
    let mut report = Report::new(fixture.arguments, &measurements, cost, early, 0);
    report.set("of_limit", (slowest.as_secs_f64() / limit.as_secs_f64() * 1000.0).round() / 1000.0);
    Ok(report)
}

type Campaign = JoinHandle<(Result<Leadership, lockkeeper::Error>, u64, std::time::Instant)>;

async fn joined(campaign: Campaign) -> Outcome<(Leadership, u64, std::time::Instant)> {
    let (leadership, at_boot, at) = timeout(2 * PATIENCE, campaign).await.map_err(|_| "nobody leads")??;
    Ok((leadership?, at_boot, at))
}

/// Waits until the leader and the next one have their nodes.
async fn queued(election: &Election) -> Outcome<()> {
    let both = async {
        while election.candidates().await?.len() < 2 {
            sleep(EVERY).await;
        }
        Outcome::Ok(())
    };
    timeout(PATIENCE, both).await.map_err(|_| "the candidates did not get their nodes")?
}

/// Leads until it is killed, and prints until when its leadership is valid, by the boot clock of the machine.
pub(super) async fn lead(fixture: &Fixture<'_>) -> Outcome<Report> {
    let path = format!("/lockkeeper-bench/{}/failover", fixture.arguments.number("of")?);
    let leadership = Election::new(fixture.manager(0)?, path, "killed")?.campaign().await?;
    loop {
        // First the clock: the leadership is valid for at least that long after it.
        let at = boot_now();
        let left = u64::try_from(leadership.valid_until().remaining().as_nanos())?;
        // Fails when the process that started it has ended.
        writeln!(std::io::stdout(), "{}", at.saturating_add(left))?;
        sleep(EVERY).await;
    }
}

/// The machine's boot clock in nanoseconds: the same in all its processes.
fn boot_now() -> u64 {
    let now = clock_gettime(ClockId::Boottime);
    let (seconds, nanoseconds) = (u64::try_from(now.tv_sec), u64::try_from(now.tv_nsec));
    seconds.unwrap_or_default() * 1_000_000_000 + nanoseconds.unwrap_or_default()
}

/// A process that leads.
struct Leader {
    process: Child,
    /// Until when it has said that it leads.
    valid_until: Arc<AtomicU64>,
}

impl Leader {
    /// Starts it, and waits until it leads.
    async fn start(arguments: &Arguments) -> Outcome<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args([arguments.servers(), "lead"]);
        command.arg(format!("of={}", std::process::id()));
        command.arg(format!("timeout={}", arguments.number("timeout")?));
        let mut process = command.stdout(Stdio::piped()).kill_on_drop(true).spawn()?;
        let output = process.stdout.take().ok_or("no output")?;
        let mut lines = BufReader::new(output).lines();
        let first = timeout(PATIENCE, lines.next_line()).await.map_err(|_| "the leader does not lead")??;
        let first = first.ok_or("the leader has ended")?.parse()?;
        let valid_until = Arc::new(AtomicU64::new(first));
        tokio::spawn(follow(lines, Arc::clone(&valid_until)));
        Ok(Self { process, valid_until })
    }
}

async fn follow(mut lines: Lines<BufReader<ChildStdout>>, valid_until: Arc<AtomicU64>) {
    while let Ok(Some(line)) = lines.next_line().await {
        if let Ok(until) = line.parse() {
            valid_until.fetch_max(until, Ordering::SeqCst);
        }
    }
}
