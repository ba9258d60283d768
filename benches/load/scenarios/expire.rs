//! Registrations whose session ends, and the same registrations in the next session.

use std::collections::BTreeSet;
use std::io::Write;
use std::process::Stdio;
use std::time::{Duration, Instant};

use lockkeeper::Registration;
use lockkeeper::znodes::Zxid;
use rustix::process::{Pid, Signal, kill_process, set_parent_process_death_signal};
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::{sleep, timeout};

use crate::Outcome;
use crate::arguments::Arguments;
use crate::fixture::Fixture;
use crate::measurements::{Lap, Measurements, now};
use crate::report::Report;
use crate::run::PATIENCE;

/// Between two looks at the nodes.
const EVERY: Duration = Duration::from_millis(20);

/// `k` nodes of one process, which is stopped until the servers have ended its session, `n` times. An
/// acquire is timed from the signal that lets it continue until all nodes exist again.
pub(super) async fn expire(fixture: &Fixture<'_>) -> Outcome<Report> {
    let (ends, count) = (fixture.arguments.number("n")?, fixture.arguments.size("k")?);
    let (path, measurements) = (fixture.path("expire"), Measurements::new());
    let (mut missing, mut packets) = (0, Some(0));
    let first = fixture.meters.read().await;
    let mut registered = Registered::start(fixture.arguments).await?;
    for _ in 0..ends {
        let before = nodes(fixture, &path).await?;
        registered.signal(Signal::STOP)?;
        timeout(2 * PATIENCE, gone(fixture, &path)).await.map_err(|_| "the session does not end")??;
        let earlier = fixture.meters.read().await;
        let resumed = now();
        registered.signal(Signal::CONT)?;
        let back = registered.registered().await?;
        let later = fixture.meters.read().await;
        packets = packets.zip(later.packets_since(&earlier, &fixture.meters)).map(|(sum, more)| sum + more);
        let after = nodes(fixture, &path).await?;
        missing += u64::from(before != after || after.len() != count);
        measurements.add(Lap { acquire: back - resumed, release: None, handover: None });
    }
    let cost = fixture.meters.read().await.since(&first, &fixture.meters, ends);
    let mut report = Report::new(fixture.arguments, &measurements, cost, missing, 0);
    let registrations = ends * fixture.arguments.number("k")?;
    report.set("reqs_node", packets.map(|packets| (packets * 100).div_ceil(registrations)).map(hundredths));
    Ok(report)
}

#[expect(clippy::cast_precision_loss, reason = "a figure for people to read")]
fn hundredths(count: u64) -> f64 {
    count as f64 / 100.0
}

async fn nodes(fixture: &Fixture<'_>, path: &str) -> Outcome<BTreeSet<String>> {
    let names = fixture.manager(0)?.znodes().children(path).await?;
    Ok(names.unwrap_or_default().into_iter().collect())
}

async fn gone(fixture: &Fixture<'_>, path: &str) -> Outcome<()> {
    while !nodes(fixture, path).await?.is_empty() {
        sleep(EVERY).await;
    }
    Ok(())
}

/// Registers `k` nodes, and prints a line each time when all of them exist, until it is killed.
pub(super) async fn register(fixture: &Fixture<'_>) -> Outcome<Report> {
    // Also a stopped process ends with the one that started it.
    set_parent_process_death_signal(Some(Signal::KILL))?;
    let path = format!("/lockkeeper-bench/{}/expire", fixture.arguments.number("of")?);
    let mut registrations = Vec::new();
    for number in 0..fixture.arguments.size("k")? {
        let registration =
            Registration::register(fixture.manager(0)?, format!("{path}/{number:05}"), "payload")?;
        registrations.push((registration, Zxid::ZERO));
    }
    loop {
        for (registration, known) in &mut registrations {
            *known = next(registration, *known).await?;
        }
        writeln!(std::io::stdout(), "registered")?;
    }
}

/// Waits for a node that another transaction created than the one that is known.
async fn next(registration: &Registration, known: Zxid) -> Outcome<Zxid> {
    let mut states = registration.watch();
    loop {
        let czxid = registration.registered().await?;
        if czxid != known {
            return Ok(czxid);
        }
        states.changed().await?;
    }
}

/// A process that registers nodes.
struct Registered {
    process: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Registered {
    /// Starts it, and waits until its nodes exist.
    async fn start(arguments: &Arguments) -> Outcome<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args([arguments.servers(), "register"]);
        command.arg(format!("of={}", std::process::id()));
        command.arg(format!("k={}", arguments.number("k")?));
        command.arg(format!("timeout={}", arguments.number("timeout")?));
        let mut process = command.stdout(Stdio::piped()).kill_on_drop(true).spawn()?;
        let output = process.stdout.take().ok_or("no output")?;
        let mut registered = Self { process, lines: BufReader::new(output).lines() };
        registered.registered().await?;
        Ok(registered)
    }

    fn signal(&self, signal: Signal) -> Outcome<()> {
        let id = self.process.id().and_then(|id| Pid::from_raw(id.try_into().ok()?)).ok_or("it has ended")?;
        Ok(kill_process(id, signal)?)
    }

    /// Waits until all nodes exist, and returns when that was.
    async fn registered(&mut self) -> Outcome<Instant> {
        let line = timeout(PATIENCE, self.lines.next_line()).await.map_err(|_| "the nodes do not exist")?;
        let at = now();
        line?.ok_or("the process has ended").map(|_| at).map_err(Into::into)
    }
}
