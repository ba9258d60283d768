//! The command's side of the supervisor.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{Pid, getpid, set_child_subreaper};
use thiserror::Error;
use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::signal::unix::{SignalKind, signal};

use super::message::{GUARD, Order, Report};
use super::orphans::{Reaped, kill_all, kill_below, reap};
use super::process_stat::ProcessStat;
use super::program::THIS_BINARY;
use super::socket::{self, Received};
use crate::log;

/// The pause between two looks for processes that are left.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// The process that starts, watches and ends the program.
#[derive(Debug)]
pub(crate) struct Supervisor {
    /// Sockets of packets have no type in tokio. This one waits until the socket is readable.
    link: UnixStream,
    group: Option<Pid>,
    /// Its process, once the program runs.
    process: Option<Pid>,
}

/// The supervisor is gone without a report: another process killed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the supervisor died; the program was killed")]
pub(crate) struct SupervisorDied;

impl Supervisor {
    /// Starts the process. The program follows with [`start_program`](Self::start_program).
    pub(crate) fn start(program: &[OsString]) -> io::Result<Self> {
        // A caller may have had the signal ignored. Then no process sees how its children end, and waits for
        // ever. What is caught here is no longer ignored in the processes below.
        let _caught = signal(SignalKind::child())?;
        let (ours, theirs) = socket::pair()?;
        socket::send(&ours, &Order::Program, Some(words(program)?.as_fd()))?;
        // If the guard and the supervisor are killed, their children become children of this process.
        set_child_subreaper(Some(getpid()))?;
        Command::new(THIS_BINARY)
            .arg(GUARD)
            .arg(ProcessStat::of_this().and_then(|own| own.group).map_or(0, Pid::as_raw_pid).to_string())
            .env(log::ENVIRONMENT, log::format())
            .stdin(Stdio::from(theirs))
            .process_group(0)
            .spawn()?;
        Ok(Self { link: UnixStream::from_std(net::UnixStream::from(ours))?, group: None, process: None })
    }

    /// Sends [`Order::Start`], with the standard input. Without success no program is started.
    pub(crate) fn start_program(&self, order: &Order) -> io::Result<()> {
        socket::send(&self.link, order, Some(io::stdin().as_fd()))
    }

    /// Sends another order. A supervisor that does not receive it is gone, which the next report shows, or
    /// has a full queue of orders. Then only extensions are lost, and the program ends too early.
    pub(crate) fn send(&self, order: &Order) {
        let _ = socket::send(&self.link, order, None);
    }

    /// The next report.
    ///
    /// Cancel safe: a report is received or not.
    pub(crate) async fn report(&mut self) -> Result<Report, SupervisorDied> {
        loop {
            let received = match self.link.readable().await {
                Ok(()) => self.link.try_io(Interest::READABLE, || receive(&self.link)),
                Err(error) => Err(error),
            };
            match received {
                Ok(Some(report)) => {
                    if let Report::Started { group, supervisor } = report {
                        self.group = Pid::from_raw(group);
                        self.process = Pid::from_raw(supervisor);
                    }
                    return Ok(report);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Ok(None) | Err(_) => return Err(SupervisorDied),
            }
        }
    }

    /// Kills every process of the program, for a supervisor that does not: it is stopped, or continues later
    /// than this process. It still waits for the processes, so none of their numbers names another one.
    pub(crate) fn kill_program(&self) {
        if let Some(process) = self.process {
            kill_below(process);
        }
    }

    /// Kills what a dead supervisor left.
    pub(crate) async fn kill_orphans(self) {
        loop {
            kill_all(self.group);
            loop {
                match reap() {
                    Reaped::Child(..) => {}
                    Reaped::Nothing => break,
                    Reaped::NoChild => return,
                }
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }
}

/// A file in memory with the words of a program.
fn words(program: &[OsString]) -> io::Result<File> {
    let mut file = File::from(memfd_create("program", MemfdFlags::CLOEXEC)?);
    for word in program {
        file.write_all(word.as_bytes())?;
        file.write_all(b"\0")?;
    }
    file.rewind()?;
    Ok(file)
}

/// `None` at the end.
fn receive(link: &UnixStream) -> io::Result<Option<Report>> {
    match socket::receive(link)? {
        Received::Message(report, _) => Ok(Some(report)),
        Received::Nothing => Err(io::ErrorKind::WouldBlock.into()),
        Received::End => Ok(None),
    }
}
